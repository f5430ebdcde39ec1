"""Loops over arrays, rows, ``enumerate``, ``zip`` and ``reversed`` as counted loops.

    before                                   after
    for k, (x, y) in enumerate(zip(a, b)):   for k in range(min(len(a), len(b))):
        s = s + x * y                            x = a[k]
                                                 y = b[k]
                                                 s = s + x * y

NumPy's arrays are read while a loop goes over them, as the elements are here. Only what is compiled is changed in this way: there
all that is gone over is an array.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lapwing.loopnest.normalisation.names import (
    all_names,
    argument_names,
    count_names,
    fresh_name,
    is_builtin,
    is_range,
    own_names,
)
from lapwing.syntax_places import placed

# What a target is set to in an iteration: an expression, or one for each part of a tuple.
Item = ast.expr | tuple["Item", ...]


@dataclass(frozen=True)
class Unpacking:
    """``a, b, c = x[k]``: an axis of an array must have as many elements as there are names; None: as many axes, in
    ``n, m = x.shape``."""

    array: str
    axis: int | None
    names: int
    line: int


@dataclass(frozen=True)
class Counted:
    tree: ast.FunctionDef
    unpackings: tuple[Unpacking, ...] = ()


def counted(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> Counted:
    """The function with counted loops in the place of others where that can be done. meaning: of names that are not its own."""
    if all(is_range(node.iter) for node in ast.walk(tree) if isinstance(node, ast.For)):
        return Counted(tree)
    counting = _Counting(tree, meaning)
    new = counting.visit(copy.deepcopy(tree))
    return Counted(new, tuple(counting.unpackings))


@dataclass(frozen=True)
class _Sequence:
    """Something to go over: how long it is, at the most by each of some lengths, and what it holds at a place. is_enumerated:
    whether that is the place itself first, counted from ``begin`` where that is not 0."""

    lengths: tuple[ast.expr, ...]
    item: Callable[[ast.expr], Item]
    is_enumerated: bool = False
    begin: ast.expr | None = None


class _NotCountedError(Exception):
    pass


class _Counting(ast.NodeTransformer):
    def __init__(self, tree: ast.FunctionDef, meaning: Callable[[str], object]) -> None:
        self.meaning = meaning
        self.names, self.parameters, self.own = all_names(tree), argument_names(tree), own_names(tree)
        self.loads, self.stores = count_names([tree], ast.Load), count_names([tree], ast.Store)
        self.unpackings: list[Unpacking] = []

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        before = len(self.unpackings)
        try:
            if is_range(node.iter):
                return node
            return placed(node, self._counted(node))
        except _NotCountedError:
            del self.unpackings[before:]
            return node

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _counted(self, node: ast.For) -> ast.For:
        if not _stays(node):
            raise _NotCountedError
        if (backwards := self._reversed_range(node.iter)) is not None:
            node.iter = backwards
            return node
        if (extents := self._extents(node)) is not None:
            return self._product(node, extents)
        sequence = self._sequence(node.iter)
        lengths = list({ast.dump(length): length for length in sequence.lengths}.values())
        if not lengths:
            raise _NotCountedError
        index, begin, given = self._index(node, sequence)
        body = [*given, *node.body]
        count = lengths[0] if len(lengths) == 1 else _call("min", *lengths)
        bounds = [count] if begin is None else [begin, _plus(count, begin)]
        return ast.For(ast.Name(index, ast.Store()), _call("range", *bounds), body, node.orelse)

    def _index(self, node: ast.For, sequence: _Sequence) -> tuple[str, ast.expr | None, list[ast.stmt]]:
        """The index of a counted loop, where it begins if not at 0, and what sets the targets."""
        if isinstance(node.target, ast.Tuple) and isinstance(node.target.elts[0], ast.Name):
            # A counter of the user's own is the index, as long as nothing else sets it.
            name = node.target.elts[0].id
            index, begin = ast.Name(name, ast.Load()), sequence.begin
            item = sequence.item(index if begin is None else _minus(index, begin))
            is_free = begin is None or self.stores[name] == 1  # a loop's index means nothing else
            if isinstance(item, tuple) and sequence.is_enumerated and is_free and self._is_set_once(name, node):
                rest = ast.Tuple([*node.target.elts[1:]], ast.Store())
                return name, begin, self._targets(rest, item[1:], node)
        name = fresh_name("index", self.names)
        return name, None, self._targets(node.target, sequence.item(ast.Name(name, ast.Load())), node)

    def _is_set_once(self, name: str, node: ast.For) -> bool:
        stores = (n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        return name not in self.parameters and all(n.id != name for n in stores)

    def _targets(self, target: ast.expr, item: Item, node: ast.For) -> list[ast.stmt]:
        """What sets the parts of a target. A row that is only indexed is not set: the elements are those of the array."""
        if isinstance(target, ast.Tuple | ast.List):
            if any(isinstance(part, ast.Starred) for part in target.elts):
                raise _NotCountedError
            if not isinstance(item, tuple):
                item = self._unpacked(item, len(target.elts), node.lineno)
            if len(item) != len(target.elts):
                raise _NotCountedError
            return [s for part, its in zip(target.elts, item, strict=True) for s in self._targets(part, its, node)]
        if isinstance(item, tuple) or not isinstance(target, ast.Name):
            raise _NotCountedError
        if _is_row(target.id, node.body):
            self._replace_row(target.id, item, node)
            return []
        return [ast.Assign([target], item)]

    def _unpacked(self, item: ast.expr, count: int, line: int) -> tuple[Item, ...]:
        base, indices = subscripts_of(item)
        if not isinstance(base, ast.Name):
            raise _NotCountedError
        self.unpackings.append(Unpacking(base.id, len(indices), count, line))
        return tuple(_element(item, ast.Constant(k)) for k in range(count))

    def _replace_row(self, name: str, item: ast.expr, node: ast.For) -> None:
        inside = sum(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            for s in node.body
            for n in ast.walk(s)
        )
        if inside != self.loads[name] or name in self.parameters:
            raise _NotCountedError
        rows = Rows(name, item)
        node.body = [rows.visit(statement) for statement in node.body]

    def _product(self, node: ast.For, extents: Sequence[ast.expr]) -> ast.For:
        """Loops in each other for one over all places of a box."""
        if not isinstance(node.target, ast.Tuple):
            raise _NotCountedError
        names = node.target.elts
        if len(names) != len(extents) or _leaves(node.body) or node.orelse:
            raise _NotCountedError
        body = node.body
        for name, extent in reversed(list(zip(names, extents, strict=True))):
            body = [placed(node, ast.For(name, extent, body, []))]
        (loop,) = body
        assert isinstance(loop, ast.For)
        return loop

    # -- what loops go over --------------------------------------------------------------------------------------------

    def _sequence(self, node: ast.expr) -> _Sequence:
        match node:
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *start], keywords=keywords) if self._is_own(node):
                begin = start[0] if start else next((k.value for k in keywords if k.arg == "start"), None)
                if begin is not None and not _is_python_int(begin):
                    raise _NotCountedError  # a number of NumPy's may have no room for where counting ends
                of = self._sequence(inner)
                counted_from = (lambda k: k) if begin is None else (lambda k: _plus(k, begin))
                return _Sequence(of.lengths, lambda k: (counted_from(k), of.item(k)), True, begin)
            case ast.Call(func=ast.Name(id="zip"), args=[_, *_] as parts) if not is_strict(node) and self._is_own(node):
                all_ = [self._sequence(part) for part in parts]
                lengths = tuple(length for one in all_ for length in one.lengths)
                return _Sequence(lengths, lambda k: tuple(one.item(k) for one in all_))
            case ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]) if self._is_own(node):
                of = self._sequence(inner)
                if len(of.lengths) != 1:
                    raise _NotCountedError
                return _Sequence(of.lengths, lambda k: of.item(_minus(_minus(of.lengths[0], ast.Constant(1)), k)))
            case ast.Call(func=ast.Name(id="range"), args=[stop], keywords=[]):
                return _Sequence((stop,), lambda k: k)
            case ast.Call(func=ast.Name(id="range"), args=[start, stop], keywords=[]):
                return _Sequence((_minus(stop, start),), lambda k: _plus(start, k))
            case ast.Name() | ast.Subscript():
                return self._array(node)
        raise _NotCountedError

    def _array(self, node: ast.expr) -> _Sequence:
        if isinstance(node, ast.Subscript) and _has_slice(node.value):
            raise _NotCountedError  # an index of what a slice leaves
        base, indices = subscripts_of(node)
        if not isinstance(base, ast.Name):
            raise _NotCountedError
        slices = [k for k, index in enumerate(indices) if isinstance(index, ast.Slice)]
        if not slices:
            return _Sequence((_extent(base, len(indices)),), lambda k: _element(node, k))
        if len(slices) > 1:
            raise _NotCountedError
        (axis,) = slices
        begin, length = _bounds(indices[axis], _extent(base, axis))
        at = [*indices]

        def item(k: ast.expr) -> ast.expr:
            at[axis] = k if begin == 0 else _plus(k, ast.Constant(begin))
            return _indexed(base, at)

        return _Sequence((length,), item)

    def _reversed_range(self, node: ast.expr) -> ast.Call | None:
        """``reversed(range(…))`` and ``range(…)[::-1]`` as a range."""
        match node:
            case ast.Call(func=ast.Name(id="reversed"), args=[ast.Call() as inner], keywords=[]) if self._is_own(node):
                pass
            case ast.Subscript(
                value=ast.Call() as inner,
                slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))),
            ):
                pass
            case _:
                return None
        if not is_range(inner):
            return None
        start = inner.args[0] if len(inner.args) > 1 else ast.Constant(0)
        stop, step = inner.args[min(1, len(inner.args) - 1)], _number(inner.args[2]) if len(inner.args) == 3 else 1
        if not step:
            return None
        ahead = _minus(_minus(stop, start), ast.Constant(1 if step > 0 else -1))
        last = _minus(stop, ast.Constant(step)) if abs(step) == 1 else _plus(start, _floored(ahead, step))
        return _call("range", last, _minus(start, ast.Constant(1 if step > 0 else -1)), ast.Constant(-step))

    def _extents(self, node: ast.For) -> list[ast.expr] | None:
        """The ranges of ``np.ndindex(…)`` and ``itertools.product(range(…), …)``."""
        call = node.iter
        if not isinstance(call, ast.Call) or call.keywords:
            return None
        meant = self._meaning(call.func)
        if meant is itertools.product:
            return [*call.args] if all(map(is_range, call.args)) else None
        if meant is not np.ndindex:
            return None
        match call.args:
            case [ast.Attribute(attr="shape") as shape] | [ast.Starred(value=ast.Attribute(attr="shape") as shape)]:
                count = len(node.target.elts) if isinstance(node.target, ast.Tuple) else 1
                return [_call("range", _element(shape, ast.Constant(k))) for k in range(count)]
            case [_, _, *_] if not any(isinstance(argument, ast.Starred) for argument in call.args):
                return [_call("range", argument) for argument in call.args]
        return None

    def _meaning(self, node: ast.expr) -> object:
        match node:
            case ast.Name(id=name):
                return None if name in self.own else self.meaning(name)
            case ast.Attribute(value=ast.Name() as value, attr=attribute):
                return getattr(self._meaning(value), attribute, None)
        return None

    def _is_own(self, node: ast.Call) -> bool:
        """Whether a call is of a builtin function, by its name."""
        assert isinstance(node.func, ast.Name)
        return is_builtin(node.func.id, self.own, self.meaning)


class Rows(ast.NodeTransformer):
    """Elements and length of a row by the names of the array that it is of."""

    def __init__(self, name: str, row: ast.expr) -> None:
        self.name, self.row = name, row

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return placed(node, copy.deepcopy(self.row)) if node.id == self.name else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _is_length(node, self.name):
            base, indices = subscripts_of(self.row)
            return placed(node, _extent(base, len(indices)))
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node.value:
            case ast.Name(id=self.name):
                self.generic_visit(node)
                index = node.slice
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                base, indices = subscripts_of(self.row)
                new = _indexed(base, [*indices, *parts])
                new.ctx = node.ctx
                return placed(node, new)
        return self.generic_visit(node)


def _is_row(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether a name stands for an array of which elements are taken, and for nothing else.

    Raises _NotCountedError where it is taken as a whole as well.
    """
    parts = _parts_of_row(name, body)
    if parts and not is_row(name, body):
        raise _NotCountedError
    return parts > 0


