"""What a driver passes to its regions, as far as that follows from its arguments without running it.

Loops are followed in their first round, branches one after the other: what is found is what is likely, for plans. How often they
go round is counted.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.program.regions import Region
from lapwing.loopnest.program.sweeps import Sweeps
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.setup import UnsupportedSetup, evaluate

_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "copy", "array", "ascontiguousarray"})
_OF_SHAPE = frozenset({"zeros", "ones", "empty", "full"})


class NotKnown(Exception):
    """A value that only a run can tell; the text is the expression."""


@dataclass(frozen=True)
class ExpectedCalls:
    """inputs: of every region by its name in its first call, arrays as ArrayShape; or the expression that is not known. calls:
    how often each is called. sweeps: the inputs of loops that may run through one pipeline, and what they go over, by their
    names; those that are not known are left out. uncounted: the headings of loops of which nobody knows how often they go
    round."""

    inputs: Mapping[str, list[Any] | str]
    calls: Mapping[str, int]
    sweeps: Mapping[str, tuple[dict[str, Any], range]]
    uncounted: tuple[str, ...]


def expected_calls(
    statements: Sequence[ast.stmt],
    regions: Sequence[Region],
    sweeps: Sequence[Sweeps],
    values: Mapping[str, Any],
    iterations: int = 1,
) -> ExpectedCalls:
    """What is expected of a driver.

    statements: of its body. values: arguments and what the function sees outside of itself. iterations: how often loops go round
    of which that is not known.
    """
    following = _Following(regions, sweeps, {name: _dummy(value) for name, value in values.items()}, iterations)
    following.block(statements)
    uncounted = tuple(dict.fromkeys(following.uncounted))
    return ExpectedCalls(following.found, following.calls, following.of_sweeps, uncounted)


def _dummy(value: Any) -> Any:
    """An array without memory in the place of one: its elements are some number."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape and hasattr(value, "dtype"):
        return np.broadcast_to(np.ones((), np.dtype(value.dtype)), shape)
    return value


def _shape(value: Any) -> Any:
    return ArrayShape(value.dtype.name, value.shape) if isinstance(value, np.ndarray) and value.shape else value


