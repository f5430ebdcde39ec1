"""The caches of the machine at hand: their sizes, and what a core goes through as fast as through its second-level one."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import numpy as np

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SUPPOSED_SECOND, _SUPPOSED_OUTERMOST = 2 << 20, 32 << 20  # where the system does not say
_SHARERS = 4  # of the outermost cache: of more than its share a core finds less and less there
_MOST_NEAR = 32 << 20
_AS_FAST = 1.5  # times what the same takes in the second-level cache
_BEYOND = 4  # times the size of the second-level cache: in the third one
_ROUNDS = 12


def cache_bytes(level: int) -> int | None:
    """The size of the first CPU's cache of a level, for data; None where the system does not say."""
    return _sizes().get(level)


def second_bytes() -> int:
    """The size of a core's second-level cache."""
    return cache_bytes(2) or _SUPPOSED_SECOND


def outer_cache_bytes() -> int:
    """The size of the outermost cache of the first CPU."""
    return max(_sizes().values(), default=_SUPPOSED_OUTERMOST)


@functools.cache
def near_bytes() -> int:
    """So many bytes of arrays a core goes through about as fast as through its second-level cache, of which that is the least.

    Some processors have a small second-level cache and a third one that streams as fast (AMD's Zen: 512 KiB before 32 MiB of
    eight cores), others a large one before a third that is far away (Intel's since Skylake-SP). Which this is shows in the time
    of the sum of two arrays, found out in a few milliseconds, once.
    """
    second = second_bytes()
    beyond, most = _BEYOND * second, min(outer_cache_bytes() // _SHARERS, _MOST_NEAR)
    if beyond > most or _seconds_a_byte(beyond) > _AS_FAST * _seconds_a_byte(second // 2):
        return second
    return most


def _seconds_a_byte(size: int) -> float:
    """The least that the sum of two arrays takes, of three with so many bytes together."""
    one, other, total = np.zeros((3, size // 24))
    taken = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        np.add(one, other, out=total)
        taken.append(time.perf_counter() - start)
    return min(taken) / size


def _sizes() -> dict[int, int]:
    """By level, of the first CPU's caches for data."""
    found = {}
    for index in _CACHES.glob("index*"):
        try:
            level, kind, size = (
                (index / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        if kind != "Instruction" and size[:-1].isdigit() and size[-1] in _UNITS:
            found[int(level)] = int(size[:-1]) * _UNITS[size[-1]]
    return found
