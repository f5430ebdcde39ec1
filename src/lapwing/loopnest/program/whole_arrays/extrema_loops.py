"""The largest and the least of an array's elements, found in a loop over them (scalarisation, as in ``element_loops``).

    if np.max(np.abs(u - un)) < tol:        most = np.abs(u[0] - un[0])
        break                           →   for i in range(u.shape[0]):
                                                most = np.maximum(most, np.abs(u[i] - un[i]))
                                            if most < tol:
                                                break

Which zero NumPy gives of 0.0 and -0.0 is not known: so that is for what is compared, and for absolute values.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lapwing.loopnest.normalisation.names import fresh_name
from lapwing.loopnest.program.whole_arrays.element_loops import counts_of_axes, fit, indices_of, loops_over, subscript
from lapwing.syntax_places import placed

_EXTREMA = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum"}
_ABSOLUTES = ("abs", "absolute")
_Element = Callable[[Sequence[ast.expr]], ast.expr]
_Means = Callable[[str, object], bool]


@dataclass
class ExtremaLoops:
    """A loop with loops in the place of such expressions. alike: pairs of arrays that are to have one shape and dtype; edges:
    those that are to have elements."""

    loop: ast.For | ast.While
    alike: list[tuple[str, str]] = field(default_factory=list)
    edges: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Array:
    """What has an element for each of some axes of an array. whole: all of them, or one of each that has an index."""

    name: str
    whole: Sequence[ast.expr]
    element: _Element


def with_extrema_loops(loop: ast.For | ast.While, taken: set[str], means: _Means) -> ExtremaLoops:
    """taken: names; those that are made are added. means: whether a name stands for something around the function."""
    found = ExtremaLoops(copy.deepcopy(loop))
    module = next((name for name in ("np", "numpy") if means(name, np)), None)
    if module is not None:
        writing = _Writing(found, counts_of_axes(loop), taken, means, module)
        found.loop.body = writing.block(found.loop.body)
    return found


@dataclass
class _Writing:
    found: ExtremaLoops
    axes: Mapping[str, int]
    taken: set[str]
    means: _Means
    module: str

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [one for statement in statements for one in self._statement(statement)]

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        match statement:
            case ast.For() | ast.While():
                statement.body, statement.orelse = self.block(statement.body), self.block(statement.orelse)
            case ast.If():
                statement.test = self._expression(statement.test, statement, before)
                statement.body, statement.orelse = self.block(statement.body), self.block(statement.orelse)
            case ast.Assign() | ast.AugAssign():
                statement.value = self._expression(statement.value, statement, before)
        return [*before, statement]

    def _expression(
        self, node: ast.expr, where: ast.stmt, before: list[ast.stmt], is_compared: bool = False
    ) -> ast.expr:
        extremum = self._extremum(node, is_compared)
        if extremum is not None:
            return self._loops(*extremum, where, before)
        for name, value in ast.iter_fields(node):
            compares = isinstance(node, ast.Compare)
            if isinstance(value, ast.expr):
                setattr(node, name, self._expression(value, where, before, compares))
            elif isinstance(value, list):
                value[:] = [
                    self._expression(v, where, before, compares) if isinstance(v, ast.expr) else v for v in value
                ]
        return node

    def _extremum(self, node: ast.expr, is_compared: bool) -> tuple[str, _Array] | None:
        """NumPy's function of two numbers, and what it is to be used on; None where an expression is no extremum."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), args=[over], keywords=[]) if (
                self.means(module, np) and name in _EXTREMA
            ):
                pass
            case ast.Call(func=ast.Attribute(value=over, attr="max" | "min" as name), args=[], keywords=[]):
                pass
            case _:
                return None
        array = self._array(over)
        return (_EXTREMA[name], array) if array and (is_compared or self._is_absolute(over)) else None

    def _is_absolute(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_], keywords=[]):
                return self.means(name, abs)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), args=[_], keywords=[]):
                return self.means(module, np) and name in _ABSOLUTES
        return False

    def _array(self, node: ast.expr) -> _Array | None:
        match node:
            case ast.Name(id=name) if name in self.axes:
                return self._slice(name, [ast.Slice()] * self.axes[name])
            case ast.Subscript(value=ast.Name(id=name)) if name in self.axes:
                slices = indices_of(node)
                return self._slice(name, [*slices, *[ast.Slice()] * (self.axes[name] - len(slices))])
            case ast.Call(args=[operand]) if self._is_absolute(node) and (array := self._array(operand)):
                return _Array(array.name, array.whole, lambda at: ast.Call(node.func, [array.element(at)], []))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=right):
                one, other = self._array(left), self._array(right)
                if one is None or other is None or not fit(one.whole, other.whole, one.name == other.name):
                    return None
                self.found.alike.append((one.name, other.name))
                return _Array(one.name, one.whole, lambda at: ast.BinOp(one.element(at), operator, other.element(at)))
        return None

    def _slice(self, name: str, slices: Sequence[ast.expr]) -> _Array | None:
        """Of axes that are all there, and others at an index."""
        for one in slices:
            whole = isinstance(one, ast.Slice) and one.lower is one.upper is one.step is None
            if not whole and (isinstance(one, ast.Slice) or not isinstance(one, ast.Name | ast.Constant)):
                return None
        if not any(isinstance(one, ast.Slice) for one in slices):
            return None
        return _Array(name, slices, lambda at: subscript(name, slices, at, ast.Load()))

    def _loops(self, function: str, array: _Array, where: ast.stmt, before: list[ast.stmt]) -> ast.expr:
        self.found.edges.add(array.name)
        over = [axis for axis, one in enumerate(array.whole) if isinstance(one, ast.Slice)]
        found = fresh_name(f"{array.name}_{function}", self.taken)
        indices = [fresh_name(f"{array.name}_{axis}", self.taken) for axis in over]
        larger = ast.Attribute(ast.Name(self.module, ast.Load()), function, ast.Load())
        element = array.element([ast.Name(index, ast.Load()) for index in indices])
        value = ast.Call(larger, [ast.Name(found, ast.Load()), element], [])
        inner = loops_over(array.name, array.whole, indices, ast.Assign([ast.Name(found, ast.Store())], value))
        first = ast.Assign([ast.Name(found, ast.Store())], array.element([ast.Constant(0)] * len(over)))
        before += [placed(where, copy.deepcopy(one), with_end=True) for one in (first, inner)]
        return placed(where, ast.Name(found, ast.Load()))
