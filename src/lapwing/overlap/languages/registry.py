"""The languages, and which of them a source is in."""

from __future__ import annotations

from pathlib import Path

from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.languages.c.language import C, Cpp
from lapwing.overlap.languages.fortran.language import Fortran
from lapwing.overlap.languages.language import Language
from lapwing.overlap.source.spans import Source

_FORTRAN, _C, _CPP = Fortran(), C(), Cpp()
LANGUAGES: tuple[Language, ...] = (_FORTRAN, _C, _CPP)
READERS: tuple[Language, ...] = (_FORTRAN, _C)
"""Of the languages whose files are read as one program, one."""
_BY_NAME = {language.name: language for language in LANGUAGES}


def language_of(source: Source) -> Language:
    """The language that the source was read as."""
    return _BY_NAME[source.language]


def language_of_procedure(program: Program, procedure: Procedure) -> Language:
    return language_of(program.sources[procedure.source])


def language_outside(program: Program) -> Language:
    """The language of what stands outside of procedures, which is initial values."""
    languages = [language_of(source) for source in program.sources]
    return next((language for language in languages if language.models_initial_values), languages[0])


def reader_of(path: Path) -> Language:
    """The language that the file is read as, by its name's ending."""
    return next((reader for reader in READERS if path.suffix.lower() in reader.endings), _C)
