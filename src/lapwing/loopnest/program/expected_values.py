"""What a driver passes to its regions, as far as that follows from its arguments without running it.

Loops are followed in their first round, branches one after the other: what is found is what is likely, for plans.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.program.names import bound_names
from lapwing.loopnest.program.regions import Region
from lapwing.loopnest.setup import UnsupportedSetup, evaluate

_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "copy", "array", "ascontiguousarray"})
_OF_SHAPE = frozenset({"zeros", "ones", "empty", "full"})


class NotKnown(Exception):
    """A value that only a run can tell; the text is the expression."""


def expected_inputs(
    statements: Sequence[ast.stmt], regions: Sequence[Region], values: Mapping[str, Any]
) -> dict[str, list[Any] | str]:
    """The inputs of every region by its name, arrays as ArrayShape; or the expression that is not known.

    statements: of the driver's body. values: arguments and what the function sees outside of itself.
    """
    following = _Following(regions, {name: _dummy(value) for name, value in values.items()})
    following.block(statements)
    return following.found


def _dummy(value: Any) -> Any:
    """An array without memory in the place of one."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape and hasattr(value, "dtype"):
        return np.broadcast_to(np.empty((), np.dtype(value.dtype)), shape)
    return value


class _Following:
    def __init__(self, regions: Sequence[Region], values: dict[str, Any]) -> None:
        self.regions = {id(region.statement): region for region in regions}
        self.values = values
        self.found: dict[str, list[Any] | str] = {}

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
                self._assign(target, self._first_of(iterated))
                self.block(body)
            case ast.While(body=body) | ast.With(body=body) | ast.If(body=body):
                self.block(body)
                self.block(getattr(node, "orelse", []))
            case ast.Try(body=body, finalbody=last):
                self.block([*body, *last])
            case ast.Expr() | ast.Assert() | ast.Return():
                pass
            case _:
                self._forget(node)

    def _region(self, region: Region) -> None:
        try:
            values = [self._value(expression) for expression in region.outlined.inputs]
        except NotKnown as expression:
            self.found[region.name] = str(expression)
            return
        self.found[region.name] = [
            ArrayShape(v.dtype.name, v.shape) if isinstance(v, np.ndarray) and v.shape else v for v in values
        ]

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
                return np.broadcast_to(np.empty((), kind), self._value(first))
            like = self._value(first)
            return np.broadcast_to(np.empty((), kind if dtype is not None else like.dtype), like.shape)
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
            return array[tuple(self._index(element) for element in elements)]
        except NotKnown:
            raise
        except Exception:
            raise NotKnown(ast.unparse(node)) from None

    def _index(self, element: ast.expr) -> Any:
        if isinstance(element, ast.Slice):
            ends = (element.lower, element.upper, element.step)
            return slice(*(None if end is None else self._value(end) for end in ends))
        return self._value(element)
