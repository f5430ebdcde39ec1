"""The nests that are measured, with their arrays: four of them by all benchmarks, all by kernels.py.

They are written here, and not taken from the examples, so that changing an example changes no figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def sqrt3d(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def sor3d(u, f, w, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    new = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                    old = u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1]
                    u[i, j, k] = (1.0 - w) * u[i, j, k] + w / 6.0 * (new + old - f[i, j, k])


@lw.nest
def smith_waterman(h, a, b, match=2, mismatch=-1, gap=1):
    n, m = h.shape
    best = 0
    for i in range(1, n):
        for j in range(1, m):
            s = match if a[i - 1] == b[j - 1] else mismatch
            h[i, j] = max(0, h[i - 1, j - 1] + s, h[i - 1, j] - gap, h[i, j - 1] - gap)
            best = max(best, h[i, j])
    return best


@lw.nest
def advection3d(u, sweeps, cx, cy, cz):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                for k in range(1, u.shape[2]):
                    u[i, j, k] = (
                        u[i, j, k]
                        - cx * (u[i, j, k] - u[i - 1, j, k])
                        - cy * (u[i, j, k] - u[i, j - 1, k])
                        - cz * (u[i, j, k] - u[i, j, k - 1])
                    )


@lw.nest
def right_hand_side(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - f[i, j])


@lw.nest
def nine_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                above = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
                below = u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
                u[i, j] = (above + u[i, j - 1] + u[i, j] + u[i, j + 1] + below) / 9.0


@lw.nest
def twenty_seven_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    total = 0.0
                    for di in range(-1, 2):
                        for dj in range(-1, 2):
                            for dk in range(-1, 2):
                                total += u[i + di, j + dj, k + dk]
                    u[i, j, k] = total / 27.0


@lw.nest
def affine_gaps(h, e, f, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 4)
            f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 4)
            h[i, j] = max(0, h[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2), e[i, j], f[i, j])


@lw.nest
def common_subsequence(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = d[i - 1, j - 1] + 1 if a[i - 1] == b[j - 1] else max(d[i - 1, j], d[i, j - 1])


@lw.nest
def time_warping(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            e = a[i - 1] - b[j - 1]
            d[i, j] = e * e + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])


@lw.nest
def eikonal(u, h):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            a = min(u[i - 1, j], u[i + 1, j])
            b = min(u[i, j - 1], u[i, j + 1])
            d = abs(a - b)
            x = min(a, b) + h if d >= h else 0.5 * (a + b + np.sqrt(2.0 * h * h - d * d))
            u[i, j] = min(u[i, j], x)


@dataclass(frozen=True)
class Problem:
    """A nest with a way to make its arguments from the shape of its array and a number of sweeps."""

    title: str
    nest: lw.Nest
    make: Callable[[tuple[int, ...], int], dict[str, Any]]

    def arguments(self, shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
        """All arguments by name, defaults included; the same values on every call."""
        return self.nest.arguments(**self.make(shape, sweeps))


def _sqrt3d(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    return {"a": _random().random(shape, np.float32)}


def _gauss_seidel(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    return {"u": _random().random(shape), "sweeps": sweeps}


def _right_hand_side(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    random = _random()
    return {"u": random.random(shape), "f": random.random(shape), "sweeps": sweeps}


def _sor3d(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    random = _random()
    return {"u": random.random(shape), "f": random.random(shape), "w": 1.7, "sweeps": sweeps}


def _smith_waterman(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    random = _random()
    a, b = (random.integers(0, 4, extent - 1, np.uint8) for extent in shape)
    return {"h": np.zeros(shape, np.int32), "a": a, "b": b}


def _letters(shape: tuple[int, ...]) -> dict[str, Any]:
    random = _random()
    return dict(zip("ab", (random.integers(0, 4, extent - 1, np.uint8) for extent in shape), strict=True))


def _affine_gaps(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    return {name: np.zeros(shape, np.int32) for name in "hef"} | _letters(shape)


def _common_subsequence(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    return {"d": np.zeros(shape, np.int32), **_letters(shape)}


def _time_warping(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    random = _random()
    d = np.full(shape, np.inf)
    d[0, 0] = 0.0
    return {"d": d, "a": random.random(shape[0] - 1), "b": random.random(shape[1] - 1)}


def _eikonal(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    u = np.full(shape, 1e3)
    u[shape[0] // 2, shape[1] // 2] = 0.0
    return {"u": u, "h": 0.01}


def _advection3d(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    return {"u": _random().random(shape), "sweeps": sweeps, "cx": 0.25, "cy": 0.2, "cz": 0.15}


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


ADVECTION3D = Problem("upwind advection 3-D f64", advection3d, _advection3d)
PROBLEMS = {
    "sqrt3d": Problem("sqrt3d f32", sqrt3d, _sqrt3d),
    "gauss_seidel": Problem("Gauss-Seidel 5-point f64", gauss_seidel, _gauss_seidel),
    "sor3d": Problem("SOR 7-point 3-D f64", sor3d, _sor3d),
    "smith_waterman": Problem("Smith-Waterman i32", smith_waterman, _smith_waterman),
}
KERNELS = {
    "sqrt3d": PROBLEMS["sqrt3d"],
    "gauss_seidel": PROBLEMS["gauss_seidel"],
    "nine_points": Problem("Gauss-Seidel 9-point f64", nine_points, _gauss_seidel),
    "sor3d": PROBLEMS["sor3d"],
    "twenty_seven_points": Problem("Gauss-Seidel 27-point f64", twenty_seven_points, _gauss_seidel),
    "advection3d": ADVECTION3D,
    "smith_waterman": PROBLEMS["smith_waterman"],
    "affine_gaps": Problem("affine-gap alignment i32", affine_gaps, _affine_gaps),
    "common_subsequence": Problem("longest common subsequence i32", common_subsequence, _common_subsequence),
    "time_warping": Problem("dynamic time warping f64", time_warping, _time_warping),
    "eikonal": Problem("eikonal sweep f64", eikonal, _eikonal),
}
SWEPT = {
    "gauss_seidel": PROBLEMS["gauss_seidel"],
    "right_hand_side": Problem("Gauss-Seidel with a right-hand side f64", right_hand_side, _right_hand_side),
    "nine_points": KERNELS["nine_points"],
    "sor3d": PROBLEMS["sor3d"],
}
