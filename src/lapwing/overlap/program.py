"""The program model: what both front ends read a program into, and what every analysis and motion works on.

A program is a set of procedures; a procedure's body is a tree of statements, each with the exact bytes of the file it
was read from. Whatever a front end cannot read becomes an :class:`Opaque` statement, a barrier for everything.

Expressions and statements are frozen and compared by what they say, not by where they stand (spans do not count). Two
variables are the same if their symbols' keys are.
"""

from __future__ import annotations

import bisect
import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar


@dataclass(frozen=True)
class Source:
    """A file as it is on disk. ``language``: "fortran" or "c" (C++ too); ``form``: "fixed" or "free" for Fortran."""

    path: Path
    data: bytes
    language: str
    form: str | None = None

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Where the file's lines begin, the first at 0."""
        return (0, *(found.end() for found in re.finditer(rb"\n", self.data)))

    def line_of(self, offset: int) -> int:
        """The line, counted from 1, that holds the byte at ``offset``."""
        return bisect.bisect_right(self.line_starts, offset)

    def text(self, span: Span) -> str:
        # One character a byte: columns and offsets survive whatever the encoding is.
        return self.data[span.start : span.end].decode("latin-1")


@dataclass(frozen=True)
class Span:
    """Bytes ``start`` up to, not including, ``end`` of file number ``source`` of the program."""

    source: int
    start: int
    end: int

    def contains(self, other: Span) -> bool:
        return self.source == other.source and self.start <= other.start and other.end <= self.end


