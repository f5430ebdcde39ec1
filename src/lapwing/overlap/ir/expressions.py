"""Variables, their types, and expressions.

Expressions are frozen and compare by structure, not by position (spans do not count). Two variables are equal if their symbols'
keys are."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from lapwing.overlap.source.spans import Span


class Storage(enum.Enum):
    LOCAL = "local"  # lives as long as one call
    SAVED = "saved"  # static in a function; SAVE, DATA or initialised in a Fortran declaration
    GLOBAL = "global"  # file scope; a module's variable; a COMMON block's
    ARGUMENT = "argument"  # a dummy argument; for Fortran it stands for the caller's variable
    CONSTANT = "constant"  # PARAMETER, enumerator, const with a known value


@dataclass(frozen=True)
class Type:
    """``base``: "integer", "real", "complex", "logical", "character", "pointer", "struct" or "other". ``bytes`` of an
    element, None where unknown. ``text``: as a declaration spells it ("double precision", "INT_TYPE", "real(kind=8)").
    ``target``: what a C pointer points to. ``unsigned``: C's unsigned integers."""

    base: str
    bytes: int | None
    text: str
    target: Type | None = None
    unsigned: bool = False

    @property
    def holds_values(self) -> bool:
        """Whether values of this type are plain: no pointers, and no named components."""
        return self.base in ("integer", "real", "complex", "logical", "character")


@dataclass(frozen=True)
class Dimension:
    """Bounds, both included; None where the declaration leaves them open (``a(:)``, ``a(*)``, ``a[]``)."""

    lower: Expression | None
    upper: Expression | None


@dataclass(frozen=True)
class Symbol:
    """A variable, equal to another if ``key`` is: "file.c::name", "module m::u", "common b::u", "procedure p::i".

    ``dimensions``: None for a scalar (a C pointer too); in the order of the source (Fortran: first is contiguous, C: last).
    ``rows``: of a C pointer to arrays, the dimensions of one of them. ``length``: of a Fortran character, if specified and not
    a known number. ``value``: of a CONSTANT. ``overlay``: variables that share storage have the same overlay (EQUIVALENCE;
    members of COMMON blocks laid out differently in different procedures; in C its own key if the linker gives it another
    variable's); None: it shares with nobody.
    """

    key: str
    name: str = field(compare=False)
    storage: Storage = field(compare=False)
    type: Type = field(compare=False)
    dimensions: tuple[Dimension, ...] | None = field(default=None, compare=False)
    length: Expression | None = field(default=None, compare=False)
    value: Expression | None = field(default=None, compare=False)
    pointer: bool = field(default=False, compare=False)  # a C pointer, or Fortran's POINTER
    allocatable: bool = field(default=False, compare=False)
    target: bool = field(default=False, compare=False)  # Fortran's TARGET, or C: its address is taken
    by_value: bool = field(default=False, compare=False)  # C argument (a pointer's value, too), Fortran's VALUE
    intent: str | None = field(default=None, compare=False)  # "in", "out", "inout"
    optional: bool = field(default=False, compare=False)
    volatile: bool = field(default=False, compare=False)
    overlay: str | None = field(default=None, compare=False)
    where: Span | None = field(default=None, compare=False)
    rows: tuple[Dimension, ...] = field(default=(), compare=False)
    restricted: bool = field(default=False, compare=False)  # C's restrict

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def index_space(self) -> tuple[Dimension, ...] | None:
        """The dimensions that its subscripts index: of an array, or of what a C pointer points to."""
        if self.dimensions is not None or self.type.base != "pointer":
            return self.dimensions
        return (Dimension(Number(0), None), *self.rows)

    @property
    def element(self) -> Type:
        """The type of the elements that its subscripts select."""
        found = self.type
        if self.dimensions is None and found.base == "pointer" and found.target is not None:
            found = found.target
            while found.base == "other" and found.target is not None:
                found = found.target  # an array's element
        return found

    @cached_property
    def alone(self) -> bool:
        """Whether its memory is accessed by its name only: through no pointer, argument or other variable."""
        stored = self.storage in (Storage.LOCAL, Storage.SAVED, Storage.GLOBAL)
        return stored and self.overlay is None and not self.pointer and not self.target


