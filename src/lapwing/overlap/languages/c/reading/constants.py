"""MPI's constants behind the macros that stand for them.

MPI_COMM_WORLD and its like are macros for a number with a cast in one library, for the address of a global in another. What
counts is the name, and a program may have renamed it: ``#define REAL_TYPE MPI_DOUBLE``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.overlap.languages.c.reading.libclang import Cursor, Kind, Unit

MPI_CONSTANT = re.compile(r"MPI_[A-Z][A-Z0-9_]*\Z")

_NAME = re.compile(rb"[A-Za-z_]\w*(?![\w\\$\x80-\xff])")
_BODY = re.compile(rb"\w+\b(.*)", re.DOTALL)  # of a macro with parameters, they stand before the rest
_WORD = re.compile(r"[A-Za-z_]\w*")
_ONE_WORD = re.compile(r"[(\s]*([A-Za-z_]\w*)[)\s]*\Z")
_CAST_NUMBER = re.compile(
    r"\(*\s*\((MPI_\w+|(?:MPI_Status|void) ?\*)\)\s*\(?\s*(-?(?:0[xX][0-9a-fA-F]+|[0-9]+))[uUlL]*[\s)]*\Z"
)
_LAST_WORD = re.compile(r"\b([A-Za-z]\w*)[\s)]*\Z")


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro's definition. ``path``: None for the compiler's own, and those of its command line."""

    name: str
    cursor: Cursor
    path: Path | None
    start: int
    end: int


def macros_of(unit: Unit, cursors: Sequence[Cursor], read_bytes: Callable[[Path], bytes]) -> list[Macro]:
    """The macros that are defined, in order."""
    found = []
    for cursor in cursors:
        if cursor.kind == Kind.MACRO_DEFINITION:
            path, start, end = unit.extent(cursor)
            # Read from the file where that is simple: libclang takes far longer to tell it.
            name = None if path is None else _NAME.match(read_bytes(path), start)
            found.append(Macro(unit.name(cursor) if name is None else name[0].decode(), cursor, path, start, end))
    return found


class MpiConstants:
    """The macros of one translation unit, as far as they lead to constants of MPI."""

    def __init__(self, unit: Unit, macros: Sequence[Macro], read_bytes: Callable[[Path], bytes]) -> None:
        self._unit = unit
        self._read_bytes = read_bytes
        self._bodies: dict[str, set[str]] = {}  # more than one where a name is defined again
        self._pragmas: dict[str, bool] = {}
        self._by_number: dict[tuple[str, int], str] = {}
        self._by_word: dict[str, str] = {}
        # MPI's headers lie in one folder; a program may give macros of its own such names.
        paths = {macro.path for macro in macros}
        folders = {path.parent for path in paths if path is not None and path.name == "mpi.h"}
        others = {path for path in paths if path is None or path.parent not in folders}
        ours = {macro.name for macro in macros if macro.path in others}
        self._ours = frozenset(filter(MPI_CONSTANT.match, ours))
        for macro in macros:
            if macro.path is not None:  # else the compiler's own, or the command line's
                self._define(macro.name, macro.path, macro.start, macro.end)

    def _define(self, name: str, path: Path, start: int, end: int) -> None:
        body = self._body(path, start, end)
        if body is None:
            return
        self._bodies.setdefault(name, set()).add(body)
        if not self._is_mpi(name):
            return
        number = _CAST_NUMBER.match(body)
        word = _LAST_WORD.search(body)
        if number:
            self._by_number.setdefault((number.group(1).replace(" ", ""), int(number.group(2), 0)), name)
        elif word and not MPI_CONSTANT.match(word.group(1)):
            self._by_word.setdefault(word.group(1), name)

    def _body(self, path: Path, start: int, end: int) -> str | None:
        found = _BODY.match(self._read_bytes(path), start, end)
        return found.group(1).decode("latin-1").replace("\\\n", " ").strip() if found else None

    def _is_mpi(self, name: str) -> bool:
        return bool(MPI_CONSTANT.match(name)) and name not in self._ours

    def defines(self, name: str) -> bool:
        """Whether the unit defines a macro of this name."""
        return name in self._bodies

    def writes_pragma(self, name: str, outer: frozenset[str] = frozenset()) -> bool:
        """Whether a macro leads to a pragma."""
        if name not in self._pragmas:
            words = {word for body in self._bodies.get(name, ()) for word in _WORD.findall(body)}
            inner = (word for word in words if word in self._bodies and word not in outer)
            self._pragmas[name] = "_Pragma" in (name, *words) or any(
                self.writes_pragma(word, outer | {name}) for word in inner if word != name
            )
        return self._pragmas[name]

    def of_use(self, name: str, use: Cursor) -> str | None:
        """The constant that the use of a macro stands for, None if that is not one constant of MPI's."""
        if self._is_mpi(name):
            return name
        path, start, end = self._unit.extent(self._unit.referenced(use))
        body = self._body(path, start, end) if path is not None else None
        for _ in range(20):  # a macro that leads back to itself leads nowhere
            word = _ONE_WORD.match(body) if body else None
            if word is None:
                return None
            if self._is_mpi(word.group(1)) and word.group(1) in self._bodies:
                return word.group(1)
            found = self._bodies.get(word.group(1), set())
            body = next(iter(found)) if len(found) == 1 else None
        return None

    def of_number(self, type_text: str, value: int) -> str | None:
        """The handle, or the special pointer, that is a number of a type of MPI's. NULL is no constant of MPI's."""
        return self._by_number.get((type_text.replace(" ", ""), value)) if value or "*" not in type_text else None

    def of_variable(self, name: str) -> str | None:
        """The handle that is the address of one of the MPI library's globals."""
        return name if MPI_CONSTANT.match(name) else self._by_word.get(name)
