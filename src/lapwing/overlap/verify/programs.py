"""Which programs a command ran in a copy of the project, and whether the changed one is among them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.trace.pmpi.recording import Recording

# What the linker makes of everything else; where that holds the copy's path it differs for no other reason.
_BUILD_ID = re.compile(rb"(\x04\0{3}\x14\0{3}\x03\0{3}GNU\0).{20}", re.DOTALL)


@dataclass(frozen=True)
class Programs:
    """Executables that came through MPI_Init, and files that call MPI: executables too, or libraries.

    ``inside``: those that lie in the copy, by their names in it, with a digest of their contents, None where they are gone.
    """

    executables: frozenset[Path]
    callers: frozenset[Path]
    inside: dict[Path, str | None]


def programs_in(copy: Path, folder: Path, executables: Sequence[Path], recordings: Iterable[Recording]) -> Programs:
    """What ran in ``folder`` of a copy; to be asked before anything else runs there."""
    modules = {address.module for recording in recordings for address in recording.sites}
    callers = {Path(os.path.realpath(folder / module)) for module in modules if module}
    every = {path for path in (*executables, *callers) if path.is_relative_to(copy)}
    return Programs(
        frozenset(executables), frozenset(callers), {path.relative_to(copy): _digest(path, copy) for path in every}
    )


def not_run(before: Programs, after: Programs, project: Path) -> str | None:
    """Why the transformed program did not run, though a program did; None where it may have."""
    if any(digest is None or digest != before.inside.get(path) for path, digest in after.inside.items()):
        return None
    if after.inside:
        return (
            f"{min(after.inside)} is byte for byte the same program in the original's copy and in the transformed one, so what "
            "was changed did not run. Let the command build it (`make && ...`), from the sources in its own folder: with "
            "relative paths in the build."
        )
    # An interpreter calls MPI through a library, and stays the same wherever the program lies.
    strange = [
        path
        for path in after.executables
        if path in after.callers or path not in before.executables or path.is_relative_to(project)
    ]
    if not strange:
        return None
    return (
        f"the command ran {min(strange)}, which lies outside the copy that the transformed program is built in. Let it build "
        "and run the program in its own folder, with relative paths."
    )


def _digest(path: Path, copy: Path) -> str | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return hashlib.sha256(_BUILD_ID.sub(rb"\1", data.replace(os.fsencode(copy), b""))).hexdigest()
