"""Typed expressions: every conversion explicit, every operation with the dtype it computes in.

Made by ``lowering`` from the IR and the argument types, printed as C by ``codegen``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lapwing.affine.affine import Affine


@dataclass(frozen=True)
class Typed:
    """Base; ``dtype`` is the NumPy name of the C representation."""

    dtype: str


@dataclass(frozen=True)
class Literal(Typed):
    value: bool | int | float


@dataclass(frozen=True)
class Scalar(Typed):
    """A parameter, by its name in the nest."""

    name: str


@dataclass(frozen=True)
class Index(Typed):
    """A loop index with the value the user's loop gives it."""

    name: str


@dataclass(frozen=True)
class Local(Typed):
    """A temporary; each assignment makes a new version."""

    name: str
    version: int


@dataclass(frozen=True)
class AffineSubscript:
    """``affine`` over loop indices and symbols, plus ``wrap`` for a negative index that counts from the end."""

    affine: Affine
    wrap: int = 0


@dataclass(frozen=True)
class LookupSubscript:
    """A computed index; ``trap`` is raised when it is out of range, None where it cannot be."""

    index: Typed
    axis: int
    trap: int | None


@dataclass(frozen=True)
class Load(Typed):
    array: str
    subscripts: tuple[AffineSubscript | LookupSubscript, ...]


@dataclass(frozen=True)
class Convert(Typed):
    """Value conversion; one to an integer carries a trap where a value that does not fit is an error."""

    operand: Typed
    trap: int | None = None


@dataclass(frozen=True)
class Operation(Typed):
    """``operator`` on operands that all have the computing dtype; ``trap`` where Python would raise."""

    operator: str
    operands: tuple[Typed, ...]
    trap: int | None = None


@dataclass(frozen=True)
class Select(Typed):
    """``speculable``: both arms may be evaluated whatever the test says, as vectors do."""

    test: Typed
    then: Typed
    otherwise: Typed
    speculable: bool = False


@dataclass(frozen=True)
class TypedStore:
    line: int
    text: str
    target: Load
    value: Typed


@dataclass(frozen=True)
class TypedLocal:
    line: int
    text: str
    local: Local
    value: Typed


@dataclass(frozen=True)
class TypedAccumulate:
    line: int
    text: str
    name: str
    value: Typed


TypedStatement = TypedStore | TypedLocal | TypedAccumulate


@dataclass(frozen=True)
class Accumulator:
    """A reduction: ``operator`` is max, min or +; ``initial`` the value before the loops; ``dtype`` of the result."""

    name: str
    operator: str
    dtype: str
    weak: bool
    initial: bool | int | float

    @property
    def exact_sum(self) -> bool:
        """Float sums are accumulated exactly and rounded once, so no order of adding can show."""
        return self.operator == "+" and self.dtype.startswith("float")


@dataclass(frozen=True)
class Trap:
    """A place where the plain loop would raise: what to tell the user."""

    line: int
    message: str


@dataclass(frozen=True)
class TypedBody:
    statements: tuple[TypedStatement, ...]
    accumulators: tuple[Accumulator, ...]
    traps: tuple[Trap, ...]


def children(node: Typed) -> tuple[Typed, ...]:
    """The direct sub-expressions."""
    match node:
        case Operation(operands=operands):
            return operands
        case Convert(operand=operand):
            return (operand,)
        case Select(test=test, then=then, otherwise=otherwise):
            return (test, then, otherwise)
        case Load(subscripts=subscripts):
            return tuple(s.index for s in subscripts if isinstance(s, LookupSubscript))
    return ()


def walk(node: Typed) -> Iterator[Typed]:
    """The expression and all its sub-expressions."""
    yield node
    for child in children(node):
        yield from walk(child)


def loads(statement: TypedStatement) -> frozenset[Load]:
    """The array elements a statement reads."""
    return frozenset(node for node in walk(statement.value) if isinstance(node, Load))
