"""The registered languages, and which of them a source is in. One is loaded when a file needs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.languages.language import Language
from lapwing.overlap.source.spans import Source

NAMES = ("fortran", "c", "c++")
"""As ``Source.language`` has them."""


@dataclass(frozen=True)
class Family:
    """Languages whose files are read as one program, by the one of this ``name``. ``title``: for messages. ``endings``: of the
    files' names, in lower case."""

    name: str
    title: str
    endings: frozenset[str]


FAMILIES = (
    Family("fortran", "Fortran", frozenset(".f .for .ftn .fpp .f77 .f90 .f95 .f03 .f08 .f18".split())),
    Family("c", "C or C++", frozenset(".c .cc .cp .cpp .cxx .c++".split())),  # .C too
)


@cache
def _language(name: str) -> Language:
    if name == "fortran":
        from lapwing.overlap.languages.fortran.language import Fortran

        return Fortran()
    from lapwing.overlap.languages.c.language import C, Cpp

    return {"c": C(), "c++": Cpp()}[name]


def language_of(source: Source) -> Language:
    """The language of a source."""
    return _language(source.language)


def language_of_procedure(program: Program, procedure: Procedure) -> Language:
    return _language(program.sources[procedure.source].language)


def language_outside(program: Program) -> Language:
    """The language of code outside procedures, which is initial values."""
    languages = [language_of(source) for source in program.sources]
    return next((language for language in languages if language.models_initial_values), languages[0])


def by_language(files: Iterable[Path]) -> Iterator[tuple[Language, list[Path]]]:
    """The files in groups that are each read as one program."""
    *others, last = FAMILIES
    left = list(files)
    for family in others:
        taken = [path for path in left if path.suffix.lower() in family.endings]
        left = [path for path in left if path not in taken]
        if taken:
            yield _language(family.name), taken
    if left:
        yield _language(last.name), left
