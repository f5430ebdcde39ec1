"""The libraries that people use for the kernels of kernels.py, each on the same data; a note where one is not installed."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = Mapping[str, Any]
LETTERS = np.array(list("ACGT"))
# What a compressed sparse row matrix of the 9-point stencil of so many points takes is more than most machines have.
MOST_ROWS = 5_000_000


@dataclass(frozen=True)
class Library:
    """A call of a library, timed without what is only done once. note: what it does otherwise than the nest."""

    name: str
    call: Callable[[], float]
    note: str = ""


def libraries(kernel: str, arguments: Arguments) -> tuple[list[Library], list[str]]:
    """Those for one kernel, and what is missing."""
    package, make = _MADE.get(kernel, ("", None))
    if make is None:
        return [], []
    if any(importlib.util.find_spec(name) is None for name in package.split()):
        return [], [f'{package} not installed, left out: pip install "lapwing[bench]"']
    found = list(make(arguments))
    return found, [] if found else [f"{package} left out: too large for its matrix"]


def _timed(call: Callable[[], Any]) -> Callable[[], float]:
    def timed() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return timed


def _text(sequence: np.ndarray) -> str:
    return "".join(LETTERS[sequence])


def _alignment(match: int, mismatch: int, first: int, more: int) -> Callable[[Arguments], Iterator[Library]]:
    def make(arguments: Arguments) -> Iterator[Library]:
        import parasail

        a, b = _text(arguments["a"]), _text(arguments["b"])
        matrix = parasail.matrix_create("ACGT", match, mismatch)
        for name in ("sw_table_striped_32", "sw_striped_16"):
            function = getattr(parasail, name)
            what = "all scores kept" if "table" in name else "best score only"
            yield Library(f"parasail {name}", _timed(lambda f=function: f(a, b, first, more, matrix)), what)  # type: ignore[misc]

    return make


def _subsequence(arguments: Arguments) -> Iterator[Library]:
    from rapidfuzz.distance import LCSseq

    a, b = _text(arguments["a"]), _text(arguments["b"])
    yield Library("rapidfuzz LCSseq", _timed(lambda: LCSseq.similarity(a, b)), "length only, bit-parallel")


def _warping(arguments: Arguments) -> Iterator[Library]:
    from dtaidistance import dtw

    a, b = arguments["a"], arguments["b"]
    yield Library("dtaidistance warping_paths_fast", _timed(lambda: dtw.warping_paths_fast(a, b)), "all costs kept")
    fast = _timed(lambda: dtw.distance_fast(a, b, use_pruning=False))
    yield Library("dtaidistance distance_fast", fast, "distance only")


def _eikonal(arguments: Arguments) -> Iterator[Library]:
    import skfmm

    u = arguments["u"]
    phi = np.ones(u.shape)
    phi[u.shape[0] // 2, u.shape[1] // 2] = -1.0
    solve = _timed(lambda: skfmm.travel_time(phi, np.ones(u.shape), dx=arguments["h"], order=1))
    yield Library("scikit-fmm travel_time", solve, "the whole solution, by fast marching")


def _relaxation(stencil: Callable[[int], np.ndarray], method: str) -> Callable[[Arguments], Iterator[Library]]:
    def make(arguments: Arguments) -> Iterator[Library]:
        from pyamg.gallery import stencil_grid
        from pyamg.relaxation import relaxation

        shape = tuple(n - 2 for n in arguments["u"].shape)
        if np.prod(shape) > MOST_ROWS:
            return
        matrix = stencil_grid(stencil(len(shape)), shape, format="csr")
        x, b = np.ones(matrix.shape[0]), np.zeros(matrix.shape[0])
        sweeps = arguments["sweeps"]
        if method == "sor":
            yield Library(
                "pyamg sor", _timed(lambda: relaxation.sor(matrix, x, b, arguments["w"], sweeps)), "CSR matrix"
            )
        else:
            call = _timed(lambda: relaxation.gauss_seidel(matrix, x, b, sweeps))
            yield Library("pyamg gauss_seidel", call, "CSR matrix")

    return make


def _nearest(dimensions: int) -> np.ndarray:
    stencil = np.zeros((3,) * dimensions)
    for axis in range(dimensions):
        for place in (0, 2):
            stencil[tuple(place if k == axis else 1 for k in range(dimensions))] = -1.0
    stencil[(1,) * dimensions] = 2.0 * dimensions
    return stencil


def _all_around(dimensions: int) -> np.ndarray:
    stencil = np.full((3,) * dimensions, -1.0)
    stencil[(1,) * dimensions] = 3.0**dimensions - 1.0
    return stencil


_MADE: dict[str, tuple[str, Callable[[Arguments], Iterator[Library]]]] = {
    "gauss_seidel": ("pyamg", _relaxation(_nearest, "gauss_seidel")),
    "nine_points": ("pyamg", _relaxation(_all_around, "gauss_seidel")),
    "sor3d": ("pyamg", _relaxation(_nearest, "sor")),
    "twenty_seven_points": ("pyamg", _relaxation(_all_around, "gauss_seidel")),
    "smith_waterman": ("parasail", _alignment(2, -1, 1, 1)),
    "affine_gaps": ("parasail", _alignment(3, -2, 4, 1)),
    "common_subsequence": ("rapidfuzz", _subsequence),
    "time_warping": ("dtaidistance", _warping),
    "eikonal": ("skfmm", _eikonal),
}
