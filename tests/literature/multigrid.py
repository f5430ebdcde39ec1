"""Multigrid for Poisson's equation, with the levels in one array, in several arrays, and by recursion."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def two_grid(u, f, h, nu, cycles):
    """Two-grid correction in one dimension: smooth, restrict the residual, relax on the coarse grid, interpolate,
    smooth.

    Source: W. L. Briggs, V. E. Henson, S. F. McCormick, "A Multigrid Tutorial" (SIAM, 2000), chapter 3.
    Uses: indices 2*i on the fine side and i on the coarse one, six nests in sequence under a loop, work arrays,
      slices set to 0.
    """
    n = len(u) - 1
    nc = n // 2
    r = np.zeros(n + 1)
    rc = np.zeros(nc + 1)
    ec = np.zeros(nc + 1)
    for cycle in range(cycles):
        for sweep in range(nu):
            for i in range(1, n):
                u[i] = 0.5 * (u[i - 1] + u[i + 1] + h * h * f[i])
        for i in range(1, n):
            r[i] = f[i] + (u[i - 1] - 2 * u[i] + u[i + 1]) / (h * h)
        for i in range(1, nc):
            rc[i] = 0.25 * r[2 * i - 1] + 0.5 * r[2 * i] + 0.25 * r[2 * i + 1]
        ec[:] = 0.0
        for sweep in range(40):
            for i in range(1, nc):
                ec[i] = 0.5 * (ec[i - 1] + ec[i + 1] + 4 * h * h * rc[i])
        for i in range(1, nc):
            u[2 * i] += ec[i]
        for i in range(nc):
            u[2 * i + 1] += 0.5 * (ec[i] + ec[i + 1])
        for sweep in range(nu):
            for i in range(1, n):
                u[i] = 0.5 * (u[i - 1] + u[i + 1] + h * h * f[i])


@two_grid.problem
def two_grid_problem(n: int = 64, nu: int = 2, cycles: int = 4) -> dict[str, Any]:
    x = np.linspace(0.0, 1.0, n + 1)
    return {
        "u": np.zeros(n + 1),
        "f": np.sin(np.pi * x) + np.sin(9 * np.pi * x),
        "h": 1 / n,
        "nu": nu,
        "cycles": cycles,
    }


@lw.nest
def v_cycle(u, f, h, levels, cycles):
    """V-cycles in one dimension: level l lies in row l of the arrays, 2**l times coarser than the finest.

    Source: W. L. Briggs, V. E. Henson, S. F. McCormick, "A Multigrid Tutorial" (SIAM, 2000), chapter 4.
    Uses: loops over levels down and up around sequences of nests, bounds that depend on the level, n >> l, an index
      2*i.
    """
    n = u.shape[1] - 1
    for cycle in range(cycles):
        for l in range(levels - 1):  # noqa: E741
            m = n >> l
            h2 = (h * 2**l) ** 2
            for sweep in range(2):
                for i in range(1, m):
                    u[l, i] = 0.5 * (u[l, i - 1] + u[l, i + 1] + h2 * f[l, i])
            for i in range(1, m // 2):
                left = f[l, 2 * i - 1] + (u[l, 2 * i - 2] - 2 * u[l, 2 * i - 1] + u[l, 2 * i]) / h2
                mid = f[l, 2 * i] + (u[l, 2 * i - 1] - 2 * u[l, 2 * i] + u[l, 2 * i + 1]) / h2
                right = f[l, 2 * i + 1] + (u[l, 2 * i] - 2 * u[l, 2 * i + 1] + u[l, 2 * i + 2]) / h2
                f[l + 1, i] = 0.25 * left + 0.5 * mid + 0.25 * right
                u[l + 1, i] = 0.0
        u[levels - 1, 1] = 0.5 * (h * 2 ** (levels - 1)) ** 2 * f[levels - 1, 1]
        for l in range(levels - 2, -1, -1):  # noqa: E741
            m = n >> l
            h2 = (h * 2**l) ** 2
            for i in range(m // 2):
                u[l, 2 * i] += u[l + 1, i]
                u[l, 2 * i + 1] += 0.5 * (u[l + 1, i] + u[l + 1, i + 1])
            for sweep in range(2):
                for i in range(1, m):
                    u[l, i] = 0.5 * (u[l, i - 1] + u[l, i + 1] + h2 * f[l, i])


@v_cycle.problem
def v_cycle_problem(levels: int = 6, cycles: int = 5) -> dict[str, Any]:
    n = 2**levels
    u, f = np.zeros((levels, n + 1)), np.zeros((levels, n + 1))
    f[0] = np.random.default_rng(1).random(n + 1)
    return {"u": u, "f": f, "h": 1 / n, "levels": levels, "cycles": cycles}


def smooth(u, f, h, sweeps):
    """Red-black Gauss-Seidel."""
    n = u.shape[0] - 1
    for sweep in range(sweeps):
        for parity in range(2):
            for i in range(1, n):
                for j in range(1 + (i + parity) % 2, n, 2):
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h * h * f[i, j])


def residual(u, f, h):
    n = u.shape[0] - 1
    r = np.zeros_like(u)
    for i in range(1, n):
        for j in range(1, n):
            r[i, j] = f[i, j] + (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]) / (h * h)
    return r


def restrict(r):
    """Full weighting."""
    nc = (r.shape[0] - 1) // 2
    rc = np.zeros((nc + 1, nc + 1))
    for i in range(1, nc):
        for j in range(1, nc):
            rc[i, j] = (
                4 * r[2 * i, 2 * j]
                + 2 * (r[2 * i - 1, 2 * j] + r[2 * i + 1, 2 * j] + r[2 * i, 2 * j - 1] + r[2 * i, 2 * j + 1])
                + r[2 * i - 1, 2 * j - 1]
                + r[2 * i - 1, 2 * j + 1]
                + r[2 * i + 1, 2 * j - 1]
                + r[2 * i + 1, 2 * j + 1]
            ) / 16
    return rc


def add_interpolated(u, e):
    """Bilinear interpolation of the coarse correction, added to u."""
    nc = e.shape[0] - 1
    for i in range(nc):
        for j in range(nc):
            u[2 * i, 2 * j] += e[i, j]
            u[2 * i + 1, 2 * j] += 0.5 * (e[i, j] + e[i + 1, j])
            u[2 * i, 2 * j + 1] += 0.5 * (e[i, j] + e[i, j + 1])
            u[2 * i + 1, 2 * j + 1] += 0.25 * (e[i, j] + e[i + 1, j] + e[i, j + 1] + e[i + 1, j + 1])


@lw.nest
def two_grid_2d(u, f, h, cycles):
    """Two grids in two dimensions, out of helper functions that take and return arrays.

    Source: U. Trottenberg, C. W. Oosterlee, A. Schüller, "Multigrid" (Academic Press, 2001), section 2.4.
    Uses: helper functions with loops and arrays of their own, step 2 with an offset by parity, 2*i and 2*i + 1 written.
    """
    for cycle in range(cycles):
        smooth(u, f, h, 2)
        rc = restrict(residual(u, f, h))
        ec = np.zeros_like(rc)
        smooth(ec, rc, 2 * h, 20)
        add_interpolated(u, ec)
        smooth(u, f, h, 1)


@two_grid_2d.problem
def two_grid_2d_problem(n: int = 24, cycles: int = 3) -> dict[str, Any]:
    return {"u": np.zeros((n + 1, n + 1)), "f": np.ones((n + 1, n + 1)), "h": 1 / n, "cycles": cycles}


def cycle_down_and_up(u, f, h):
    smooth(u, f, h, 2)
    if u.shape[0] > 3:
        rc = restrict(residual(u, f, h))
        ec = np.zeros_like(rc)
        cycle_down_and_up(ec, rc, 2 * h)
        add_interpolated(u, ec)
        smooth(u, f, h, 2)


@lw.nest
def v_cycle_2d(u, f, h, tol):
    """V-cycles in two dimensions by recursion, until the residual is small.

    Source: U. Trottenberg, C. W. Oosterlee, A. Schüller, "Multigrid" (Academic Press, 2001), section 2.4.
    Uses: a recursive helper function, while on a residual, np.abs and max of a whole array.
    """
    cycles = 0
    while np.abs(residual(u, f, h)).max() > tol:
        cycle_down_and_up(u, f, h)
        cycles += 1
    return cycles


@v_cycle_2d.problem
def v_cycle_2d_problem(n: int = 32) -> dict[str, Any]:
    return {"u": np.zeros((n + 1, n + 1)), "f": np.ones((n + 1, n + 1)), "h": 1 / n, "tol": 1e-3}