def is_row(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether all that statements do with a name is to take elements, and the length, of what it stands for."""
    uses = [n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
    return bool(uses) and all(isinstance(n.ctx, ast.Load) for n in uses) and _parts_of_row(name, body) == len(uses)


def _parts_of_row(name: str, body: Sequence[ast.stmt]) -> int:
    """How often statements take elements of what a name stands for, or its length."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    parts = sum(isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id == name for n in nodes)
    return parts + sum(isinstance(n, ast.Call) and _is_length(n, name) for n in nodes)


def _is_length(node: ast.Call, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=argument)], keywords=[]):
            return argument == name
    return False


def is_strict(node: ast.Call) -> bool:
    """Whether a call of zip may be one that takes no sequences of different lengths."""
    return any(k.arg != "strict" or not isinstance(k.value, ast.Constant) or k.value.value for k in node.keywords)


def _has_slice(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Slice) for part in ast.walk(node))


def _stays(node: ast.For) -> bool:
    """Whether what a loop goes over, its bounds, lengths and indices, is the same in every iteration: Python asks but once."""
    targets = [n for n in ast.walk(node.target) if isinstance(n, ast.Name)]
    inside = [n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    changing = {n.id for n in (*targets, *inside)}
    if any(isinstance(n, ast.Name) and n.id in changing for n in ast.walk(node.iter)):
        return False
    return all(map(_is_fixed, _numbers_in(node.iter)))


def _numbers_in(node: ast.expr) -> list[ast.expr]:
    """The numbers that an iterable is made with: bounds of ranges, where enumerating starts, indices."""
    match node:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *start], keywords=keywords):
            return [*_numbers_in(inner), *start, *(k.value for k in keywords)]
        case ast.Call(func=ast.Name(id="zip" | "reversed"), args=arguments):
            return [number for argument in arguments for number in _numbers_in(argument)]
        case ast.Call(args=arguments):
            return [number for a in arguments for number in ([a] if not isinstance(a, ast.Call) else _numbers_in(a))]
        case ast.Subscript():
            return [*subscripts_of(node)[1], *_numbers_in(node.value)]
    return []


