"""Double buffers for variables that the prologue writes while their old values are still needed.

The early statements work on a second buffer under another name; at their original place the variable takes over exactly the
elements that they wrote. Which these are must be known:

* ALL: the early statements certainly write every element first; the whole second buffer is taken over.
* RANGES: they write only elements that counters pass (written_ranges.py); those ranges are taken over.
* COPY: nothing else writes the variable in between. The second buffer starts as a copy, and all of it is taken over. Memory
  behind a pointer is copied only if it holds the transfer's counts or displacements, one per rank: other memory may be large.

If the transfer sends what counters passed, and nothing accesses it before, it may be sent from the second buffer (``sent``).
The variable takes over what was written during the transfer, and the next early work uses a third buffer.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lapwing.affine.affine import Affine
from lapwing.affine.intersection import covers
from lapwing.affine.sections import Range, Section
from lapwing.overlap import mpi
from lapwing.overlap.analysis.dependence import may_overlap
from lapwing.overlap.analysis.effects.effects import Effects
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.written_ranges import WrittenRanges, written_ranges
from lapwing.overlap.ir.accesses import Access, Memory
from lapwing.overlap.ir.expressions import (
    Assignment,
    Constant,
    Element,
    Expression,
    Invocation,
    Name,
    Number,
    Storage,
    Symbol,
    Unread,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, message_of
from lapwing.overlap.ir.statements import Assign, Call, Statement
from lapwing.overlap.source.spans import Source, Span
from lapwing.overlap.transforms.software_pipelining.prologue import Prologue


class Taken(enum.Enum):
    ALL = "all"
    RANGES = "ranges"
    COPY = "copy"


@dataclass(frozen=True)
class Allocation:
    """The only statement that allocates a pointer's memory. ``target``: where it names the pointer; ``sizes``: where its
    arguments are, whose product is the size in bytes."""

    statement: Statement
    procedure: Procedure
    target: Span
    sizes: tuple[Span, ...]


@dataclass(frozen=True)
class DoubleBuffer:
    """A variable with a second buffer. ``spots``: where the early statements name it. ``ranges``: for RANGES. ``allocation``:
    if it is a pointer."""

    symbol: Symbol
    taken: Taken
    spots: tuple[Span, ...]
    ranges: WrittenRanges | None = None
    allocation: Allocation | None = None
    sent: bool = False


@dataclass(frozen=True)
class Obstacle:
    """Why the early statements cannot all be early. ``statements``: the ones responsible."""

    obligation: str
    found: str
    advice: str
    where: Span | None
    statements: tuple[Statement, ...]


def is_own(access: Access, procedure: Procedure) -> bool:
    """Whether the access is to a variable of which every call has its own instance."""
    symbol = access.symbol
    if symbol is None or access.through or symbol.target or all(symbol != s for s in procedure.symbols.values()):
        return False
    return symbol.storage is Storage.LOCAL or (symbol.storage is Storage.ARGUMENT and symbol.by_value)


class DoubleBufferFinder:
    """``between``: all accesses from the transfer's start to the early statements' original place."""

    def __init__(self, analysis: Analysis, work: Prologue, transfer: Call, between: Sequence[Access]) -> None:
        self._analysis = analysis
        self._work = work
        self._transfer = transfer
        self._between = [replace(access, section=None) for access in between]
        self._memories: dict[Symbol, frozenset[Memory]] = {}
        self._procedure = work.procedure
        self._source = analysis.program.sources[work.procedure.source]

    def find(self) -> tuple[DoubleBuffer, ...] | Obstacle:
        """The double buffers that let the early statements run in between, or what is in the way."""
        needed: dict[Symbol, bool] = {}
        for statement, effects in zip(self._work.early, self._work.effects, strict=True):
            for access in effects.accesses:
                if is_own(access, self._procedure):
                    continue
                whole = replace(access, section=None)
                others = [o for o in self._between if self._clash(whole, o)]
                if not others:
                    continue
                obstacle = self._unbuffered(access, others, statement)
                if obstacle is not None:
                    return obstacle
                assert access.symbol is not None
                written = any(o.writes for o in others)
                needed[access.symbol] = needed.get(access.symbol, False) or written
        double_buffers = []
        for symbol, written in needed.items():
            double_buffer = self._double_buffer(symbol, written)
            if isinstance(double_buffer, Obstacle):
                return double_buffer
            double_buffers.append(double_buffer)
        return tuple(double_buffers)

    def _clash(self, one: Access, other: Access) -> bool:
        return (one.writes or other.writes) and may_overlap(one, other, self._analysis.aliases)

    def _unbuffered(self, access: Access, others: Sequence[Access], statement: Statement) -> Obstacle | None:
        name = access.symbol.name if access.symbol is not None else "memory"
        if access.symbol is None or not self._written(access.symbol, access.through):
            return Obstacle(
                "the next iteration's early work needs nothing that the rest of this iteration computes",
                f"{name} is written in between",
                f"keep what the rest of the iteration writes apart from {name}",
                others[0].where,
                (statement,),
            )
        return None

    def _written(self, symbol: Symbol, through: bool) -> bool:
        return any(
            a.writes and a.symbol == symbol and a.through == through for e in self._work.effects for a in e.accesses
        )

    # ---- one variable -------------------------------------------------------------------------------------------------

    def _double_buffer(self, symbol: Symbol, written: bool) -> DoubleBuffer | Obstacle:
        users = self._users(symbol)
        why = self._cannot_be_renamed(symbol, users)
        spots = self._spots(symbol)
        if why is None and spots is None:
            why = "a macro or a header names it"
        if why is not None:
            return self._no_home(symbol, why, users)
        allocation = allocation_of(self._analysis, symbol, self._procedure.source) if symbol.pointer else None
        if symbol.pointer and allocation is None:
            return self._no_home(symbol, "its memory does not come from one malloc in the same file", users)
        double_buffer = DoubleBuffer(symbol, Taken.COPY, spots or (), allocation=allocation)
        ranges = self._ranges(symbol, users)
        if ranges is not None:
            double_buffer = replace(double_buffer, taken=Taken.RANGES, ranges=ranges)
            return replace(double_buffer, sent=self._is_sent(double_buffer))
        if not symbol.pointer and self._is_written_first(symbol, users):
            return replace(double_buffer, taken=Taken.ALL)
        if not written and (not symbol.pointer or symbol in self._rows_of_ranks()):
            return double_buffer
        return Obstacle(
            "what the early work writes is known to the element",
            f"not known which elements of {symbol.name} are written",
            "write the whole array, or only at counters that count up (x[p[k]++] = v)",
            users[0].span,
            tuple(users),
        )

    def _users(self, symbol: Symbol) -> list[Statement]:
        """The early statements that access the variable, or what it points to."""
        return [
            s
            for s, e in zip(self._work.early, self._work.effects, strict=True)
            if any(self._concerns(a, symbol) for a in e.accesses)
        ]

    def _concerns(self, access: Access, symbol: Symbol) -> bool:
        if access.symbol == symbol:
            return access.through == symbol.pointer
        aliases = self._analysis.aliases
        memory = self._memory(symbol)
        return any(aliases.may_alias(one, other) for one in access.memory for other in memory)

    def _memory(self, symbol: Symbol) -> frozenset[Memory]:
        """The memory that the early statements access under the symbol's name."""
        if symbol not in self._memories:
            accesses = (a for e in self._work.effects for a in e.accesses)
            self._memories[symbol] = frozenset[Memory]().union(
                *(a.memory for a in accesses if a.symbol == symbol and a.through == symbol.pointer)
            )
        return self._memories[symbol]

    def _no_home(self, symbol: Symbol, why: str, users: Sequence[Statement]) -> Obstacle:
        return Obstacle(
            "what the early work overwrites can be double-buffered",
            f"{symbol.name}: {why}",
            "use a global array of fixed size, or one that is allocated once",
            users[0].span if users else None,
            tuple(users),
        )

    def _cannot_be_renamed(self, symbol: Symbol, users: Sequence[Statement]) -> str | None:
        if (why := not_global_numbers(symbol)) is not None:
            return why
        if any(not isinstance(d.upper, Number) for d in symbol.dimensions or ()):
            return "its size is not a number"
        for effects in self._work.effects:
            for access in effects.accesses:
                if self._concerns(access, symbol) and access.symbol != symbol:
                    return "it is reached under another name, too"
        for name in self._names_outside_elements(symbol):
            return f"its address is used in line {self._source.line_of(name.span.start) if name.span else 0}"
        for statement in users:
            for access in self._in_calls(statement):
                if self._concerns(access, symbol):
                    return "a procedure that is called uses it"
        return None

    def _in_calls(self, statement: Statement) -> Iterator[Access]:
        """The accesses of procedures that the statement calls."""
        for called in _calls(statement):
            callee = self._analysis.program.resolve(called, self._procedure)
            if callee is not None:
                yield from self._analysis.summary(callee).accesses

    def _names_outside_elements(self, symbol: Symbol) -> Iterator[Name]:
        """Uses of an array or pointer other than to select an element."""
        if symbol.dimensions is None and not symbol.pointer:
            return
        rank = len(symbol.dimensions) if symbol.dimensions is not None else 1
        for statement in self._work.early:
            for inner in statement.walk():
                for top in inner.expressions():
                    whole = {id(e.base) for e in top.walk() if isinstance(e, Element) and len(e.indices) == rank}
                    if isinstance(inner, Call) and message_of(inner) is not None:
                        whole |= {id(a) for a in inner.arguments}
                    for e in top.walk():
                        if isinstance(e, Name) and e.symbol == symbol and id(e) not in whole:
                            yield e

    def _spots(self, symbol: Symbol) -> tuple[Span, ...] | None:
        """Where the early statements name it; None if the text does not show all places."""
        spots: dict[Span, None] = {}
        for statement in self._work.early:
            inside: set[Span] = set()
            for e in _expressions(statement):
                if isinstance(e, Name) and e.symbol == symbol:
                    if e.span is None or self._source.text(e.span) != symbol.name:
                        return None
                    inside.add(e.span)
            if len(inside) != _count_words(self._source, statement.span, symbol.name):
                return None
            spots |= dict.fromkeys(sorted(inside, key=lambda s: s.start))
        return tuple(spots)

    # ---- what is written ----------------------------------------------------------------------------------------------

    def _ranges(self, symbol: Symbol, users: Sequence[Statement]) -> WrittenRanges | None:
        if len(users) != 1 or (symbol.dimensions is not None and len(symbol.dimensions) != 1):
            return None
        found = written_ranges(users[0], symbol)
        if found is None or not self._counters_can_be_kept(found.counters):
            return None
        # Nothing else writes the counters meanwhile.
        effects = self._work.effects[next(n for n, s in enumerate(self._work.early) if s is users[0])]
        counters = [a for a in effects.accesses if a.symbol == found.counters]
        strange = [a for a in effects.accesses if a.symbol != found.counters]
        strange += self._in_calls(users[0])
        return None if any(self._clash(a, c) for a in strange for c in counters) else found

    def _rows_of_ranks(self) -> list[Symbol]:
        """The transfer's rows of counts and displacements."""
        message = message_of(self._transfer)
        assert message is not None
        roles = (mpi.Role.COUNTS, mpi.Role.DISPLACEMENTS)
        rows = [a for a, p in zip(self._transfer.arguments, message.parameters, strict=False) if p.role in roles]
        return [row.symbol for row in rows if isinstance(row, Name)]

    def _is_sent(self, double_buffer: DoubleBuffer) -> bool:
        """Whether the transfer can send the second buffer: it names the variable once, and no statement that stays before it
        does."""
        assert double_buffer.ranges is not None
        transfer = self._transfer
        kind = argument_of(transfer, mpi.Role.TYPE)
        named = [e for e in transfer.every_expression() if e == Name(double_buffer.symbol)]
        if transfer.name not in _SENDS_ROWS or len(named) != 1 or not isinstance(kind, Constant):
            return False
        if argument_of(transfer, mpi.Role.SEND_BUFFER) != named[0] or double_buffer.ranges.counters.dimensions is None:
            return False
        staying = [self._analysis.plain(s, self._procedure) for s in self._work.staying]
        return not any(self._concerns(a, double_buffer.symbol) for effects in staying for a in effects.accesses)

    def _counters_can_be_kept(self, counters: Symbol) -> bool:
        kind = counters.type
        if kind.base != "integer" or kind.bytes is None or kind.bytes < 4 or counters.pointer or counters.volatile:
            return False
        if counters.storage is Storage.ARGUMENT or (counters.dimensions is not None and len(counters.dimensions) != 1):
            return False
        return all(isinstance(d.upper, Number) for d in counters.dimensions or ())

    def _is_written_first(self, symbol: Symbol, users: Sequence[Statement]) -> bool:
        """Whether the first statement that accesses the variable overwrites it entirely, without reading it."""
        whole = self._whole(symbol)
        first = self._work.effects[next(n for n, s in enumerate(self._work.early) if s is users[0])]
        accesses = [a for a in first.accesses if a.symbol == symbol]
        if whole is None or any(not a.writes for a in accesses):
            return False
        if symbol.dimensions is None:
            return any(a.must for a in accesses)
        return any(a.must and a.section is not None and covers(a.section, whole) for a in accesses)

    def _whole(self, symbol: Symbol) -> Section | None:
        """The section of all elements of an array whose size is a number; a scalar's has no subscripts."""
        environment = Environment(self._analysis.terms)
        ranges = []
        for dimension in symbol.dimensions or ():
            lower = Affine() if dimension.lower is None else environment.affine(dimension.lower)
            upper = None if dimension.upper is None else environment.affine(dimension.upper)
            if lower is None or upper is None or lower.terms or upper.terms:
                return None
            ranges.append(Range(lower, upper))
        return Section(tuple(ranges))


