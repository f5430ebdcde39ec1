"""Expressions of a random program, the same for C and Fortran. Python's operators write them.

Arrays count from 0 here. A Fortran array may be declared with any lower bound, and its indices are printed in reverse, so that
the last index written is the contiguous one in both languages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any


class Arithmetic:
    """Python's operators make terms."""

    def __add__(self, other: Any) -> Any:
        return shifted(self, other) if isinstance(other, int) else Term("+", (self, lift(other)))

    def __radd__(self, other: Any) -> Term:
        return Term("+", (lift(other), self))

    def __sub__(self, other: Any) -> Any:
        return shifted(self, -other) if isinstance(other, int) else Term("-", (self, lift(other)))

    def __mul__(self, other: Any) -> Term:
        return Term("*", (self, lift(other)))

    def __rmul__(self, other: Any) -> Term:
        return Term("*", (lift(other), self))

    def __truediv__(self, other: Any) -> Term:
        return Term("/", (self, lift(other)))

    def __mod__(self, other: Any) -> Term:
        return Term("mod", (self, lift(other)))

    def __lt__(self, other: Any) -> Term:
        return Term("<", (self, lift(other)))

    def __gt__(self, other: Any) -> Term:
        return Term(">", (self, lift(other)))

    def equals(self, other: Any) -> Term:
        return Term("==", (self, lift(other)))

    def differs(self, other: Any) -> Term:
        return Term("!=", (self, lift(other)))


@dataclass(frozen=True)
class Term(Arithmetic):
    """``operator``: a binary one, "mod", "number", "constant", "at" (array, indices), "call" (name, arguments), "double", "int"
    (truncation), "abs" (of a double), "pick" (a status, its field)."""

    operator: str
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Variable(Arithmetic):
    """``kind``: "double", "int", "request", "status", "comm" or "type". ``first``: the lower bound in Fortran.

    ``place``: "local", "saved" (keeps its value between calls), "shared" (global) or "main" (the main program's, passed to
    whoever uses it).
    """

    name: str
    kind: str
    shape: tuple[Any, ...] = ()
    first: int = 0
    place: str = "local"
    overlays: tuple[str, int] | None = None  # the array it is an alias of, and from which element on

    def elements(self) -> Any:
        """How many there are."""
        first, *others = map(lift, self.shape)
        return reduce(mul, others, first)

    def __getitem__(self, indices: Any) -> Term:
        indices = indices if isinstance(indices, tuple) else (indices,)
        return Term("at", (self, *map(lift, indices)))


def lift(value: Any) -> Term | Variable:
    if isinstance(value, Term | Variable):
        return value
    return Term("constant", (value,)) if isinstance(value, str) else Term("number", (value,))


def is_whole(value: Any) -> bool:
    return isinstance(value, Term) and value.operator == "number" and isinstance(value.parts[0], int)


def shifted(value: Any, by: int) -> Any:
    """``value`` + ``by``, constants added up."""
    if isinstance(value, Term) and value.operator in "+-" and is_whole(value.parts[1]):
        number = value.parts[1].parts[0]
        return shifted(value.parts[0], (number if value.operator == "+" else -number) + by)
    if is_whole(value):
        return lift(value.parts[0] + by)
    if by == 0:
        return value
    return Term("+" if by > 0 else "-", (value, lift(abs(by))))


@dataclass(frozen=True)
class Out:
    """An argument of MPI that MPI writes, or a buffer: C passes its address."""

    target: Any


@dataclass(frozen=True)
class Section:
    """A Fortran array section as an argument, (array, (index or (lower, upper), …)); C programs do not have it."""

    array: Variable
    indices: tuple[Any, ...]