def _is_fixed(node: ast.expr) -> bool:
    """Whether a number is made of names and numbers alone, and of lengths: elements of arrays may change, and may be of a type
    that has no room for what is computed here."""
    for part in ast.walk(node):
        match part:
            case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Call(func=ast.Name(id="len")):
                pass
            case ast.Subscript() | ast.Call():
                return False
    return True


def _is_python_int(node: ast.expr) -> bool:
    """Whether a number is made of whole numbers of Python's, and of lengths."""
    match node:
        case ast.Constant(value=int()):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Call(func=ast.Name(id="len")):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_python_int(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_python_int(left) and _is_python_int(right)
    return False


def _leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether a break of the loop itself is among the statements."""
    for statement in statements:
        if isinstance(statement, ast.Break):
            return True
        if not isinstance(statement, ast.For | ast.While):
            inner = [s for s in ast.iter_child_nodes(statement) if isinstance(s, ast.stmt)]
            if _leaves(inner):
                return True
    return False


def subscripts_of(node: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """What is indexed, and by what: ``u[i][j, k]`` as ``u`` and ``[i, j, k]``."""
    if not isinstance(node, ast.Subscript):
        return node, []
    base, indices = subscripts_of(node.value)
    return base, [*indices, *(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])]


def _element(node: ast.expr, index: ast.expr) -> ast.Subscript:
    base, indices = subscripts_of(node)
    return _indexed(base, [*indices, index])


def _indexed(base: ast.expr, indices: Sequence[ast.expr]) -> ast.Subscript:
    parts = [copy.deepcopy(index) for index in indices]
    return ast.Subscript(copy.deepcopy(base), parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load()), ast.Load())


def _extent(base: ast.expr, axis: int) -> ast.expr:
    shape = ast.Attribute(copy.deepcopy(base), "shape", ast.Load())
    return ast.Subscript(shape, ast.Constant(axis), ast.Load())


def _bounds(part: ast.expr, extent: ast.expr) -> tuple[int, ast.expr]:
    """Where a slice begins, and how long it is; less than nothing where the array ends before it."""
    assert isinstance(part, ast.Slice)
    begin = 0 if part.lower is None else _number(part.lower)
    end = 0 if part.upper is None else _number(part.upper)
    if (
        begin is None
        or begin < 0
        or end is None
        or end > 0
        or (part.upper is not None and end == 0)
        or part.step is not None
    ):
        raise _NotCountedError
    length = extent
    for cut in (begin, -end):
        length = _minus(length, ast.Constant(cut)) if cut else length
    return begin, length


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _number(operand)
            return None if value is None else -value
        case ast.Constant(value=int() as value):
            return value
    return None


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [copy.deepcopy(a) for a in arguments], [])


def _plus(a: ast.expr, b: ast.expr) -> ast.expr:
    return ast.BinOp(copy.deepcopy(a), ast.Add(), copy.deepcopy(b))


def _minus(a: ast.expr, b: ast.expr) -> ast.expr:
    return ast.BinOp(copy.deepcopy(a), ast.Sub(), copy.deepcopy(b))


def _floored(a: ast.expr, step: int) -> ast.expr:
    """``a`` without the rest that is no multiple of a step."""
    by = ast.Constant(step)
    return ast.BinOp(ast.BinOp(copy.deepcopy(a), ast.FloorDiv(), by), ast.Mult(), by)