# ---- memory -----------------------------------------------------------------------------------------------------------


def allocation_of(analysis: Analysis, symbol: Symbol, source: int) -> Allocation | None:
    """The statement that allocates the pointer's memory, if it is in this source, is the only one, and can be repeated."""
    value = analysis.aliases.only_definition(symbol)
    if value is None or not _is_fresh(value) or value.span is None or value.span.source != source:
        return None
    text = analysis.program.sources[source]
    for procedure in analysis.program.procedures.values():
        for statement in procedure.body.walk():
            target = _assigned_value(statement, value.span)
            if target == Name(symbol) and target.span is not None:
                once = _count_words(text, statement.span, symbol.name) == 1
                sizes = _sizes_of(value)
                return Allocation(statement, procedure, target.span, sizes) if once and sizes else None
    return None


def not_global_numbers(symbol: Symbol) -> str | None:
    """Why generated procedures cannot name the variable and copy its elements, or those it points to; None if they can."""
    if symbol.name.startswith("lw_"):
        return "the new procedures' own variables have such names"
    if symbol.storage is not Storage.GLOBAL or symbol.overlay is not None or symbol.volatile:
        return "it is not a global variable of its own"
    kind = symbol.type.target if symbol.pointer else symbol.type
    if kind is None or kind.base not in ("integer", "real", "complex", "logical", "character"):
        return "its elements are not numbers"
    return None


