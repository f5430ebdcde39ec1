"""Reductions of windows, slices of a length that the text shows, as reductions of their elements.

    before                                   after
    w = u[i - 1:i + 2, j]                    out[i, j] = the maximum of u[i - 1, j], u[i, j], u[i + 1, j]
    out[i, j] = w.max() - w[0]                           - u[i - 1, j]

So are those of what is computed from slices element by element: ``np.any(u[i - 1:i + 2, j] > 0)``.

Only what is compiled is changed in this way. A slice that reaches beyond its array is a shorter one in Python: its elements are
marked (``counted_from_end``), so that they are refused where they would be below 0.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from lapwing.loopnest.normalisation.known_sequences import MOST_ELEMENTS, value_of
from lapwing.loopnest.normalisation.names import own_names
from lapwing.syntax_places import placed

_FUNCTIONS = {id(np.max): "max", id(np.min): "min", id(np.any): "any", id(np.all): "all", id(np.sum): "sum"}
_METHODS = ("max", "min", "any", "all", "sum")


def with_windows(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> ast.FunctionDef:
    """The function with such reductions; the same where it has none. meaning: of names that are not its own."""
    if not any(isinstance(node, ast.Slice) for node in ast.walk(tree)):
        return tree
    new = copy.deepcopy(tree)
    reducing = _Reducing(own_names(tree), meaning)
    _put_views(new, reducing)
    new = reducing.visit(new)
    return new if reducing.found else tree


class _Reducing(ast.NodeTransformer):
    """A call of a reduction becomes one with elements as its arguments: ``reduces`` says which it is."""

    def __init__(self, own: set[str], meaning: Callable[[str], object]) -> None:
        self.own, self.meaning = own, meaning
        self.found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        reduced = self.reduction(node)
        if reduced is None:
            return node
        name, argument = reduced
        elements = self._elements(argument)
        if elements is None:
            return node
        self.found = True
        node.args = [placed(argument, element) for element in elements]
        node.reduces = name  # type: ignore[attr-defined]
        return node

    def reduction(self, node: ast.Call) -> tuple[str, ast.expr] | None:
        """Which reduction it is, and of what; None of any other call."""
        match node:
            case ast.Call(func=ast.Attribute(value=argument, attr=method), args=[], keywords=[]):
                return (method, argument) if method in _METHODS else None
            case ast.Call(args=[argument], keywords=[]):
                which = _FUNCTIONS.get(id(self._numpys(node.func)))
                return None if which is None else (which, argument)
        return None

    def _numpys(self, node: ast.expr) -> object:
        """The function of NumPy's that an expression is."""
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module not in self.own:
                return getattr(np, name, None) if self.meaning(module) is np else None
        return None

    def _elements(self, argument: ast.expr) -> list[ast.expr] | None:
        """The elements of what is computed element by element, in their order."""
        lengths = self._shape(argument)
        if not lengths or int(np.prod(lengths)) > MOST_ELEMENTS:
            return None
        return [_Element(places).visit(copy.deepcopy(argument)) for places in itertools.product(*map(range, lengths))]

    def _shape(self, node: ast.expr) -> tuple[int, ...] | None:
        """How many elements an expression has along each axis; () of a scalar, None where that is not known."""
        match node:
            case ast.Subscript() if any(isinstance(place, ast.Slice) for place in _places(node)):
                lengths = _lengths(node)
                return None if lengths is None else tuple(lengths)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
                return _common(self._shape(left), self._shape(right))
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.Eq() | ast.NotEq()]):
                return _common(self._shape(left), self._shape(node.comparators[0]))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._shape(operand)
            case ast.Call(args=[operand], keywords=[]) if self._numpys(node.func) is np.abs:
                return self._shape(operand)
            case ast.Constant() | ast.Subscript():
                return ()
            case ast.Name(id=name):
                return () if name in self.own else None
        return None