# ---- symbols ----------------------------------------------------------------------------------------------------------


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
    ``target``: what a C pointer points to. ``unsigned``: C's whole numbers without a sign."""

    base: str
    bytes: int | None
    text: str
    target: Type | None = None
    unsigned: bool = False

    @property
    def holds_values(self) -> bool:
        """Whether what is of this type leads to nothing else and has no parts with names."""
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
    ``rows``: of a C pointer to arrays, the dimensions of one of them. ``length``: of a Fortran character, where it is given and
    no known number. ``value``: of a CONSTANT. ``overlay``: variables that share storage have the same overlay (EQUIVALENCE;
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
        """The dimensions of what its subscripts count: of an array, or of what a C pointer leads to."""
        if self.dimensions is not None or self.type.base != "pointer":
            return self.dimensions
        return (Dimension(Number(0), None), *self.rows)

    @property
    def element(self) -> Type:
        """The type of an element of what its subscripts count."""
        found = self.type
        if self.dimensions is None and found.base == "pointer" and found.target is not None:
            found = found.target
            while found.base == "other" and found.target is not None:
                found = found.target  # an array's element
        return found

    @cached_property
    def alone(self) -> bool:
        """Whether its memory is reached by its name only: by no pointer, argument or other variable."""
        stored = self.storage in (Storage.LOCAL, Storage.SAVED, Storage.GLOBAL)
        return stored and self.overlay is None and not self.pointer and not self.target


# ---- expressions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """``span``: where it stands in the source, as spelled there (macros unexpanded); None for expressions that were made."""

    span: Span | None = field(default=None, compare=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        """The expressions directly inside this one."""
        return ()

    def walk(self) -> Iterator[Expression]:
        # Generators in generators would hand each part through all that it lies in.
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
    minus, "?:" for C's conditional and "," for its comma, "sizeof" for a size that is reckoned from these values. Fortran's
    .eqv. is ==, .neqv. is !=, // is "//". ``wraps``: the bytes of the unsigned numbers that C compares or
    reckons with, 0 where they have a sign.
    """

    operator: str
    arguments: tuple[Expression, ...]
    wraps: int = field(default=0, compare=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        return self.arguments


@dataclass(frozen=True)
class Cast(Expression):
    """A conversion: one that is spelled, or one of C's own that may change a whole number.

    ``keeps``: a whole number stays the same, or one below zero becomes the large one that stands for it without a sign.
    """

    type: Type
    value: Expression
    keeps: bool = field(default=False, compare=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        return (self.value,)


_Value = TypeVar("_Value")


def without_casts(value: _Value) -> Expression | _Value:
    """What is converted, innermost; the expression itself if it is no conversion."""
    inner: Expression | _Value = value
    while isinstance(inner, Cast):
        inner = inner.value
    return inner


@dataclass(frozen=True)
class Invocation(Expression):
    """A function called inside an expression. ``name``: the callee, None if it is reached through a pointer. Fortran's intrinsics
    and C's library functions are invocations too (see known.py for what is known of them)."""

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


# ---- statements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """``span``: from the first byte of the statement (its label, too) to its last, continuation lines and semicolon included,
    indentation, trailing comment and line end not. ``label``: a Fortran statement label or C label on it."""

    span: Span = field(compare=False, kw_only=True)
    label: str | None = field(default=None, kw_only=True)

    def blocks(self) -> tuple[Block, ...]:
        """The blocks directly inside this statement, in the order of the source."""
        return ()

    def expressions(self) -> tuple[Expression, ...]:
        """The expressions directly in this statement, those of its blocks not included."""
        return ()

    def every_expression(self) -> tuple[Expression, ...]:
        """The same with all that they are made of, each before its own. Remembered: most of what is asked asks for these."""
        found: tuple[Expression, ...] | None = self.__dict__.get("_every_expression")
        if found is None:
            found = self.__dict__["_every_expression"] = tuple(e for top in self.expressions() for e in top.walk())
        return found

    def walk(self) -> Iterator[Statement]:
        yield self
        for block in self.blocks():
            yield from block.walk()


@dataclass(frozen=True)
class Block:
    """Statements in order. ``span``: what stands between the header and the end of the statement that holds the block; all its
    statements and the comments around them lie inside. For a C block in braces that is the text between the braces.

    ``form``: "lines" (the usual), "single" (C: one statement without braces; Fortran: the statement after ``if (…)`` on one
    line; span = the
    statement's), or "chain" (the block holds just the If of an ``else if``; nothing may be inserted).
    """

    statements: tuple[Statement, ...]
    span: Span = field(compare=False)
    form: str = field(default="lines", compare=False)

    def walk(self) -> Iterator[Statement]:
        waiting = [*reversed(self.statements)]
        while waiting:
            statement = waiting.pop()
            yield statement
            for block in reversed(statement.blocks()):
                waiting += reversed(block.statements)


@dataclass(frozen=True)
class Assign(Statement):
    """``target = value``, or ``target operator= value`` (``i++`` has operator "+" and value 1)."""

    target: Expression
    value: Expression
    operator: str | None = None

    def expressions(self) -> tuple[Expression, ...]:
        return (self.target, self.value)


@dataclass(frozen=True)
class Call(Statement):
    """A procedure's call, MPI's included. ``result``: where C stores what it returns (``err = f(x);``). ``name``: None if
    it is reached
    through a pointer. Fortran's keyword arguments are put into the callee's order where it is known; ``keywords`` otherwise."""

    name: str | None
    arguments: tuple[Expression, ...]
    result: Expression | None = None
    keywords: tuple[tuple[str, Expression], ...] = ()

    def expressions(self) -> tuple[Expression, ...]:
        named = tuple(value for _, value in self.keywords)
        return (*self.arguments, *named, *((self.result,) if self.result is not None else ()))


@dataclass(frozen=True)
class Evaluate(Statement):
    """C: any other expression as a statement."""

    value: Expression

    def expressions(self) -> tuple[Expression, ...]:
        return (self.value,)


@dataclass(frozen=True)
class Declare(Statement):
    """C: a declaration inside a function, with the initial values it gives: one (variable, value or None) each. ``names``: it is
    one of what is no local variable, too: of a type, an enumerator, a function, a variable of another place."""

    variables: tuple[tuple[Symbol, Expression | None], ...]
    names: bool = field(default=False, kw_only=True)

    def expressions(self) -> tuple[Expression, ...]:
        return tuple(value for _, value in self.variables if value is not None)


@dataclass(frozen=True)
class If(Statement):
    """``else if`` is an ``otherwise`` block of form "chain"."""

    condition: Expression
    then: Block
    otherwise: Block | None = None

    def blocks(self) -> tuple[Block, ...]:
        return (self.then,) if self.otherwise is None else (self.then, self.otherwise)

    def expressions(self) -> tuple[Expression, ...]:
        return (self.condition,)


@dataclass(frozen=True)
class Loop(Statement):
    """A counted loop: ``variable`` runs from ``lower`` to ``upper`` (included) by ``step``, which the body does not assign.
    C: only
    ``for (i = a; i < b; i += c)`` and its like. ``declares``: C99's ``for (int i = …)``. ``wraps``: C compares unsigned
    numbers, so an end below zero is a large one."""

    variable: Symbol
    lower: Expression
    upper: Expression
    step: Expression
    body: Block
    declares: bool = False
    wraps: bool = field(default=False, compare=False, kw_only=True)

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def expressions(self) -> tuple[Expression, ...]:
        return (self.lower, self.upper, self.step)


@dataclass(frozen=True)
class While(Statement):
    """Every other loop. ``parts``: its condition and, for C's for, what comes before and after each turn."""

    parts: tuple[Expression, ...]
    body: Block

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def expressions(self) -> tuple[Expression, ...]:
        return self.parts


@dataclass(frozen=True)
class Select(Statement):
    """``switch`` or ``select case``. A C case that falls through to the next makes the front end give Opaque instead,
    unless it is empty.
    """

    selector: Expression
    cases: tuple[Block, ...]

    def blocks(self) -> tuple[Block, ...]:
        return self.cases

    def expressions(self) -> tuple[Expression, ...]:
        return (self.selector,)


@dataclass(frozen=True)
class Compound(Statement):
    """C: a block in braces as a statement; Fortran: BLOCK, ASSOCIATE without renaming."""

    body: Block

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)


@dataclass(frozen=True)
class Jump(Statement):
    """``kind``: "return", "stop" (ends the program), "goto", "break" (EXIT), "continue" (CYCLE). ``value``: what is returned."""

    kind: str
    to: str | None = None
    value: Expression | None = None

    def expressions(self) -> tuple[Expression, ...]:
        return () if self.value is None else (self.value,)


@dataclass(frozen=True)
class InputOutput(Statement):
    """PRINT, WRITE, READ, OPEN, … of Fortran. (C's printf is a Call that known.py knows.) ``files``: OPEN,
    CLOSE, INQUIRE, FLUSH, or READ of a file: other ranks find what it wrote, or it finds what they did."""

    reads: tuple[Expression, ...]
    writes: tuple[Expression, ...]
    files: bool = False

    def expressions(self) -> tuple[Expression, ...]:
        return (*self.reads, *self.writes)


@dataclass(frozen=True)
class Allocate(Statement):
    """ALLOCATE or DEALLOCATE. ``objects``: what is allocated, with bounds as an Element's Slices, or deallocated, as Names.
    ``reads``: SOURCE= and MOLD=; ``writes``: STAT= and ERRMSG=."""

    objects: tuple[Expression, ...]
    frees: bool = False
    reads: tuple[Expression, ...] = ()
    writes: tuple[Expression, ...] = ()

    def expressions(self) -> tuple[Expression, ...]:
        return (*self.objects, *self.reads, *self.writes)


@dataclass(frozen=True)
class Nothing(Statement):
    """CONTINUE, FORMAT, an empty statement, a directive that changes nothing here."""


@dataclass(frozen=True)
class Opaque(Statement):
    """What the front end could not read, or must not be looked into: it may do anything. ``reason`` goes into the report."""

    reason: str


def is_unread(statement: Statement) -> bool:
    """Whether the statement, apart from those in it, could not be read.

    It may then write variables that it does not seem to name."""
    return isinstance(statement, Opaque) or any(isinstance(e, Unread) for e in statement.every_expression())


def given(statement: Statement) -> Iterator[tuple[Symbol, Expression | None]]:
    """The variables that the statement may write by their names, or hands on the addresses of, and what they are then worth, or
    None: something else. Elements and components are not among them."""
    places: list[Expression] = []  # what may be one of several variables
    match statement:
        case Declare(variables):
            yield from ((symbol, value) for symbol, value in variables if value is not None)
        case Assign(target=Name(symbol), value=value, operator=operator):
            yield symbol, value if operator is None else None
        case Call(result=Name(symbol), name=name, arguments=arguments):
            yield symbol, Invocation(name, arguments)
        case Assign(target=place) | Call(result=Expression() as place):
            places.append(place)
        case Loop(variable=variable):
            yield variable, None
        case InputOutput(writes=writes):
            places += writes
    for e in statement.every_expression():
        match e:
            case Assignment(Name(symbol), operator, value):
                yield symbol, value if operator is None else None
            case Assignment(place) | AddressOf(place):
                places.append(place)
    for place in places:
        if not isinstance(place, Element | Member | Deref):
            yield from ((part.symbol, None) for part in place.walk() if isinstance(part, Name))


# ---- procedures and programs ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Procedure:
    """``kind``: "program", "subroutine" or "function" (C: "function"). ``key``: unique; "file.c::f" for a static function,
    "f" for an
    external one, "module m::f" for a module's. ``parameters``: dummy arguments in order. ``symbols``: every variable it can
    name, by
    name (Fortran: lower case).

    Offsets for whoever inserts text: ``uses_end`` is where a USE may be added (Fortran: after the last USE, or after the header),
    ``declarations_end`` where a declaration may (Fortran: before the first executable statement; C: after the opening brace).
    ``mpi_interface``: "mpif.h", "mpi", "mpi_f08" or None. ``host``: the module or procedure it is contained in.
    ``line_length``: of its source form (72, 132) or None. ``open_hosts``: hosts like that of which it sees every procedure that
    is not private, one that is added, too. ``inline``: a function of C, not static, of which there may be no definition to call.
    """

    name: str
    key: str
    kind: str
    source: int
    span: Span
    parameters: tuple[Symbol, ...]
    symbols: Mapping[str, Symbol] = field(compare=False)
    body: Block
    result: Symbol | None = None
    header_end: int = 0
    uses_end: int = 0
    declarations_end: int = 0
    mpi_interface: str | None = None
    host: str | None = None
    variadic: bool = False
    line_length: int | None = None
    open_hosts: frozenset[str] = frozenset()
    inline: bool = False


@dataclass(frozen=True)
class Declaration:
    """A C function's as a source sees it, without body. ``start``: where its words stand in that source, or the #include of the
    header that has them. ``macros``: those among its words."""

    source: int
    start: int
    text: str
    macros: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Problem:
    """Something a reader of the report should know of the source: what could not be read, and what that means."""

    path: Path
    line: int
    message: str


@dataclass(frozen=True)
class LeftOut:
    """Conditional compilation, from ``#if`` to ``#endif``, of which something is not compiled, or would not be with other macros.
    ``pieces``: what is not. ``whole``: nothing is compiled there, so its lines mean no more than a comment. ``macros``: those
    that decide, and are taken as undefined."""

    span: Span
    pieces: tuple[Span, ...]
    whole: bool
    macros: frozenset[str] = frozenset()


def taken_as_undefined(assumed: Iterable[tuple[int, frozenset[str]]]) -> dict[str, frozenset[int]]:
    """The macros that were taken as undefined, with the numbers of the files in which that decides what is compiled.

    ``assumed``: such macros of a region, with its file's number.
    """
    found: dict[str, set[int]] = {}
    for source, macros in assumed:
        for name in macros:
            found.setdefault(name, set()).add(source)
    return {name: frozenset(found[name]) for name in sorted(found)}


@dataclass(frozen=True)
class Program:
    """``procedures`` by key. ``globals``: every variable outside procedures, by key. ``initial``: values C's file-scope
    declarations give. ``mains``: where main programs stand, those included that ``procedures`` has no room for. ``included``: the
    text of C headers that are no sources, the system's and MPI's apart, and the values of macros that are given from outside.
    ``declarations``: of C's functions outside of others, by their keys; their definitions' heads are among them. ``left_out``:
    what conditional compilation leaves out of what was read, from each ``#if`` to its ``#endif``. ``undefined``: the macros that
    are taken as undefined, with the numbers of the files in which that decides what is compiled. ``libraries``: C's functions
    that headers of the system's declare, but for MPI's, and whether they may be given functions to call.
    """

    sources: tuple[Source, ...]
    procedures: Mapping[str, Procedure]
    globals: Mapping[str, Symbol]
    problems: tuple[Problem, ...] = ()
    initial: Mapping[str, Expression] = field(default_factory=dict)
    mains: tuple[Span, ...] = ()
    included: tuple[bytes, ...] = ()
    declarations: Mapping[str, Sequence[Declaration]] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    undefined: Mapping[str, frozenset[int]] = field(default_factory=dict)
    libraries: Mapping[str, bool] = field(default_factory=dict)

    def resolve(self, name: str | None, caller: Procedure) -> Procedure | None:
        """The procedure that ``name`` means inside ``caller``, None if it is not in the program or not certain."""
        if name is None:
            return None
        hosts = [f"procedure {caller.key}", f"{caller.host}"] if caller.host else [f"procedure {caller.key}"]
        path = self.sources[caller.source].path.name
        for key in (*(f"{host}::{name}" for host in hosts), f"{path}::{name}", name):
            if key in self.procedures:
                return self.procedures[key]
        found = self._in_modules.get(name, ())
        return found[0] if len(found) == 1 else None

    def is_left_out(self, source: int, offset: int) -> bool:
        """Whether a byte of a file lies where conditional compilation leaves nothing."""
        number = bisect.bisect_right(self._emptied[source], offset, key=lambda span: span.start) - 1
        return number >= 0 and offset < self._emptied[source][number].end

    @cached_property
    def _emptied(self) -> Mapping[int, Sequence[Span]]:
        """From ``#if`` to ``#endif``, where nothing is compiled, by files and in order; inner ones belong to the outer."""
        found: dict[int, list[Span]] = {number: [] for number in range(len(self.sources))}
        for one in sorted(self.left_out, key=lambda one: (one.span.source, one.span.start)):
            spans = found[one.span.source]
            if one.whole and not (spans and one.span.start < spans[-1].end):
                spans.append(one.span)
        return found

    @cached_property
    def _in_modules(self) -> Mapping[str, Sequence[Procedure]]:
        """The modules' procedures by name."""
        found: dict[str, list[Procedure]] = {}
        for key, procedure in self.procedures.items():
            if key.startswith("module "):
                found.setdefault(procedure.name, []).append(procedure)
        return found
