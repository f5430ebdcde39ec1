"""The vector registers of the processor that programs are compiled for."""

from __future__ import annotations

import functools
from pathlib import Path

_AVX_512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}


@functools.cache
def vector_bytes() -> int:
    """How many bytes the widest ones hold: 64, 32 or 16."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 16
    flags = next((line.partition(":")[2] for line in text.splitlines() if line.startswith("flags")), "").split()
    if set(flags) >= _AVX_512:
        return 64
    return 32 if "avx2" in flags else 16