@dataclass(frozen=True)
class Expression:
    """``span``: its place in the source, as spelled there (macros unexpanded); None for generated expressions."""

    span: Span | None = field(default=None, compare=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        """The expressions directly inside this one."""
        return ()

    def walk(self) -> Iterator[Expression]:
        # Nested generators would pass each part up through every level.
        waiting: list[Expression] = [self]
        while waiting:
            expression = waiting.pop()
            yield expression
            waiting += expression.operands()[::-1]


@dataclass(frozen=True)
class Number(Expression):
    value: int | float


@dataclass(frozen=True)
class Text(Expression):
    """A character literal or ``.true.``/``.false.`` as spelled."""

    text: str


@dataclass(frozen=True)
class Name(Expression):
    """A variable: a scalar, or a whole array."""

    symbol: Symbol


@dataclass(frozen=True)
class Constant(Expression):
    """A name that is not a variable of the program and never changes: MPI_COMM_WORLD, MPI_DOUBLE, a procedure's name."""

    name: str


@dataclass(frozen=True)
class Slice(Expression):
    lower: Expression | None
    upper: Expression | None  # included
    step: Expression | None

    def operands(self) -> tuple[Expression, ...]:
        return tuple(part for part in (self.lower, self.upper, self.step) if part is not None)


@dataclass(frozen=True)
class Element(Expression):
    """``base(indices)`` or ``base[i][j]``; an index may be a Slice. ``base`` is a Name in all but odd cases (Member, Deref)."""

    base: Expression
    indices: tuple[Expression, ...]

    def operands(self) -> tuple[Expression, ...]:
        return (self.base, *self.indices)


@dataclass(frozen=True)
class Member(Expression):
    """``base%field``, ``base.field``, ``base->field`` (there base is a Deref). ``type``: of what is not volatile, where it
    is known."""

    base: Expression
    field_name: str
    type: Type | None = field(default=None, compare=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        return (self.base,)


@dataclass(frozen=True)
class Deref(Expression):
    """C's ``*pointer``."""

    pointer: Expression

    def operands(self) -> tuple[Expression, ...]:
        return (self.pointer,)


@dataclass(frozen=True)
class AddressOf(Expression):
    """C's ``&object``."""

    object: Expression

    def operands(self) -> tuple[Expression, ...]:
        return (self.object,)


@dataclass(frozen=True)
class Operation(Expression):
    """``operator`` in C's spelling for both languages: + - * / % ** == != < <= > >= && || ! << >> & | ^ ~, "neg" for a unary
    minus, "?:" for C's conditional and "," for its comma, "sizeof" for a size that is computed from its operands. Fortran's
    .eqv. is ==, .neqv. is !=, // is "//". ``wraps``: the bytes of the unsigned type in which C evaluates it, 0 where it is
    signed.
    """

    operator: str
    arguments: tuple[Expression, ...]
    wraps: int = field(default=0, compare=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        return self.arguments


@dataclass(frozen=True)
class Cast(Expression):
    """A conversion: an explicit cast, or an implicit one of C's that may change an integer.

    ``keeps``: it preserves an integer's value, or maps a negative one to its unsigned counterpart.
    """

    type: Type
    value: Expression
    keeps: bool = field(default=False, compare=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        return (self.value,)


_Value = TypeVar("_Value")


def without_casts(value: _Value) -> Expression | _Value:
    """The innermost converted expression; the expression itself if it is no conversion."""
    inner: Expression | _Value = value
    while isinstance(inner, Cast):
        inner = inner.value
    return inner


@dataclass(frozen=True)
class Invocation(Expression):
    """A function called inside an expression. ``name``: the callee, None if it is reached through a pointer. Fortran's intrinsics
    and C's library functions are invocations too (see libraries/summaries.py for their summaries)."""

    name: str | None
    arguments: tuple[Expression, ...]

    def operands(self) -> tuple[Expression, ...]:
        return self.arguments


@dataclass(frozen=True)
class Assignment(Expression):
    """C: an assignment inside an expression. ``i++``: operator "+", value 1, ``gives_old``. Also of an Assign statement's kin."""

    target: Expression
    operator: str | None
    value: Expression
    gives_old: bool = False

    def operands(self) -> tuple[Expression, ...]:
        return (self.target, self.value)


@dataclass(frozen=True)
class Unread(Expression):
    """An expression the front end does not understand: it may read and write whatever ``mentions`` reaches, and
    anything global.
    """

    text: str
    mentions: tuple[Expression, ...] = ()

    def operands(self) -> tuple[Expression, ...]:
        return self.mentions
