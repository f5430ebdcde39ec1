"""Wildcard receives (any source or any tag): whether a program has any, and which of its receives may be one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeGuard

from lapwing.overlap import mpi
from lapwing.overlap.dataflow.call_graph import CallGraph, Target
from lapwing.overlap.ir.expressions import Constant, Expression, Invocation, Name, Number, Operation, without_casts
from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Call
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of, language_outside
from lapwing.overlap.languages.spelling import spellings


class Wildcards:
    """The wildcards of a program as it was read.

    A wildcard may come under another name: a variable's, a constant's, a member's or an argument's. But then the sources, or
    headers they include, name it somewhere; or it is a negative number, or from a missing module.
    """

    def __init__(self, program: Program, graph: CallGraph) -> None:
        self._program = program
        self._graph = graph

    @cached_property
    def any(self) -> bool:
        """Whether the program may have any."""
        from_statuses = any(map(_STATUS.search, spellings(self._program.sources, self._program.included)))
        return bool(self._named) or from_statuses or any(map(_is_doubtful, self._arguments()))

    def of(self, call: Call) -> str | None:
        """The wildcard that the receive names, or what may hide one; None if it certainly has none."""
        for argument in map(without_casts, _source_and_tag(call)):
            if _is_wildcard(argument):
                return argument.name
            if _is_doubtful(argument):
                return "what is not known to be a rank or a tag"
            if self._has_other_names and not isinstance(argument, Number | Constant) and not _is_computed(argument):
                return "what may be another name of a wildcard"
        return None

    @cached_property
    def _has_other_names(self) -> bool:
        """Whether a wildcard is named elsewhere than as a receive's argument."""
        direct = {a.span for a in map(without_casts, self._arguments()) if _is_wildcard(a) and a.span is not None}
        spelled = (self._program.sources[span.source].text(span).upper() for span in direct)
        return self._named > sum(text in mpi.WILDCARDS for text in spelled)

    @cached_property
    def _named(self) -> int:
        """How often the program's text names a wildcard."""
        found = 0
        for source in self._program.sources:
            language = language_of(source)
            found += max(_times_named(text, language) for text in language.joined(source))
        headers = language_outside(self._program)
        return found + sum(_times_named(text, headers) for text in self._program.included)

    def _arguments(self) -> Iterable[Expression]:
        sites = (site for found in self._graph.sites.values() for site in found if site.target is Target.MPI)
        return (argument for site in sites for argument in _source_and_tag(site.call))


def _source_and_tag(call: Call | Invocation) -> Iterator[Expression]:
    """The arguments of a receive or a probe that may be wildcards; of any other call, nothing."""
    message = mpi.lookup(call.name or "")
    for number, parameter in enumerate(message.parameters if message is not None else ()):
        if parameter.role in (mpi.Role.SOURCE, mpi.Role.RECV_TAG) and number < len(call.arguments):
            yield call.arguments[number]


def _is_wildcard(argument: Expression) -> TypeGuard[Constant]:
    return isinstance(argument, Constant) and argument.name in mpi.WILDCARDS


def _is_doubtful(argument: Expression) -> bool:
    match without_casts(argument):
        case Number(value=value):
            return value < 0
        case Operation(operator="neg", arguments=(Number(),)):
            return True
        case Name(symbol=symbol):
            return symbol.type.base == "other"
    return False


def _is_computed(argument: Expression) -> bool:
    """Whether it is the result of arithmetic, which no program does with a wildcard."""
    return isinstance(argument, Operation) and argument.operator in _ARITHMETIC


def _times_named(text: bytes, language: Language) -> int:
    return language.names_of_wildcards(text) if _WILDCARD.search(text) else 0


_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_WILDCARD = re.compile(rb"MPI_ANY", re.IGNORECASE)
# The status of an inactive request contains wildcards.
_STATUS = re.compile(rb"\bMPI_(?:SOURCE|TAG)\b", re.IGNORECASE)
