"""Bounds and steps of loops that are cut into tiles: affine ones that hold every iteration, and which of theirs are the loop's.

range(max(1, i - k), min(n, i + k + 1)) has two affine bounds at either end. range(1 + (i + t) % 2, n - 1, 2) is among
range(1, n - 1), where (j - (1 + (i + t) % 2)) % 2 == 0.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from lapwing.affine.affine import Affine

MOST_STEP = 4  # of larger steps too many of the iterations between would do nothing

_MIRRORED = {"max": "min", "min": "max"}
_COMPARED = ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE


@dataclass(frozen=True)
class Near:
    """An integer between ``form + low`` and ``form + high``. ``names``: of all indices and symbols that it depends on."""

    form: Affine
    low: int
    high: int
    names: frozenset[str]

    @property
    def least(self) -> Affine:
        return self.form + self.low

    @property
    def greatest(self) -> Affine:
        return self.form + self.high

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    def plus(self, other: Near) -> Near:
        return Near(self.form + other.form, self.low + other.low, self.high + other.high, self.names | other.names)

    def times(self, factor: int) -> Near:
        low, high = sorted((self.low * factor, self.high * factor))
        return Near(self.form * factor, low, high, self.names)


@dataclass(frozen=True)
class Range:
    """A loop's affine bounds, those of each end, and the conditions that its own iterations fulfil among all within them."""

    starts: tuple[Affine, ...]
    stops: tuple[Affine, ...]
    step: int
    conditions: tuple[ast.expr, ...]
    names: frozenset[str]


class BoundParser:
    """affine: an expression as an affine form of indices and symbols, None where it is not one; is_builtin: whether a function
    is Python's own of this name."""

    def __init__(
        self, affine: Callable[[ast.expr], Affine | None], is_builtin: Callable[[ast.expr, str], bool]
    ) -> None:
        self.affine, self.is_builtin = affine, is_builtin

    def range(self, index: str, start: ast.expr, stop: ast.expr, step: int) -> Range | ast.expr:
        """A loop's bounds; or the one that is too far from any affine form."""
        last, first = ("max", "min") if step > 0 else ("min", "max")
        starts, stops = self._ends(start, last), self._ends(stop, first)
        if starts is None:
            return start
        if stops is None:
            return stop
        x = ast.Name(index, ast.Load())
        apart = ast.BinOp(x, ast.Sub(), start) if step > 0 else ast.BinOp(start, ast.Sub(), x)
        conditions: list[ast.expr] = []
        width = max(end.high - end.low for end in starts)
        if width >= abs(step) or (width and len(starts) > 1):
            conditions.append(ast.Compare(apart, [ast.GtE()], [ast.Constant(0)]))
        if not all(end.is_exact for end in stops):
            conditions.append(ast.Compare(x, [ast.Lt() if step > 0 else ast.Gt()], [stop]))
        if abs(step) > 1:
            remainder = ast.BinOp(apart, ast.Mod(), ast.Constant(abs(step)))
            conditions.append(ast.Compare(remainder, [ast.Eq()], [ast.Constant(0)]))
        around_starts = tuple(end.least if step > 0 else end.greatest for end in starts)
        around_stops = tuple(end.greatest if step > 0 else end.least for end in stops)
        names = frozenset[str]().union(*(end.names for end in (*starts, *stops)))
        placed = tuple(_at(start, condition) for condition in conditions)
        return Range(around_starts, around_stops, 1 if step > 0 else -1, placed, names)

    def _ends(self, node: ast.expr, which: str) -> list[Near] | None:
        """What the node is the greatest (``max``) or least (``min``) of."""
        if (near := self._near(node)) is not None:
            return [near]
        match node:
            case ast.Call(func=function, args=[_, _, *_] as arguments, keywords=[]) if self.is_builtin(function, which):
                parts = [self._ends(argument, which) for argument in arguments]
                return [end for part in parts for end in part or ()] if None not in parts else None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                ends = self._ends(operand, _MIRRORED[which])
                return None if ends is None else [end.times(-1) for end in ends]
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                is_sum = isinstance(op, ast.Add)
                first, second = self._ends(left, which), self._ends(right, which if is_sum else _MIRRORED[which])
                if first is not None and second is not None:
                    return [a.plus(b if is_sum else b.times(-1)) for a in first for b in second]
        return None

    def _near(self, node: ast.expr) -> Near | None:
        """The node as an affine form and what is known to be small; None where it is something else."""
        if (form := self.affine(node)) is not None:
            return Near(form, 0, 0, form.names)
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._near(operand)
                return None if inner is None else inner.times(-1)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                a, b = self._near(left), self._near(right)
                if a is None or b is None:
                    return None
                return a.plus(b if isinstance(op, ast.Add) else b.times(-1))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                a, b = self._near(left), self._near(right)
                if a is None or b is None:
                    return None
                a, b = (b, a) if a.is_exact and not a.form.terms else (a, b)
                return a.times(b.form.constant) if b.is_exact and not b.form.terms else None
            case ast.BinOp(left=left, op=ast.Mod() | ast.BitAnd() as op, right=right):
                return self._remainder(self._near(left), self.affine(right), isinstance(op, ast.Mod))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(self._names_of_test(test), self._near(body), self._near(orelse))
        return None

    def _remainder(self, value: Near | None, modulus: Affine | None, is_remainder: bool) -> Near | None:
        """``value % modulus``, or the bits of the value that a number (``modulus``) has."""
        if value is None or modulus is None or modulus.terms or modulus.constant < is_remainder:
            return None
        return Near(Affine(0), 0, modulus.constant - is_remainder, value.names)

    def _either(self, names: frozenset[str] | None, a: Near | None, b: Near | None) -> Near | None:
        """``a if test else b``: near an affine form where they are a constant apart."""
        if names is None or a is None or b is None or (b.form - a.form).terms:
            return None
        apart = b.form.constant - a.form.constant
        low, high = min(a.low, b.low + apart), max(a.high, b.high + apart)
        return Near(a.form, low, high, a.names | b.names | names)

    def _names_of_test(self, test: ast.expr) -> frozenset[str] | None:
        """The names in a condition on integers that raises nothing; None for any other."""
        operands: list[ast.expr] = []
        match test:
            case ast.Compare(left=left, ops=ops, comparators=others) if all(isinstance(op, _COMPARED) for op in ops):
                operands = [left, *others]
            case ast.BoolOp(values=values):
                parts = [self._names_of_test(value) for value in values]
                return frozenset(n for part in parts for n in part or ()) if None not in parts else None
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._names_of_test(operand)
            case _:
                operands = [test]
        found = [self._near(operand) for operand in operands]
        return frozenset(n for near in found for n in (near.names if near else ())) if None not in found else None


def _at(place: ast.expr, node: ast.expr) -> ast.expr:
    """A copy of an expression that was put together, where another one stands."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    for part in ast.walk(copy):
        if isinstance(part, ast.expr):
            ast.copy_location(part, place)
    return copy
