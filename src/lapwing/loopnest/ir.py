"""The loop nest as data: what the front end makes of a Python function.

Everything is a frozen dataclass. Nothing here knows sizes or dtypes: those come when the nest is bound to arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lapwing.affine.affine import Affine


@dataclass(frozen=True)
class Expression:
    """Base of all expressions; ``line`` is the line in the user's file."""

    line: int = field(compare=False, kw_only=True)


@dataclass(frozen=True)
class Constant(Expression):
    value: bool | int | float


@dataclass(frozen=True)
class Parameter(Expression):
    """A scalar whose value is fixed for a whole call: an argument, a global number, a name set before the loops."""

    name: str


@dataclass(frozen=True)
class LoopIndex(Expression):
    name: str


@dataclass(frozen=True)
class Temporary(Expression):
    """A scalar assigned earlier in the same iteration."""

    name: str


@dataclass(frozen=True)
class Access(Expression):
    """One element of an array. ``affine`` holds, per axis, the subscript as an affine expression, or None for a look-up."""

    array: str
    subscripts: tuple[Expression, ...]
    affine: tuple[Affine | None, ...]
    text: str = field(compare=False)


@dataclass(frozen=True)
class Unary(Expression):
    """``operator`` is one of ``-``, ``+``, ``~``, ``not``."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary(Expression):
    """``operator`` is one of ``+ - * / // % ** & | ^``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """``operator`` is one of ``< <= > >= == !=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Boolean(Expression):
    """``operator`` is ``and`` or ``or``; evaluation stops early as in Python."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Conditional(Expression):
    """``then if test else otherwise``; only the chosen branch is evaluated."""

    test: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True)
class Call(Expression):
    """A call of a supported function, by its canonical name: ``min``, ``math.exp``, ``numpy.sqrt``, ``numpy.float32``."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Statement:
    """One assignment of the loop body; ``text`` is the user's source line."""

    line: int
    text: str


@dataclass(frozen=True)
class Store(Statement):
    target: Access
    value: Expression


@dataclass(frozen=True)
class SetTemporary(Statement):
    name: str
    value: Expression


@dataclass(frozen=True)
class Accumulate(Statement):
    """``name = operator(name, value)`` with operator ``max``, ``min`` or ``+``."""

    name: str
    operator: str
    value: Expression


@dataclass(frozen=True)
class Loop:
    """``for name in range(start, stop, step)`` with step 1 or -1; bounds are affine in outer indices and symbols."""

    name: str
    start: Affine
    stop: Affine
    step: int
    line: int


@dataclass(frozen=True)
class Setup:
    """An assignment before the loops, evaluated once a call from the arguments: ``n, m = u.shape``."""

    targets: tuple[str, ...]
    value: ast.expr = field(compare=False)
    line: int


@dataclass(frozen=True)
class LoopNest:
    """A perfect loop nest.

    ``symbols`` maps the names that occur in affine expressions to the Python expression that gives their value.
    ``sweep_depth`` counts the outermost loops that some written array is not indexed by.
    """

    name: str
    file: str
    line: int
    parameters: tuple[str, ...]
    setups: tuple[Setup, ...]
    loops: tuple[Loop, ...]
    body: tuple[Statement, ...]
    arrays: tuple[str, ...]
    written: tuple[str, ...]
    accumulators: tuple[str, ...]
    returns: tuple[str, ...]
    returns_tuple: bool
    symbols: tuple[tuple[str, ast.expr], ...] = field(compare=False)
    sweep_depth: int

    @property
    def loop_names(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.loops)

    @property
    def symbol_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.symbols)

    @property
    def sweep_loops(self) -> tuple[Loop, ...]:
        return self.loops[: self.sweep_depth]

    @property
    def space_loops(self) -> tuple[Loop, ...]:
        return self.loops[self.sweep_depth :]

    @property
    def stores(self) -> tuple[Store, ...]:
        return tuple(s for s in self.body if isinstance(s, Store))

    def returned(self, results: Mapping[str, Any]) -> Any:
        """What the function returns, from the values of reductions by name."""
        if not self.returns:
            return None
        values = tuple(results[name] for name in self.returns)
        return values if self.returns_tuple else values[0]

    def where(self, line: int) -> str:
        """``file:line`` for messages, with the file as a person would type it."""
        return f"{self.file}:{line}"


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions, in evaluation order."""
    match expression:
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Comparison(left=left, right=right):
            return (left, right)
        case Boolean(operands=operands):
            return operands
        case Conditional(test=test, then=then, otherwise=otherwise):
            return (test, then, otherwise)
        case Call(arguments=arguments):
            return arguments
        case Access(subscripts=subscripts):
            return subscripts
        case _:
            return ()


def reads(expression: Expression) -> tuple[Access, ...]:
    """Every array element the expression may read, left to right, those inside subscripts first."""
    found: list[Access] = []

    def visit(node: Expression) -> None:
        for child in children(node):
            visit(child)
        if isinstance(node, Access):
            found.append(node)

    visit(expression)
    return tuple(found)


def statement_reads(statement: Statement) -> tuple[Access, ...]:
    match statement:
        case Store(target=target, value=value):
            in_subscripts = tuple(a for s in target.subscripts for a in reads(s))
            return (*reads(value), *in_subscripts)
        case SetTemporary(value=value) | Accumulate(value=value):
            return reads(value)
    return ()
