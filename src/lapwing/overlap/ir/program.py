"""The program model: the result of both front ends, and the input of every analysis and transformation.

A program is a set of procedures; a procedure's body is a tree of statements, each with the exact bytes of the file it
was read from. Whatever a front end cannot read becomes an :class:`Opaque` statement, a barrier for everything.

Expressions and statements are frozen and compare by structure, not by position (spans do not count). Two variables are equal if
their symbols' keys are.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lapwing.overlap.ir.expressions import (
    Expression,
    Symbol,
)
from lapwing.overlap.ir.statements import Block
from lapwing.overlap.source.spans import Problem, Source, Span


@dataclass(frozen=True)
class Procedure:
    """``kind``: "program", "subroutine" or "function" (C: "function"). ``key``: unique; "file.c::f" for a static function,
    "f" for an
    external one, "module m::f" for a module's. ``parameters``: dummy arguments in order. ``symbols``: every variable it can
    name, by
    name (Fortran: lower case).

    Offsets for inserting text: ``uses_end`` is where a USE may be added (Fortran: after the last USE, or after the header),
    ``declarations_end`` where a declaration may (Fortran: before the first executable statement; C: after the opening brace).
    ``mpi_interface``: "mpif.h", "mpi", "mpi_f08" or None. ``host``: the module or procedure it is contained in.
    ``line_length``: of its source form (72, 132) or None. ``open_hosts``: hosts like that whose public procedures it sees
    without exception, including added ones. ``inline``: a C function that is inline but not static, and may have no definition
    to call.
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
    """A C function's as a source sees it, without body. ``start``: the offset of its text in that source, or of the #include of
    the header that contains it. ``macros``: those in its text."""

    source: int
    start: int
    text: str
    macros: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LeftOut:
    """A region of conditional compilation, from ``#if`` to ``#endif``, of which some text is not compiled, or would not be with
    other macros. ``pieces``: the excluded text. ``whole``: all of it is excluded, so the region is like a comment. ``macros``:
    the deciding ones, which are taken as undefined."""

    span: Span
    pieces: tuple[Span, ...]
    whole: bool
    macros: frozenset[str] = frozenset()


def taken_as_undefined(assumed: Iterable[tuple[int, frozenset[str]]]) -> dict[str, frozenset[int]]:
    """The macros that were taken as undefined, with the numbers of the files in which that decides what is compiled.

    ``assumed``: the file's number and the undefined macros of each region.
    """
    found: dict[str, set[int]] = {}
    for source, macros in assumed:
        for name in macros:
            found.setdefault(name, set()).add(source)
    return {name: frozenset(found[name]) for name in sorted(found)}


@dataclass(frozen=True)
class Program:
    """``procedures`` by key. ``globals``: every variable outside procedures, by key. ``initial``: initial values in C's
    file-scope declarations. ``mains``: places of all main programs, of which ``procedures`` holds one. ``included``: the text
    of C headers that are not sources, except the system's and MPI's, and the values of macros defined from outside.
    ``declarations``: of C's functions outside of others, by their keys; their definitions' heads are among them. ``left_out``:
    regions with text that conditional compilation excludes, from each ``#if`` to its ``#endif``. ``undefined``: the macros that
    are taken as undefined, with the numbers of the files in which that decides what is compiled. ``libraries``: C's functions
    that system headers declare, except MPI's, and whether they may take callbacks.
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
        """The procedure that ``name`` denotes inside ``caller``; None if it is not in the program, or uncertain."""
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
        """Whether a byte of a file lies in a region that conditional compilation excludes entirely."""
        number = bisect.bisect_right(self._emptied[source], offset, key=lambda span: span.start) - 1
        return number >= 0 and offset < self._emptied[source][number].end

    @cached_property
    def _emptied(self) -> Mapping[int, Sequence[Span]]:
        """The entirely excluded regions, by file and in order; inner ones are merged into outer ones."""
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