def _assigned_value(statement: Statement, value: Span) -> Expression | None:
    """The expression of the statement at the span ``value``."""
    if isinstance(statement, Assign) and statement.operator is None and statement.value.span == value:
        return statement.target
    if isinstance(statement, Call) and statement.span == value:
        return statement.result
    return None


def _is_fresh(value: Expression) -> bool:
    """Whether it is a call of malloc or calloc whose size can be computed a second time."""
    value = without_casts(value)
    if not isinstance(value, Invocation) or value.name not in ("malloc", "calloc"):
        return False
    return not any(
        isinstance(e, Assignment | Invocation | Unread) for argument in value.arguments for e in argument.walk()
    )


def _sizes_of(value: Expression) -> tuple[Span, ...]:
    """Where the arguments of an allocation are; empty if the text does not show them."""
    call = without_casts(value)
    assert isinstance(call, Invocation)
    spans = [a.span for a in call.arguments]
    return tuple(s for s in spans if s is not None) if None not in spans else ()


def _expressions(statement: Statement) -> Iterator[Expression]:
    for inner in statement.walk():
        yield from inner.every_expression()


def _calls(statement: Statement) -> Iterator[str | None]:
    for inner in statement.walk():
        if isinstance(inner, Call):
            yield inner.name
    for e in _expressions(statement):
        if isinstance(e, Invocation):
            yield e.name


_SENDS_ROWS = frozenset({"MPI_Alltoallv"})  # messages described by counts and displacements
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def _count_words(source: Source, span: Span, word: str) -> int:
    text = _NOT_CODE.sub(" ", source.text(span))
    return len(re.findall(rf"\b{re.escape(word)}\b", text))


def accessed(effects: Iterable[Effects], procedure: Procedure) -> list[Access]:
    """The accesses, without those to the procedure's own variables."""
    return list(dict.fromkeys(a for e in effects for a in e.accesses if not is_own(a, procedure)))
