"""The ceilings of this core: as the machine's description has them, or measured once and remembered for this CPU."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from lapwing.calibrate.core.ceilings import measure_core
from lapwing.codegen.compilation.cache import cache_directory, make_cache_directory
from lapwing.codegen.compilation.toolchain import cpu_identity
from lapwing.errors import RefusedError
from lapwing.machine.core import Core
from lapwing.machine.document import core_document, core_from
from lapwing.runtime.binding import native


def core_here(announce: native.Announce = None) -> Core:
    """As remembered, or measured. Raises BuildError where there is no compiler."""
    known = _remembered()
    if known is None:
        known = measure_core(announce)
        _remember(known)
    return known


def _remembered() -> Core | None:
    path = _path()
    try:
        return core_from(json.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, ValueError, RefusedError):  # a cache: whatever is wrong with it, measure again
        return None


def _remember(core: Core) -> None:
    """Where the cache cannot be written it will be measured again."""
    path = _path()
    unfinished = path.with_suffix(f".{os.getpid()}")
    try:
        make_cache_directory()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        unfinished.write_text(json.dumps(core_document(core)), encoding="utf-8")
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def _path() -> Path:
    digest = hashlib.sha256(cpu_identity().encode()).hexdigest()[:16]
    return cache_directory() / "cores" / f"{digest}.json"
