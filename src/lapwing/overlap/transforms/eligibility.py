"""Eligibility: which programs, and which files of a program, are left unchanged as a whole, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Constant
from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.rewriter import called_in, message_of
from lapwing.overlap.ir.statements import Statement
from lapwing.overlap.languages.registry import language_of
from lapwing.overlap.languages.spelling import spellings
from lapwing.overlap.transforms.context import Context


@dataclass(frozen=True)
class Eligibility:
    """``read``: the program as it was read."""

    context: Context
    read: Program

    def whole(self) -> bool:
        """Whether the whole program is left unchanged."""
        return (
            self._handles_errors()
            or self._has_threads()
            or self._shares_memory()
            or self._sends_when_ready()
            or self._has_second_names()
        )

    def sources(self) -> frozenset[int]:
        """Numbers of the sources that are left unchanged."""
        return self._unread() | self._with_two_interfaces() | self._headers()

    def _unread(self) -> frozenset[int]:
        """Sources with a missing include, which may contain declarations or macros."""
        paths = {p.path for p in self.read.problems if "not found" in p.message}
        unread = frozenset(number for number, source in enumerate(self.read.sources) if source.path in paths)
        self._refuse_messages(
            self._statements_of(unread),
            "all its file includes is there",
            "an included file was not found",
            "give its folder with -I",
        )
        return unread

    def _with_two_interfaces(self) -> frozenset[int]:
        """Sources that use mpi_f08 beside an older interface, whose handles are of another type."""
        interfaces = {
            (p.source, p.mpi_interface == "mpi_f08") for p in self.read.procedures.values() if p.mpi_interface
        }
        mixed = frozenset(number for number, new in interfaces if new and (number, False) in interfaces)
        self._refuse_messages(
            self._statements_of(mixed),
            "its file uses one interface of MPI",
            "mpi_f08 and an older one",
            "use mpi_f08 everywhere in the file, or nowhere",
        )
        return mixed

    def _headers(self) -> frozenset[int]:
        """C's headers. Every file that includes one would have its own slots, and all would define the same drain."""
        headers = frozenset(
            number for number, source in enumerate(self.read.sources) if language_of(source).is_header(source.path)
        )
        self._refuse_messages(
            self._statements_of(headers),
            "its file is compiled by itself",
            "a header, which every file that includes it compiles again",
            "define the function in a source file, and declare it in the header",
        )
        return headers

    def _statements(self) -> list[Statement]:
        return [s for p in self.read.procedures.values() for s in p.body.walk()]

    def _statements_of(self, sources: frozenset[int]) -> list[Statement]:
        return [s for p in self.read.procedures.values() if p.source in sources for s in p.body.walk()]

    def _refuse_messages(self, statements: Iterable[Statement], obligation: str, found: str, advice: str) -> None:
        """Notes the same refusal for every MPI call among the statements."""
        for statement in statements:
            if message_of(statement) is not None:
                self.context.refuse(statement.span, "nonblocking", obligation, found, advice)

    def _handles_errors(self) -> bool:
        """Whether the program handles MPI's errors: it would see other error codes."""
        for statement in self._statements():
            if any(_sets_handler(name) for name in called_in(statement)):
                self.context.refuse(
                    statement.span,
                    "nonblocking",
                    "an error of MPI ends the program",
                    "the program sets an error handler",
                    "leave MPI's default error handler in place",
                )
                return True
        return False

    def _has_threads(self) -> bool:
        """Whether several threads may call MPI: they would share requests and copies."""
        statements = self._statements()
        # MPI_Init requests no level: unless something else requests or queries one, a level's name decides nothing.
        asks = self._named(_THREAD_CALLS) is not None
        plain = any((message := message_of(s)) is not None and message.name == "MPI_Init" for s in statements)
        named = (asks or not plain) and self._named(_MANY_THREADS) is not None
        if not named and all(_thread_level(s) in (None, *_ONE_THREAD) for s in statements):
            return False
        self._refuse_messages(
            statements,
            "one thread calls MPI",
            "MPI_THREAD_MULTIPLE or MPI_THREAD_SERIALIZED, or a level that is not known",
            "ask for MPI_THREAD_FUNNELED, by that name, if no more is needed",
        )
        return True

    def _shares_memory(self) -> bool:
        """Whether ranks share memory or windows: they may read what others wrote without an MPI call of their own, at a time
        that a message tells them, so nothing may be reordered with messages."""
        return self._is_left_for(
            _SHARED_MEMORY,
            "ranks share no memory",
            "nothing: a message may say that other ranks have written what is shared",
        )

    def _sends_when_ready(self) -> bool:
        """Whether the program has ready-mode sends (MPI 3.1, 3.4), which may start only once their receive has; another message
        signals that."""
        return self._is_left_for(
            _READY_SENDS,
            "no send needs its receive to have begun",
            "use the standard mode: MPI_Send, MPI_Isend or MPI_Send_init",
        )

    def _is_left_for(self, pattern: re.Pattern[bytes], obligation: str, advice: str) -> bool:
        """Whether the program's text matches the pattern; if so, all its messages are refused."""
        found = self._named(pattern)
        if found is None:
            return False
        self._refuse_messages(self._statements(), obligation, found, advice)
        return True

    def _named(self, pattern: re.Pattern[bytes]) -> str | None:
        """The pattern's first match in the program's text."""
        found = next(
            (m for text in spellings(self.read.sources, self.read.included) if (m := pattern.search(text))), None
        )
        return None if found is None else found[0].decode("latin-1")

    def _has_second_names(self) -> bool:
        """Whether the program gives a variable a second name that only the linker sees."""
        second = [
            symbol.name
            for symbol in self.read.globals.values()
            if symbol.overlay is not None
            and symbol.where is not None
            and language_of(self.read.sources[symbol.where.source]).has_second_names
        ]
        if not second:
            return False
        self._refuse_messages(
            self._statements(),
            "variables have one name",
            f"{', '.join(sorted(second))}, which may be another name's",
            "use the variable by its own name, without alias, weakref or asm",
        )
        return True


def _sets_handler(name: str) -> bool:
    message = mpi.lookup(name) if mpi.is_mpi_name(name) else None
    return message is not None and message.name in _ERROR_HANDLERS


def _thread_level(statement: Statement) -> str | None:
    """The thread level that the statement requests from MPI_Init_thread, "" if it is not one of its constants; None if it is
    another statement."""
    if not any(name.upper().endswith("MPI_INIT_THREAD") for name in called_in(statement)):
        return None
    words = (e.name for e in statement.every_expression() if isinstance(e, Constant))
    return next((word for word in words if word.startswith("MPI_THREAD_")), "")


_ONE_THREAD = frozenset({"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED"})
_MANY_THREADS = re.compile(rb"MPI_THREAD_(?:MULTIPLE|SERIALIZED)", re.IGNORECASE)
_THREAD_CALLS = re.compile(rb"MPI_(?:Init|Query)_thread", re.IGNORECASE)
_SHARED_MEMORY = re.compile(
    rb"\b(?:MPI_Win_(?:allocate_shared|shared_query|lock|lock_all)|shm_open|shmget|shmat|MAP_SHARED)\b", re.IGNORECASE
)
_READY_SENDS = re.compile(rb"\bP?MPI_(?:I?rsend|Rsend_init)(?:_c)?\b", re.IGNORECASE)
_ERROR_HANDLERS = frozenset({"MPI_Comm_set_errhandler", "MPI_Errhandler_set"})
