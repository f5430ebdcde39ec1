"""Sequences of a known length whose elements the text names: rows of numbers, small lists and tuples of scalars (aggregates),
and what ``enumerate``, ``zip``, ``reversed``, slices and ranges between numbers make of them."""

from __future__ import annotations

import ast
import contextlib
import copy
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lapwing.loopnest.normalisation.counted_loops import is_strict
from lapwing.loopnest.normalisation.names import own_names

MOST_ELEMENTS = 64

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_BUILTINS: Mapping[str, object] = {
    "range": range, "len": len, "enumerate": enumerate, "zip": zip, "reversed": reversed, "tuple": tuple, "list": list,
    "sum": sum, "any": any, "all": all, "min": min, "max": max, "bool": bool,
}  # fmt: skip

Rows = Mapping[str, ast.List | ast.Tuple]
Item = ast.expr | list["Item"]
Shape = (
    tuple["Shape", ...] | None
)  # of an aggregate: how many elements it has, and of what shape they are; None: a scalar


@dataclass(frozen=True)
class KnownSequences:
    """rows: of numbers, by their names. aggregates: shapes of others, by their names. builtins: which of Python's functions go by
    their own names."""

    rows: Rows = field(default_factory=dict)
    aggregates: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)
    builtins: frozenset[str] = frozenset()

    def elements(self, node: ast.expr) -> list[Item] | None:
        """What a sequence holds; None where that is not known."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if is_row(node):
                return [*elements]
            case ast.Name(id=name) if name in self.rows:
                return [*self.rows[name].elts]
            case ast.Name(id=name) if name in self.aggregates:
                return [element_of(node, k, inner) for k, inner in enumerate(self.aggregates[name])]
            case ast.Subscript(value=inner, slice=ast.Slice() as part, ctx=ast.Load()):
                found, where = self.elements(inner), _slice(part)
                return None if found is None or where is None else found[where]
            case ast.Call(func=ast.Name(id=called)) if called not in self.builtins:
                return None
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]):
                found = self.elements(inner)
                return None if found is None else [[ast.Constant(k), element] for k, element in enumerate(found)]
            case ast.Call(func=ast.Name(id="zip"), args=[_, *_] as parts) if not is_strict(node):
                columns = [self.elements(part) for part in parts]
                known = [column for column in columns if column is not None]
                return [list(row) for row in zip(*known, strict=False)] if len(known) == len(columns) else None
            case ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]):
                found = self.elements(inner)
                return None if found is None else found[::-1]
        return None

    def numbers(self, node: ast.expr) -> list[Item] | None:
        """The numbers of a range between numbers."""
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[_, *_] as bounds, keywords=[]) if {
                "range",
                "len",
            } <= self.builtins and len(bounds) <= 3:
                values = [value_of(Substituting({}, self).visit(copy.deepcopy(bound))) for bound in bounds]
                if all(type(value) is int for value in values) and values[2:] != [0]:
                    numbers = range(*(int(value) for value in values if value is not None))
                    return [number(k) for k in numbers] if 0 < len(numbers) <= MOST_ELEMENTS else None
        return None


def builtins_by_name(tree: ast.FunctionDef, meaning: Callable[[str], object]) -> frozenset[str]:
    """Those of Python's functions that go by their own names in a function."""
    own = own_names(tree)
    return frozenset(name for name, its in _BUILTINS.items() if name not in own and meaning(name) is its)


def element_of(sequence: ast.expr, place: int, shape: Shape) -> ast.expr:
    """The expression of an element of an aggregate: a display of its own elements where it has some."""
    element = ast.Subscript(copy.deepcopy(sequence), ast.Constant(place), ast.Load())
    if shape is None:
        return element
    return ast.Tuple([element_of(element, k, inner) for k, inner in enumerate(shape)], ast.Load())