class _Following:
    def __init__(
        self, regions: Sequence[Region], sweeps: Sequence[Sweeps], values: dict[str, Any], iterations: int
    ) -> None:
        self.regions = {id(region.statement): region for region in regions}
        self.sweeps = {id(loop.statements[0]): loop for loop in sweeps if loop.is_loop}
        self.values = values
        self.iterations = iterations
        self.found: dict[str, list[Any] | str] = {}
        self.calls: dict[str, int] = {}
        self.of_sweeps: dict[str, tuple[dict[str, Any], range]] = {}
        self.uncounted: list[str] = []
        self._times = 1  # that what is followed is done

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        region = self.regions.get(id(node))
        if region is not None:
            self._region(region)
            self._forget(node)
            return
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self._try(value)
                for target in targets:
                    self._assign(target, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._try(value))
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                read = ast.Name(target.id, ast.Load())
                self._assign(target, self._try(ast.copy_location(ast.BinOp(read, op, value), node)))
            case ast.For(target=target, iter=iterated, body=body):
                times = self._count(node, iterated)
                if (loop := self.sweeps.get(id(node))) is not None:
                    self._sweeps(loop)
                self._assign(target, self._first_of(iterated))
                self._repeated(times, body)
            case ast.While(body=body):
                self._repeated(self._unknown(node) if self._holds_regions(node) else 1, body)
                self.block(node.orelse)
            case ast.With(body=body) | ast.If(body=body):
                self.block(body)
                self.block(getattr(node, "orelse", []))
            case ast.Try(body=body, finalbody=last):
                self.block([*body, *last])
            case ast.Expr() | ast.Assert() | ast.Return():
                pass
            case _:
                self._forget(node)

    def _repeated(self, times: int, body: Sequence[ast.stmt]) -> None:
        before = self._times
        self._times *= times
        self.block(body)
        self._times = before

    def _count(self, node: ast.For, iterated: ast.expr) -> int:
        if not self._holds_regions(node):
            return 1
        if isinstance(iterated, ast.Tuple | ast.List):
            return len(iterated.elts)
        over = self._range(iterated)
        return self._unknown(node) if over is None else len(over)

    def _range(self, iterated: ast.expr) -> range | None:
        match iterated:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
                ends = [self._try(end) for end in args]
                if all(isinstance(end, int | np.integer) for end in ends):
                    return range(*map(int, ends))
        return None

    def _unknown(self, node: ast.For | ast.While) -> int:
        self.uncounted.append(ast.unparse(node).splitlines()[0].rstrip(":"))
        return self.iterations

    def _holds_regions(self, node: ast.stmt) -> bool:
        return any(id(part) in self.regions for part in ast.walk(node))

    def _sweeps(self, loop: Sweeps) -> None:
        values = {name: self._try(value) for name, value in loop.inputs.items()}
        over = self._range(loop.over)
        if over is None or any(value is NotKnown for value in values.values()):
            return
        self.of_sweeps[loop.name] = {name: _shape(value) for name, value in values.items()}, over
        self.calls[loop.name] = self.calls.get(loop.name, 0) + self._times

    def _region(self, region: Region) -> None:
        self.calls[region.name] = self.calls.get(region.name, 0) + self._times
        try:
            values = [self._value(expression) for expression in region.outlined.inputs]
        except NotKnown as expression:
            self.found[region.name] = str(expression)
            return
        self.found[region.name] = list(map(_shape, values))

    def _forget(self, node: ast.stmt) -> None:
        for name in bound_names([node]):
            self.values.pop(name, None)

    def _first_of(self, iterated: ast.expr) -> Any:
        match iterated:
            case ast.Call(func=ast.Name(id="range"), args=[_]):
                return 0
            case ast.Call(func=ast.Name(id="range"), args=[start, *_]):
                return self._try(start)
            case ast.Tuple(elts=[first, *_]) | ast.List(elts=[first, *_]):
                return self._try(first)
        return NotKnown

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.values.pop(target.id, None)
            if value is not NotKnown:
                self.values[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            known = isinstance(value, tuple) and len(value) == len(target.elts)
            for position, one in enumerate(target.elts):
                self._assign(one, value[position] if known else NotKnown)

    def _try(self, node: ast.expr) -> Any:
        try:
            return self._value(node)
        except NotKnown:
            return NotKnown

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Tuple(elts=elements):
                return tuple(self._try(element) for element in elements)
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="copy")) if self._is_array(name):
                return self.values[name]
            case ast.Call(func=ast.Attribute(attr=function), args=[first, *rest], keywords=keywords):
                if function in _LIKE | _OF_SHAPE:
                    dtype = next((k.value for k in keywords if k.arg == "dtype"), None)
                    if dtype is None and len(rest) > (function in ("full", "full_like")):
                        dtype = rest[-1]
                    return self._made(node, function, first, dtype)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if self._is_array(name):
                return self._view(node, self.values[name], index)
        try:
            return evaluate(node, self.values)
        except UnsupportedSetup:
            pass
        except Exception:
            raise NotKnown(ast.unparse(node)) from None
        raise NotKnown(ast.unparse(node))

    def _is_array(self, name: str) -> bool:
        return isinstance(self.values.get(name), np.ndarray)

    def _made(self, node: ast.expr, function: str, first: ast.expr, dtype: ast.expr | None) -> Any:
        kind = np.dtype(float)
        try:
            if dtype is not None:
                given = self._value(dtype) if isinstance(dtype, ast.Name | ast.Constant) else self._dtype(dtype)
                kind = np.dtype(given)
            if function in _OF_SHAPE:
                return np.broadcast_to(np.ones((), kind), self._value(first))
            like = self._value(first)
            return np.broadcast_to(np.ones((), kind if dtype is not None else like.dtype), like.shape)
        except NotKnown:
            raise
        except Exception:
            raise NotKnown(ast.unparse(node)) from None

    def _dtype(self, node: ast.expr) -> Any:
        """``u.dtype`` and ``np.float32``"""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="dtype") if self._is_array(name):
                return self.values[name].dtype
            case ast.Attribute(value=ast.Name(id=name), attr=kind) if self.values.get(name) is np:
                return getattr(np, kind)
        raise NotKnown(ast.unparse(node))

    def _view(self, node: ast.expr, array: Any, index: ast.expr) -> Any:
        elements = index.elts if isinstance(index, ast.Tuple) else [index]
        try:
            found = array[tuple(self._index(element) for element in elements)]
        except NotKnown:
            raise
        except Exception:
            raise NotKnown(ast.unparse(node)) from None
        if not found.shape and found.dtype.kind in "iu":  # by which loops may end and elements be selected
            raise NotKnown(ast.unparse(node))
        return found

    def _index(self, element: ast.expr) -> Any:
        if isinstance(element, ast.Slice):
            ends = (element.lower, element.upper, element.step)
            return slice(*(None if end is None else self._value(end) for end in ends))
        return self._value(element)
