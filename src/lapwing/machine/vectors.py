"""The vector registers of the processor that programs are compiled for."""

from __future__ import annotations

import functools
from pathlib import Path

_AVX_512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}


@functools.cache
def vector_bytes() -> int:
    """How many bytes the widest ones hold: 64, 32 or 16."""
    flags = set(_processor().get("flags", "").split())
    if flags >= _AVX_512:
        return 64
    return 32 if "avx2" in flags else 16


@functools.cache
def has_slow_line_splits() -> bool:
    """Whether loads and stores that cross lines of the cache are what loops over neighbouring elements wait for: on AMD's Zen up
    to the third."""
    return _processor().get("vendor_id") == "AuthenticAMD" and vector_bytes() == 32


@functools.cache
def computes_in_halves() -> bool:
    """Whether vectors of the widest kind go through units of half their width: on AMD's Zen 4."""
    processor = _processor()
    return (processor.get("vendor_id"), processor.get("cpu family")) == ("AuthenticAMD", "25") and vector_bytes() == 64


def has_fast_gathers() -> bool:
    """Whether elements from several places come into a vector faster by one instruction than one by one: on Intel's with AVX-512;
    AMD's do it in microcode."""
    return _processor().get("vendor_id") == "GenuineIntel" and vector_bytes() == 64


def _processor() -> dict[str, str]:
    """What the system says of the first processor, by field."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    fields = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in fields}