def _slice(part: ast.Slice) -> slice | None:
    """A slice between numbers."""
    bounds = [None if bound is None else value_of(bound) for bound in (part.lower, part.upper, part.step)]
    if any(bound is not None and type(bound) is not int for bound in bounds) or bounds[2] == 0:
        return None
    given = sum(bound is not None for bound in (part.lower, part.upper, part.step))
    return slice(*bounds) if given == sum(bound is not None for bound in bounds) else None


def match(target: ast.expr, item: Item, values: dict[str, ast.expr]) -> bool:
    """Note what the names of a target are; whether it takes the item."""
    if isinstance(target, ast.Name):
        if isinstance(item, list):
            return False
        values[target.id] = item
        return True
    parts = item if isinstance(item, list) else item.elts if isinstance(item, ast.List | ast.Tuple) else []
    if not isinstance(target, ast.Tuple | ast.List) or len(parts) != len(target.elts):
        return False
    return all(match(t, part, values) for t, part in zip(target.elts, parts, strict=True))


def value_of(node: ast.expr) -> int | float | None:
    """The value of an expression of numbers; None of any other."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = value_of(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            a, b = value_of(left), value_of(right)
            with contextlib.suppress(ArithmeticError):
                return None if a is None or b is None else _ARITHMETIC[type(op)](a, b)
    return None


def truth_of(node: ast.expr) -> bool | None:
    """Whether a condition on numbers holds; None of any other."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth_of(operand)
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=values):
            truths = [truth_of(value) for value in values]
            known = [truth for truth in truths if truth is not None]
            if len(known) < len(truths):
                return None
            return all(known) if isinstance(op, ast.And) else any(known)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            operands = [_comparable(operand) for operand in (left, *comparators)]
            if any(operand is None for operand in operands) or any(type(op) not in _COMPARISONS for op in ops):
                return None
            pairs = zip(ops, operands, operands[1:], strict=False)
            with contextlib.suppress(TypeError):
                return all(_COMPARISONS[type(op)](a, b) for op, a, b in pairs)
            return None
    value = value_of(node)
    return None if value is None else bool(value)


def _comparable(node: ast.expr) -> Any:
    """A number, or a tuple or list of them."""
    if not isinstance(node, ast.Tuple | ast.List):
        return value_of(node)
    parts = [_comparable(part) for part in node.elts]
    return None if any(part is None for part in parts) else tuple(parts) if isinstance(node, ast.Tuple) else parts


class Substituting(ast.NodeTransformer):
    """Puts expressions in the place of names, and what is then known to be selected from rows."""

    def __init__(self, values: Mapping[str, ast.expr], known: KnownSequences) -> None:
        self.values, self.known = values, known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id)
        if value is None or not isinstance(node.ctx, ast.Load):
            return node
        return copied(value, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if name not in self.values:
                of: Any = self.known.rows[name].elts if name in self.known.rows else self.known.aggregates.get(name)
                if of is not None and "len" in self.known.builtins:
                    return ast.copy_location(ast.Constant(len(of)), node)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        row = self.known.rows.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
        place = value_of(node.slice)
        if isinstance(row, ast.List | ast.Tuple) and type(place) is int and -len(row.elts) <= place < len(row.elts):
            return copied(row.elts[place], node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        match node.test:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                if is_number(left) and is_number(right):
                    with contextlib.suppress(TypeError):  # complex numbers have no order
                        holds = _COMPARISONS[type(op)](ast.literal_eval(left), ast.literal_eval(right))
                        return node.body if holds else node.orelse
        return node


def copied(value: ast.expr, node: ast.expr) -> ast.expr:
    """An expression in the place of another."""
    new = copy.deepcopy(value)
    for part in ast.walk(new):
        ast.copy_location(part, node)
    return new


def is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return is_number(operand)
        case ast.Constant(value=value):
            return isinstance(value, bool | int | float | complex)
    return False


def is_row(node: ast.expr) -> bool:
    """Whether it is a display of numbers, or of rows of them."""
    return (
        isinstance(node, ast.List | ast.Tuple) and bool(node.elts) and all(is_number(e) or is_row(e) for e in node.elts)
    )


def number(value: int) -> ast.expr:
    """A whole number as Python parses it."""
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
