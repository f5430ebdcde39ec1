"""Measures the ceilings of this core: short loops of one kind of operation each, the least of several times.

What disturbs a loop makes it longer and never shorter, and a ceiling is what nothing gets above.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_cxx_compiler
from lapwing.machine.core import ACCESSES, INEXACT_ONLY, LATENCIES, THROUGHPUTS, Core, kinds
from lapwing.runtime.binding import native

SIZES = tuple((16 << 10) << k for k in range(12))  # 16 KiB to 32 MiB
_SECONDS, _REPEATS = 1e-3, 5
_OPERATORS = {"+": "add", "*": "mul", "/": "div"}
_SOURCE = Path(__file__).parents[1] / "cpp" / "ceilings.cpp"
_FLAGS = ("-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=off", *native.WIDE_FLAGS)


def measure_core(announce: native.Announce = None) -> Core:
    """In a third of a second, building the loops apart. Raises BuildError where there is no compiler."""
    library = _library(announce)

    def seconds(name: str, operations: int = 1) -> float:
        return _least_seconds(getattr(library, name)) / operations

    apart, in_arrays, bytes_ = library.operations_apart(), library.operations_in_arrays(), library.vector_bytes()
    latency = {kind: seconds(f"latency_{_name(kind)}") for kind in kinds(LATENCIES)}
    scalar = {kind: seconds(f"scalar_{_name(kind)}", apart) for kind in (*kinds(THROUGHPUTS), *ACCESSES)}
    vector = {kind: seconds(f"vector_{_name(kind)}", apart) for kind in (*kinds(THROUGHPUTS), *ACCESSES)}
    for kind in kinds(INEXACT_ONLY):  # of which all elements of an array are done in a round
        vector[kind] *= apart / in_arrays * bytes_ / np.dtype(kind.split()[1]).itemsize
    room = np.ones(max(SIZES) + 64, np.uint8)
    start = room.ctypes.data + -room.ctypes.data % 64
    read, update = (
        tuple((size, _least_seconds(partial(_through, go, start, size)) / size) for size in SIZES)
        for go in (library.read_all, library.update_all)
    )
    # Of the links of a chain so many are under way, or done, when the one before it ends.
    links = library.links()
    window = links - seconds("short_chains_of_products") / latency["* float64"]
    return Core(latency["+ int64"], bytes_, max(0.0, window), latency, scalar, vector, read, update)


def _name(kind: str) -> str:
    """Of its functions in C++."""
    operator, *dtype = kind.split()
    return "_".join([_OPERATORS.get(operator, operator), *dtype])


def _through(go: Callable[[int, int, int], None], start: int, size: int, rounds: int) -> None:
    go(rounds, start, size)


def _least_seconds(go: Callable[[int], None]) -> float:
    """Of a round: as many rounds are timed as take long enough for the clock."""
    rounds = 1
    while (took := _took(go, rounds)) < _SECONDS:
        rounds = max(2 * rounds, int(rounds * 1.2 * _SECONDS / max(took, 1e-7)))
    return min(took, *(_took(go, rounds) for _ in range(_REPEATS))) / rounds


def _took(go: Callable[[int], None], rounds: int) -> float:
    begin = time.perf_counter()
    go(rounds)
    return time.perf_counter() - begin


@cache
def _library(announce: native.Announce) -> ctypes.CDLL:
    path = build_shared_library(
        name="ceilings",
        sources={"ceilings.cpp": _SOURCE.read_text(encoding="utf-8")},
        main=["ceilings.cpp"],
        compiler=find_cxx_compiler(),
        flags=_FLAGS,
        announce=announce,
    )
    library = ctypes.CDLL(str(path))
    timed = [f"latency_{_name(kind)}" for kind in kinds(LATENCIES)]
    timed += [f"{w}_{_name(kind)}" for w in ("scalar", "vector") for kind in (*kinds(THROUGHPUTS), *ACCESSES)]
    for name in (*timed, "short_chains_of_products"):
        getattr(library, name).argtypes = [ctypes.c_int64]
    for name in ("read_all", "update_all"):
        getattr(library, name).argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
    return library
