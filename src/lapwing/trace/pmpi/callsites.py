"""Addresses in programs as file and line, by addr2line; as function and offset where there is no debug information."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lapwing.trace.pmpi.recording import Address

_SECONDS = 120


@dataclass(frozen=True)
class CallSite:
    """A place in the program that calls an MPI function.

    file is "" and line 0 where the program has no debug information; then ``inside`` is the calling function with the
    offset in the program. role and pattern are as in Address.
    """

    function: str
    role: str
    pattern: str
    file: str
    line: int
    inside: str

    @property
    def place(self) -> str:
        """``file.c:12``, else the function with the offset."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else self.inside

    def __str__(self) -> str:
        return f"{self.function} {self.place}"


def resolve(addresses: Iterable[Address]) -> dict[Address, CallSite]:
    """Return the call site of every address."""
    by_module: dict[str, list[Address]] = defaultdict(list)
    for address in dict.fromkeys(addresses):
        by_module[address.module].append(address)
    return {
        address: _site(address, *line)
        for module, group in by_module.items()
        for address, line in zip(group, _lines(module, group), strict=True)
    }


def _site(address: Address, function: str, file: str, line: int) -> CallSite:
    name = function or address.symbol
    module = os.path.basename(address.module) or "?"
    inside = f"{name} ({module}+0x{address.offset:x})" if name else f"{module}+0x{address.offset:x}"
    return CallSite(address.function, address.role, address.pattern, file, line, name if file else inside)


def _lines(module: str, addresses: list[Address]) -> list[tuple[str, str, int]]:
    """Function, file and line of each address; "" and 0 for what is not known."""
    unknown = [("", "", 0)] * len(addresses)
    program = shutil.which("addr2line")
    if program is None or not os.path.isfile(module):
        return unknown
    try:
        answer = subprocess.run(
            [program, "-f", "-C", "-e", module],
            input="".join(f"0x{address.offset:x}\n" for address in addresses),
            capture_output=True,
            encoding=sys.getfilesystemencoding(),
            errors="surrogateescape",  # the answers name files
            timeout=_SECONDS,
            check=False,
        ).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return unknown
    if len(answer) != 2 * len(addresses):
        return unknown
    return [_parse(function, place) for function, place in zip(answer[::2], answer[1::2], strict=True)]


def _parse(function: str, place: str) -> tuple[str, str, int]:
    file, _, line = place.partition(" (discriminator")[0].rpartition(":")
    known = file not in ("", "??") and line.isdigit() and int(line) > 0
    return "" if function == "??" else function, os.path.normpath(file) if known else "", int(line) if known else 0
