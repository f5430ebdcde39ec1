"""The four nests that are measured, with their arrays.

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


def _sor3d(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    random = _random()
    return {"u": random.random(shape), "f": random.random(shape), "w": 1.7, "sweeps": sweeps}


def _smith_waterman(shape: tuple[int, ...], sweeps: int) -> dict[str, Any]:
    random = _random()
    a, b = (random.integers(0, 4, extent - 1, np.uint8) for extent in shape)
    return {"h": np.zeros(shape, np.int32), "a": a, "b": b}


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
