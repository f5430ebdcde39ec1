"""How much memory this process may take."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_bytes() -> int:
    """Memory of this machine that is free or can be freed, or what a control group leaves of it."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        found = int(line.split()[1]) * 1024
    for limit in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number
            found = min(found, int(Path(limit).read_text(encoding="ascii")))
    return found
