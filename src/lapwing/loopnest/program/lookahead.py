"""Loops of the driver that sweep until something holds: several sweeps are done at once, ahead of the tests.

    before                                   after
    for k in range(most):                    over = range(most)
        change = 0.0                         ahead = lookahead(over, {"tol": tol})
        change = region(u, tol, change)      try:
        if change < tol:                         for k in over:
            break                                    change = 0.0
                                                     change = ahead((u, change), (u, change))
                                                     if change < tol:
                                                         break
                                             finally:
                                                 ahead.end()

Sweeps that are done at once need not wait for one another. Whether they were too many shows in what the tests say of the
reductions of each: then the arrays are as they were before, and those that the loop has come to are done again (speculation with
rollback; of loops: Rauchwerger and Padua, IEEE Transactions on Parallel and Distributed Systems 10, 1999). So nothing else in the
loop may look at the arrays: it computes with numbers, keeps them in lists and other arrays, and prints them.
"""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from lapwing.loopnest import ir
from lapwing.loopnest.functions import canonical_name
from lapwing.loopnest.inlining.inliner import meaning
from lapwing.loopnest.normalisation.names import is_range
from lapwing.loopnest.program.surroundings import Around, Control
from lapwing.loopnest.program.sweeps import Swept, constant_names, swept
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.source import FunctionSource

_SIZES = frozenset({"shape", "ndim", "size"})  # of arrays, whatever their elements are
_CLOCKS = (time.perf_counter, time.monotonic, time.time)
_MODULES = (math, np, time)


@dataclass(frozen=True)
class Lookahead:
    """statement: the loop. region_name: of what sweeps, in its body. nest: that region with a loop around it, whose last
    parameter is how many iterations that has; inputs: what the driver passes for the others.

    numbers: names of what the rest of the loop computes with; lists, arrays: of what it appends numbers to, and of what it has
    elements of; sized: of what it asks the size of. passed: those of them that are the function's own and have a value before
    the loop; from_outside: those that are not, and ``outside`` tells what they stand for."""

    statement: ast.For | ast.While = field(repr=False)
    region_name: str
    nest: FunctionSource = field(repr=False)
    inputs: tuple[ast.expr, ...] = field(repr=False)
    numbers: frozenset[str]
    lists: frozenset[str]
    arrays: frozenset[str]
    sized: frozenset[str]
    passed: tuple[str, ...]
    from_outside: frozenset[str]
    outside: Callable[[str], Any] = field(repr=False)

    @cached_property
    def is_counted(self) -> bool:
        """Whether the loop does all of its iterations."""
        nodes = [node for s in self.statement.body for node in ast.walk(s)]
        return isinstance(self.statement, ast.For) and not any(isinstance(n, ast.Break | ast.Return) for n in nodes)

    @property
    def name(self) -> str:
        return self.nest.tree.name


def lookahead_of(
    around: Around, statement: ast.For | ast.While, region: ast.stmt, loops: ir.LoopNest, control: Control
) -> Lookahead | None:
    """A loop around one region, if its sweeps may be done ahead; None where they may not. loops: the region's; control: inside of
    the loop."""
    if statement.orelse or loops.sweep_depth or len(loops.loops) < 2 or not isinstance(region, ast.For):
        return None
    if isinstance(statement, ast.For) and not is_range(statement.iter):
        return None
    if bound_names([statement]) - around.locals:
        return None  # what other functions see, and regions look at
    rest = [s for s in statement.body if s is not region]
    if len(rest) == len(statement.body):
        return None
    others = _Others(around)
    try:
        others.heading(statement)
        others.block(rest)
    except _LooksAtArraysError:
        return None
    found = swept(around, region, control, f"{loops.name}_ahead")
    if found is None or not found.arrays <= found.inputs.keys() or not _is_alike(found, statement, region):
        return None
    swept_over = {value.id for n, value in found.inputs.items() if n in found.arrays and isinstance(value, ast.Name)}
    if swept_over & (others.arrays | others.numbers):
        return None
    names = others.numbers | others.lists | others.arrays | others.sized
    used = names & around.locals
    surely = around.assigned_before(statement).surely
    if (used - surely) & (around.set_outside(statement) | others.lists | others.arrays | others.sized):
        return None  # it may have no value yet when the loop begins
    inputs, passed = tuple(found.inputs.values()), tuple(sorted(used & surely))
    outside = partial(meaning, around.source.function)
    return Lookahead(
        statement, loops.name, found.source, inputs, others.numbers, others.lists, others.arrays, others.sized,
        passed, names - around.locals, outside,
    )  # fmt: skip


