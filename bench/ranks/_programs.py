"""The programs of bench/ranks/programs.py, as people write them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import lapwing as lw


def jacobi(u, v, f, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])
        u, v = v, u
    return u


def fdtd(ex, ey, hz, pulse, steps):
    n, m = hz.shape
    for t in range(steps):
        for j in range(m):
            ey[0, j] = pulse[t]
        for i in range(1, n):
            for j in range(m):
                ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(n):
            for j in range(1, m):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(n - 1):
            for j in range(m - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def red_black(u, f, steps):
    n, m = u.shape
    for t in range(steps):
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, m - 1, 2):
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


def ssor(u, f, omega, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j]
                u[i, j] = (1.0 - omega) * u[i, j] + 0.25 * omega * around
        for i in range(n - 2, 0, -1):
            for j in range(m - 2, 0, -1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j]
                u[i, j] = (1.0 - omega) * u[i, j] + 0.25 * omega * around


PROGRAMS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (jacobi, fdtd, red_black, ssor)}
NESTS = {name: lw.nest(function) for name, function in PROGRAMS.items()}


def arguments(name: str, rows: int, columns: int, steps: int) -> dict[str, Any]:
    """Arrays of random numbers, always the same."""
    rng = np.random.default_rng(0)
    every: dict[str, Callable[[], Any]] = {
        **dict.fromkeys(("u", "v", "f", "ex", "ey", "hz"), lambda: rng.random((rows, columns))),
        "pulse": lambda: rng.random(steps),
        "omega": lambda: 1.5,
        "steps": lambda: steps,
    }
    return {parameter: every[parameter]() for parameter in inspect.signature(PROGRAMS[name]).parameters}
