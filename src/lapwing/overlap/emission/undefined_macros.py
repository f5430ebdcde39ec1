"""Checks in the rewritten files that macros which were taken as undefined are undefined at compile time.

before:  #ifdef DEBUG / print what came / #endif            after:  the same, elsewhere, with the statement below it
                                                                    #if defined(DEBUG) / #error … / #endif

Text that such a macro excludes was not read, so proofs hold only while it stays excluded. The check runs when a file is
compiled, with that file's flags: in all files that change or, if none of them is preprocessed (Fortran), in those with the
conditional lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lapwing.overlap.ir.program import Program
from lapwing.overlap.languages.registry import language_of
from lapwing.overlap.languages.spelling import spellings
from lapwing.overlap.source.spans import Source
from lapwing.overlap.source.spelling import macros

_WIDTH = 120
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Checks:
    """The checks for a file: at its beginning, and in C also after its #includes, where the system's headers have been read."""

    first: str = ""
    after_includes: str = ""


def checks(program: Program, changed: Collection[int]) -> Mapping[int, Checks]:
    """The checks for each file, by its number, given the numbers of the ``changed`` files."""
    if not changed or not program.undefined:
        return {}
    seen = [number for number in changed if _is_preprocessed(program.sources[number])]
    files = seen or sorted(frozenset().union(*program.undefined.values()))
    own = {name.decode() for text in spellings(program.sources, program.included) for name, _ in macros(text)}
    # A macro that the program's own text defines may be defined before; it is not defined from outside.
    defined = [name for name in program.undefined if name in own]
    others = [name for name in program.undefined if name not in own]
    plain = Checks(_check(program.undefined))
    in_two = Checks(_check(defined), _check(others))
    return {
        number: in_two if language_of(program.sources[number]).support_after_includes else plain for number in files
    }


def beginning(source: Source) -> int:
    """The offset at which a line can be inserted before all others."""
    return len(_BYTE_ORDER_MARK) if source.data.startswith(_BYTE_ORDER_MARK) else 0


def _is_preprocessed(source: Source) -> bool:
    return language_of(source).is_preprocessed(source)


def _check(names: Iterable[str]) -> str:
    return "".join(
        f"#if {' || '.join(f'defined({name})' for name in line)}\n"
        f'#error "lapwing overlap took {", ".join(line)} as undefined: rewrite the original with -D as the compiler has it"\n'
        "#endif\n"
        for line in _in_lines(names)
    )


def _in_lines(names: Iterable[str]) -> Iterable[list[str]]:
    line: list[str] = []
    for name in names:
        if line and len(" || ".join(f"defined({n})" for n in (*line, name))) > _WIDTH:
            yield line
            line = []
        line.append(name)
    if line:
        yield line