def _is_alike(found: Swept, statement: ast.For | ast.While, region: ast.stmt) -> bool:
    """Whether a region is given the same in every iteration: of what the loop changes nothing but the numbers that reductions
    begin with, and these are set anew."""
    changing = bound_names([statement])
    starts = set(found.outputs.values())
    anew = set[str]()
    for before in statement.body[: statement.body.index(region)]:
        anew = anew - bound_names([before]) | constant_names(before)
    for parameter, value in found.inputs.items():
        read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        if read & changing and not (parameter in starts and read <= anew):
            return False
    return True


class _LooksAtArraysError(Exception):
    """A statement may do more than compute with numbers."""


class _Others:
    """What the statements around a region name."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self.numbers: frozenset[str] = frozenset()
        self.lists: frozenset[str] = frozenset()
        self.arrays: frozenset[str] = frozenset()
        self.sized: frozenset[str] = frozenset()

    def heading(self, statement: ast.For | ast.While) -> None:
        if isinstance(statement, ast.While):
            self._value(statement.test)
        elif not isinstance(statement.target, ast.Name):
            raise _LooksAtArraysError

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass() | ast.Break() | ast.Continue() | ast.Return(value=None):
                pass
            case ast.Assign(targets=targets, value=value):
                self._value(value)
                for target in targets:
                    self._target(target)
            case ast.AugAssign(target=target, value=value):
                self._value(value)
                self._target(target)
                self._value(target)
            case ast.AnnAssign(target=ast.Name(), value=value):
                if value is not None:
                    self._value(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self._value(test)
                self.block([*body, *orelse])
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=ast.Constant() as value):
                self._value(value)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[])
            ):
                self.lists |= {name}
                self._value(value)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=arguments, keywords=keywords)):
                if self._meaning("print") is not print:
                    raise _LooksAtArraysError
                for argument in (*arguments, *(keyword.value for keyword in keywords)):
                    self._value(argument)
            case _:
                raise _LooksAtArraysError

    def _target(self, target: ast.expr) -> None:
        match target:
            case ast.Name():
                pass
            case ast.Tuple(elts=elements):
                for element in elements:
                    self._target(element)
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                self.arrays |= {name}
                self._value(index)
            case _:
                raise _LooksAtArraysError

    def _value(self, value: ast.expr) -> None:
        match value:
            case ast.Constant():
                pass
            case ast.Name(id=name):
                self.numbers |= {name}
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if attribute in _SIZES:
                self.sized |= {name}
            case ast.Attribute(value=ast.Name()):
                if not isinstance(self._found_in_module(value), float):
                    raise _LooksAtArraysError
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=index):
                self.sized |= {name}
                self._value(index)
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                self.arrays |= {name}
                self._value(index)
            case ast.Call(
                func=ast.Name(id="len"),
                args=[ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name), attr="shape")],
                keywords=[],
            ):
                if self._meaning("len") is not len:
                    raise _LooksAtArraysError
                self.sized |= {name}
            case ast.Call(func=ast.Name() | ast.Attribute(value=ast.Name()) as called, args=arguments, keywords=[]):
                if not self._is_of_numbers(called):
                    raise _LooksAtArraysError
                for argument in arguments:
                    self._value(argument)
            case (
                ast.BinOp()
                | ast.UnaryOp()
                | ast.BoolOp()
                | ast.Compare()
                | ast.IfExp()
                | ast.Tuple()
                | ast.JoinedStr()
                | ast.FormattedValue()
            ):
                for child in ast.iter_child_nodes(value):
                    if isinstance(child, ast.expr):
                        self._value(child)
            case _:
                raise _LooksAtArraysError

    def _meaning(self, name: str) -> Any:
        return None if name in self._around.locals else meaning(self._around.source.function, name)

    def _found_in_module(self, attribute: ast.Attribute) -> Any:
        """What an attribute of a module of functions is; None for those of others."""
        assert isinstance(attribute.value, ast.Name)
        module = self._meaning(attribute.value.id)
        return getattr(module, attribute.attr, None) if any(module is one for one in _MODULES) else None

    def _is_of_numbers(self, called: ast.Name | ast.Attribute) -> bool:
        """Whether what is called makes numbers of numbers, or says what time it is."""
        found = self._meaning(called.id) if isinstance(called, ast.Name) else self._found_in_module(called)
        return any(found is clock for clock in _CLOCKS) or canonical_name(found) is not None
