"""The context of all transformations: the program with its analyses, the options, and the notes of what was done or refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from lapwing.overlap import mpi
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.expressions import (
    Assignment,
    Constant,
    Expression,
    Invocation,
    Name,
    Storage,
    Symbol,
    Unread,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import has_messages, message_of
from lapwing.overlap.ir.statements import Call, Statement, definitions
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.report.outcome import Options
from lapwing.overlap.source.spans import Span


@dataclass(frozen=True)
class Note:
    """At ``site`` (an MPI call's span), ``transformation`` was made, or refused because ``obligation`` failed."""

    site: Span
    transformation: str
    text: str  # what was done, or what was found
    made: bool
    obligation: str = ""
    where: Span | None = None
    advice: str = ""


@dataclass
class Context:
    """One program being rewritten. ``slots``: how many slots were assigned to communications, by file."""

    analysis: Analysis
    options: Options
    notes: dict[Note, None] = field(default_factory=dict)  # in order, without duplicates
    slots: dict[int, int] = field(default_factory=dict)

    def allowed(self, transformation: str) -> bool:
        return self.options.transformations is None or transformation in self.options.transformations

    def next_slot(self, source: int) -> int:
        self.slots[source] = self.slots.get(source, 0) + 1
        return self.slots[source]

    def made(self, site: Span, transformation: str, text: str) -> None:
        self.notes[Note(site, transformation, text, True)] = None

    def refuse(
        self, site: Span, transformation: str, obligation: str, found: str, advice: str, where: Span | None = None
    ) -> None:
        self.notes[Note(site, transformation, found, False, obligation, where, advice)] = None

    # ---- queries that several transformations share -------------------------------------------------------------------

    def basic_type(self, argument: Expression) -> frozenset[str] | None:
        """The basic, contiguous MPI types that an argument may denote, by name; None if it may be another."""
        argument = without_casts(argument)
        if isinstance(argument, Constant):
            return frozenset({argument.name}) if argument.name in mpi.TYPE_SIZES else None
        if not isinstance(argument, Name):
            return None
        symbol = argument.symbol
        hidden = symbol.target or symbol.overlay is not None or symbol.pointer or symbol.storage is Storage.ARGUMENT
        return None if hidden else self._assigned_types.get(symbol.key)

    @cached_property
    def _assigned_types(self) -> dict[str, frozenset[str]]:
        """The variables that are assigned only basic types, by key, with these types."""
        program = self.analysis.program
        values: dict[str, set[str | None]] = {}
        by_statements = (
            (symbol.key, value)
            for procedure in program.procedures.values()
            for s in procedure.body.walk()
            for symbol, value in chain(definitions(s), _handed_out(s, language_of_procedure(program, procedure)))
        )
        for key, value in chain(program.initial.items(), by_statements):
            values.setdefault(key, set()).add(value.name if isinstance(value, Constant) else None)
        return {key: frozenset(map(str, types)) for key, types in values.items() if types <= mpi.TYPE_SIZES.keys()}

    @cached_property
    def can_drain(self) -> bool:
        """Whether the program can wait for communication in flight wherever it finalizes MPI: the statements that do so are
        visible, and nothing requires earlier completion."""
        program = self.analysis.program
        everything = [s for procedure in program.procedures.values() for s in procedure.body.walk()]
        hidden = any(
            isinstance(e, Invocation) and e.name is not None and _ends_mpi(e.name)
            for s in everything
            for e in s.every_expression()
        )
        ends = [s for s in everything if isinstance(s, Call) and s.name is not None and _ends_mpi(s.name)]
        # A jump to a label would skip what precedes it.
        shown = not hidden and bool(ends) and all(s.label is None for s in ends)
        return shown and not self.analysis.disconnects

    def wildcard(self, call: Call) -> str | None:
        """The wildcard that the receive has, or may have; None if its source and tag are definite."""
        return self.analysis.wildcards.of(call)


def _ends_mpi(name: str) -> bool:
    message = mpi.lookup(name) if mpi.is_mpi_name(name) else None
    return message is not None and message.name == "MPI_Finalize"


def is_repeatable(call: Call, language: Language) -> bool:
    """Whether its arguments may be evaluated twice, or elsewhere in the program's text: no calls, no assignments."""

    def plain(expression: Expression) -> bool:
        if isinstance(expression, Invocation):
            found = None if expression.name is None else language.library(expression.name)
            return found is not None and found.pure
        return not isinstance(expression, Assignment | Unread)

    return all(plain(e) for e in call.every_expression())


def _handed_out(statement: Statement, language: Language) -> Iterator[tuple[Symbol, None]]:
    """The variables passed to a call that may write them."""
    message = message_of(statement)
    parameters = () if message is None else language.parameters(message)
    for number, argument in enumerate(statement.arguments if isinstance(statement, Call) else ()):
        if isinstance(argument, Name):
            symbol = argument.symbol
            other = message is None and not symbol.by_value and symbol.type.base == "integer"
            if other or (number < len(parameters) and parameters[number].writes):
                yield symbol, None


def procedures_with_messages(analysis: Analysis) -> Iterable[Procedure]:
    for procedure in analysis.program.procedures.values():
        if has_messages(procedure):
            yield procedure
