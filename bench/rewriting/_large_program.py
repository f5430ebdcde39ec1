"""Programs of any length out of ones that exist: their files again and again, as one program with a main of its own.

In each copy all procedures, modules, COMMON blocks and variables outside procedures have names of their own; main programs become
procedures, which the new one calls one after the other. The whole is there to be read and rewritten, not to be run.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.overlap.ir.program import Program

_WORD = re.compile(rb"[A-Za-z_]\w*")
_DIGITS = string.digits + string.ascii_lowercase
_SHORTEST = 4  # letters of a new name: enough for all that have none of the same length
_PREFIX = "z"  # of all new names; names in the files that begin so are left out


@dataclass(frozen=True)
class Part:
    """A program to be copied: its sources and what they include, and the program as read."""

    name: str
    sources: tuple[Path, ...]
    included: tuple[Path, ...]
    program: Program

    @property
    def language(self) -> str:
        return self.program.sources[0].language

    @property
    def lines(self) -> int:
        return sum(source.read_bytes().count(b"\n") for source in self.sources)


def write_large(parts: Sequence[Part], lines: int, folder: Path) -> int:
    """Write copies of the parts, all of one language, in turn until there are that many lines; how many there are."""
    mains, written = [], 0
    for number, part in enumerate(itertools.cycle(parts)):
        if written >= lines:
            break
        mains += _copy(part, folder / f"{part.name}_{number}", number)
        written += part.lines
    if parts[0].language == "fortran":
        calls = "".join(f"  call {name}\n" for name in mains)
        (folder / "main.f90").write_text(f"program everything\n{calls}end program everything\n")
    else:
        heads, calls = ("".join(form.format(name) for name in mains) for form in (_C_HEAD, _C_CALL))
        (folder / "main.c").write_text(f"{heads}int main(int argc, char **argv) {{\n{calls}    return 0;\n}}\n")
    return written


_C_HEAD = "int {0}(int argc, char **argv);\n"
_C_CALL = "    {0}(argc, argv);\n"


def _copy(part: Part, folder: Path, number: int) -> list[str]:
    """One copy, in a folder of its own; the names of what were its main programs."""
    folder.mkdir(parents=True)
    texts = {path: path.read_bytes() for path in (*part.sources, *part.included)}
    renamed = _new_names(part.program, texts, number)
    for path, text in texts.items():
        if part.language == "fortran":
            text = re.sub(rb"(?im)^( *)program(?= +\w+ *$)", rb"\1subroutine", text)
            text = re.sub(rb"(?im)^( *end +)program\b", rb"\1subroutine", text)
        (folder / path.name).write_bytes(_WORD.sub(lambda word: renamed.get(word[0].lower(), word[0]), text))
    mains = [p.name for p in part.program.procedures.values() if p.kind == "program" or p.name == "main"]
    return [renamed[name.lower().encode()].decode() for name in mains]


def _new_names(program: Program, texts: Mapping[Path, bytes], number: int) -> dict[bytes, bytes]:
    """A name for everything that is known outside of procedures; as long as the old one, since lines of fixed form are full."""
    old = {procedure.name for procedure in program.procedures.values()}
    for key in program.globals:
        scope, _, name = key.rpartition("::")
        old.add(scope.split()[-1] if scope.startswith(("module ", "common ")) else name)
    taken = {word.lower() for text in texts.values() for word in _WORD.findall(text)}
    fresh: dict[int, Iterator[str]] = {}
    new = {}
    for name in sorted(old - {""}):
        length = max(len(name), _SHORTEST)
        names = fresh.setdefault(length, _names(length, number))
        new[name.lower().encode()] = next(n.encode() for n in names if n.encode() not in taken)
    return new


def _names(length: int, number: int) -> Iterator[str]:
    """Names of that length that only this copy uses."""
    copy = _DIGITS[number // len(_DIGITS)] + _DIGITS[number % len(_DIGITS)]
    for letters in itertools.product(_DIGITS, repeat=min(length - 3, 3)):
        yield _PREFIX + copy + "".join(letters).ljust(length - 3, "_")
