"""Statements: frozen, and compared by structure, not by position (spans do not count)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Deref,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Symbol,
    Unread,
)
from lapwing.overlap.source.spans import Span


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
        """The same with all subexpressions, in preorder. Memoised: most queries need these."""
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
    """Statements in order. ``span``: the text between the header and the end of the statement that holds the block; all its
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
    """C: a declaration inside a function, with the initial values it gives: one (variable, value or None) each. ``names``: it
    also declares something other than local variables: a type, an enumerator, a function, a variable defined elsewhere."""

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
    """Every other loop. ``parts``: its condition and, for C's for, what comes before and after each iteration."""

    parts: tuple[Expression, ...]
    body: Block

    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)

    def expressions(self) -> tuple[Expression, ...]:
        return self.parts


@dataclass(frozen=True)
class Select(Statement):
    """``switch`` or ``select case``. If a nonempty C case falls through to the next, the front end reads it as Opaque."""

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
    """PRINT, WRITE, READ, OPEN, … of Fortran. (C's printf is a Call that libraries/summaries.py knows.) ``files``: OPEN, CLOSE,
    INQUIRE, FLUSH, or READ of a file: it synchronises the file's contents with other ranks."""

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
    """A statement that the front end could not read, or must not look into: it may do anything. ``reason`` goes into the
    report."""

    reason: str


def is_unread(statement: Statement) -> bool:
    """Whether the statement itself, without its blocks, could not be read.

    It may then write variables that it does not visibly name."""
    return isinstance(statement, Opaque) or any(isinstance(e, Unread) for e in statement.every_expression())


def definitions(statement: Statement) -> Iterator[tuple[Symbol, Expression | None]]:
    """The definitions of variables in the statement: variables that it may write by name, or whose address it passes on, with
    the new value, or None if that is unknown. Without elements and components."""
    places: list[Expression] = []  # lvalues that may be one of several variables
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