def _put_views(tree: ast.FunctionDef, reducing: _Reducing) -> None:
    """Slices in the place of names that stand for them; the tree is changed."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list) and isinstance(node, ast.For | ast.While | ast.If):
                setattr(node, field, _without_views(block, tree))


def _without_views(block: list[ast.stmt], tree: ast.FunctionDef) -> list[ast.stmt]:
    for k, statement in enumerate(block):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as window) if _lengths(window):
                rest = block[k + 1 :]
                if not _may_be_put(name, window, rest, tree):
                    continue
                putting = _Putting(name, window)
                changed = [putting.visit(s) for s in copy.deepcopy(rest)]
                if not any(isinstance(n, ast.Name) and n.id == name for s in changed for n in ast.walk(s)):
                    return _without_views([*block[:k], *(changed or [placed(statement, ast.Pass())])], tree)
    return block


def _may_be_put(name: str, window: ast.Subscript, rest: Sequence[ast.stmt], tree: ast.FunctionDef) -> bool:
    """Whether a name stands for the same slice wherever it is used, in statements after it."""
    everywhere = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name]
    after = [n for s in rest for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == name]
    if len(everywhere) != len(after) + 1 or any(isinstance(n.ctx, ast.Store) for n in after):
        return False
    used = {n.id for n in ast.walk(window) if isinstance(n, ast.Name)}
    stored = {n.id for s in rest for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    elements = any(
        isinstance(n, ast.Subscript)
        for place in _places(window)
        for part in ast.iter_child_nodes(place)
        for n in ast.walk(part)
    )
    return not used & stored and not elements


class _Putting(ast.NodeTransformer):
    def __init__(self, name: str, window: ast.Subscript) -> None:
        self.name, self.window = name, window

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """An element of the slice."""
        match node:
            case ast.Subscript(value=ast.Name(id=self.name), ctx=ast.Load()):
                element = _selected(self.window, _places(node))
                return node if element is None else placed(node, element)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=self.name)), args=[], keywords=[]):
                assert isinstance(node.func, ast.Attribute)
                node.func.value = placed(node, copy.deepcopy(self.window))
                return node
            case ast.Call(args=[ast.Name(id=self.name)], keywords=[]):
                node.args = [placed(node, copy.deepcopy(self.window))]
                return node
        return self.generic_visit(node)


def _places(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _lengths(window: ast.Subscript) -> list[int] | None:
    """How many elements a slice has along each axis that it keeps; None where that is not known."""
    if not isinstance(window.value, ast.Name):
        return None
    found = [_length(place) for place in _places(window) if isinstance(place, ast.Slice)]
    known = [length for length in found if length]
    return known if known and len(known) == len(found) else None


def _length(part: ast.Slice) -> int | None:
    if part.upper is None or part.step is not None:
        return None
    begin, end = _affine(part.lower or ast.Constant(0)), _affine(part.upper)
    if begin is None or end is None or begin[0] != end[0] or not 0 < end[1] - begin[1] <= MOST_ELEMENTS:
        return None
    return end[1] - begin[1] if begin[0] or begin[1] >= 0 else None


def _affine(node: ast.expr) -> tuple[str, int] | None:
    """What a bound is made of, but for a number that is added; None of floats."""
    value = value_of(node)
    if value is not None:
        return ("", value) if type(value) is int else None
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            number = value_of(right)
            if type(number) is int:
                inner = _affine(left)
                return inner and (inner[0], inner[1] + (number if isinstance(op, ast.Add) else -number))
    plain = (ast.Name, ast.BinOp, ast.Constant, ast.UnaryOp, ast.expr_context, ast.operator, ast.unaryop)
    return (ast.dump(node), 0) if all(isinstance(part, plain) for part in ast.walk(node)) else None


def _common(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The shape of an operation of two operands; None where they are stretched."""
    if a is None or b is None or (a and b and a != b):
        return None
    return a or b


class _Element(ast.NodeTransformer):
    """Elements at a place in the place of slices."""

    def __init__(self, places: Sequence[int]) -> None:
        self.places = places

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return _at(node, self.places) if any(isinstance(p, ast.Slice) for p in _places(node)) else node


def _selected(window: ast.Subscript, indices: Sequence[ast.expr]) -> ast.expr | None:
    """An element of a slice, where all indices are known."""
    lengths = _lengths(window) or []
    values = [value_of(index) for index in indices]
    if len(values) != len(lengths):
        return None
    places: list[int] = []
    for value, length in zip(values, lengths, strict=True):
        if type(value) is not int or not -length <= value < length:
            return None
        places.append(value % length)
    return _at(window, places)


def _at(window: ast.Subscript, places: Sequence[int]) -> ast.expr:
    """An element of a slice."""
    steps = iter(places)
    indices: list[ast.expr] = []
    for place in _places(window):
        if not isinstance(place, ast.Slice):
            indices.append(copy.deepcopy(place))
            continue
        step = next(steps)
        begin = copy.deepcopy(place.lower or ast.Constant(0))
        index = ast.BinOp(begin, ast.Add(), ast.Constant(step)) if step else begin
        index.counted_from_end = True  # type: ignore[attr-defined]
        indices.append(index)
    whole = indices[0] if len(indices) == 1 else ast.Tuple(indices, ast.Load())
    return ast.Subscript(copy.deepcopy(window.value), whole, ast.Load())
