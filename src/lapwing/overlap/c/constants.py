"""MPI's constants behind the macros that stand for them.

MPI_COMM_WORLD and its like are macros for a number with a cast in one library, for the address of a global in another. What
counts is the name, and a program may have given it a name of its own: ``#define REAL_TYPE MPI_DOUBLE``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from lapwing.overlap.c.libclang import Cursor, Kind, Unit

MPI_CONSTANT = re.compile(r"MPI_[A-Z][A-Z0-9_]*\Z")

_BODY = re.compile(rb"\w+(?!\()[ \t]*(.*)", re.DOTALL)
_ONE_WORD = re.compile(r"[(\s]*([A-Za-z_]\w*)[)\s]*\Z")
_CAST_NUMBER = re.compile(r"\(*\s*\((MPI_\w+)\)\s*\(?\s*(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*[\s)]*\Z")
_LAST_WORD = re.compile(r"\b([A-Za-z]\w*)[\s)]*\Z")


class MpiConstants:
    """The macros of one translation unit, as far as they lead to constants of MPI."""

    def __init__(self, unit: Unit, cursors: Sequence[Cursor], read_bytes: Callable[[Path], bytes]) -> None:
        self._unit = unit
        self._read_bytes = read_bytes
        self._bodies: dict[str, str | None] = {}
        self._by_number: dict[tuple[str, int], str] = {}
        self._by_word: dict[str, str] = {}
        for cursor in cursors:
            if cursor.kind == Kind.MACRO_DEFINITION:
                self._define(cursor)

    def _define(self, cursor: Cursor) -> None:
        path, start, end = self._unit.extent(cursor)
        if path is None:  # the compiler's own
            return
        name = self._unit.name(cursor)
        body = self._body(path, start, end)
        # A name that is defined more than once means different things at different places.
        self._bodies[name] = body if self._bodies.get(name, body) == body else None
        if body is None or not MPI_CONSTANT.match(name):
            return
        number = _CAST_NUMBER.match(body)
        word = _LAST_WORD.search(body)
        if number:
            self._by_number.setdefault((number.group(1), int(number.group(2), 0)), name)
        elif word and not MPI_CONSTANT.match(word.group(1)):
            self._by_word.setdefault(word.group(1), name)

    def _body(self, path: Path, start: int, end: int) -> str | None:
        found = _BODY.match(self._read_bytes(path), start, end)
        return found.group(1).decode("latin-1").replace("\\\n", " ").strip() if found else None

    def defines(self, name: str) -> bool:
        """Whether the unit defines a macro of this name."""
        return name in self._bodies

    def of_use(self, name: str, use: Cursor) -> str | None:
        """The constant that the use of a macro stands for, None if that is not one constant of MPI's."""
        if MPI_CONSTANT.match(name):
            return name
        path, start, end = self._unit.extent(self._unit.referenced(use))
        body = self._body(path, start, end) if path is not None else None
        for _ in range(20):  # a macro that leads back to itself leads nowhere
            word = _ONE_WORD.match(body) if body else None
            if word is None:
                return None
            if MPI_CONSTANT.match(word.group(1)):
                return word.group(1)
            body = self._bodies.get(word.group(1))
        return None

    def of_number(self, type_text: str, value: int) -> str | None:
        """The handle that is a number of a type of MPI's."""
        return self._by_number.get((type_text, value))

    def of_variable(self, name: str) -> str | None:
        """The handle that is the address of one of the MPI library's globals."""
        return name if MPI_CONSTANT.match(name) else self._by_word.get(name)
