"""Waves: Maxwell's equations by FDTD, the wave equation, Schrödinger's and Helmholtz's in complex numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def fdtd_1d(ez, hy, imp0, steps):
    """The electric and the magnetic field in turn, with an additive source and a matched left end.

    Source: J. B. Schneider, "Understanding the Finite-Difference Time-Domain Method", program 3.3;
      github.com/john-b-schneider/uFDTD.
    Uses: two nests in a time loop, statements on single elements between them, math.exp of the time.
    """
    size = len(ez)
    for t in range(steps):
        for m in range(size - 1):
            hy[m] = hy[m] + (ez[m + 1] - ez[m]) / imp0
        ez[0] = ez[1]
        for m in range(1, size - 1):
            ez[m] = ez[m] + (hy[m] - hy[m - 1]) * imp0
        ez[50] += math.exp(-(t - 30.0) * (t - 30.0) / 100.0)


@fdtd_1d.problem
def fdtd_1d_problem(size: int = 150, steps: int = 100) -> dict[str, Any]:
    return {"ez": np.zeros(size), "hy": np.zeros(size), "imp0": 377.0, "steps": steps}


@lw.nest
def fdtd_2d(ex, ey, hz, fict, tmax):
    """Two electric fields and a magnetic one on staggered points, driven along an edge.

    Source: L.-N. Pouchet, PolyBench/C 4.2, stencils/fdtd-2d; in Python: github.com/UDC-GAC/polybench-python.
    Uses: four nests of different bounds in a time loop, a boundary row set from a table of time.
    """
    nx, ny = hz.shape
    for t in range(tmax):
        for j in range(ny):
            ey[0, j] = fict[t]
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@fdtd_2d.problem
def fdtd_2d_problem(n: int = 20, tmax: int = 12) -> dict[str, Any]:
    i, j = np.mgrid[:n, : n + 2]
    ex, ey, hz = i * (j + 1) / n, i * (j + 2) / n, i * (j + 3) / n
    return {"ex": ex, "ey": ey, "hz": hz, "fict": np.arange(float(tmax)), "tmax": tmax}


@lw.nest
def fdtd_tm_mur(ez, hx, hy, ca, cb, steps):
    """TM waves with a lossy cylinder, Mur's absorbing edges, and a source in one cell.

    Source: A. Taflove, S. C. Hagness, "Computational Electrodynamics" (Artech House, 2005), chapters 3 and 6.
    Uses: coefficient tables, edges updated by loops of their own with values saved before, math.sin of the step.
    """
    nx, ny = ez.shape
    s = 0.5
    mur = (s - 1) / (s + 1)
    left = np.zeros(ny)
    right = np.zeros(ny)
    for t in range(steps):
        for i in range(nx):
            for j in range(ny - 1):
                hx[i, j] -= s * (ez[i, j + 1] - ez[i, j])
        for i in range(nx - 1):
            for j in range(ny):
                hy[i, j] += s * (ez[i + 1, j] - ez[i, j])
        for j in range(ny):
            left[j] = ez[1, j]
            right[j] = ez[nx - 2, j]
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                curl = hy[i, j] - hy[i - 1, j] - hx[i, j] + hx[i, j - 1]
                ez[i, j] = ca[i, j] * ez[i, j] + cb[i, j] * curl
        ez[nx // 3, ny // 2] += math.sin(2 * math.pi * t / 12)
        for j in range(1, ny - 1):
            ez[0, j] = left[j] + mur * (ez[1, j] - ez[0, j])
            ez[nx - 1, j] = right[j] + mur * (ez[nx - 2, j] - ez[nx - 1, j])


@fdtd_tm_mur.problem
def fdtd_tm_mur_problem(n: int = 24, steps: int = 15) -> dict[str, Any]:
    x, y = np.mgrid[:n, : n + 4]
    inside = (x - 2 * n / 3) ** 2 + (y - n / 2) ** 2 < (n / 6) ** 2
    fields = {name: np.zeros((n, n + 4)) for name in ("ez", "hx", "hy")}
    return fields | {"ca": np.where(inside, 0.8, 1.0), "cb": np.where(inside, 0.3, 0.5), "steps": steps}


@lw.nest
def wave_1d(u, u_1, u_2, q, C2, Nt):
    """A wave in a medium of varying speed, with the first step apart and reflecting ends.

    Source: H. P. Langtangen, S. Linge, "Finite Difference Computing with PDEs" (2017), chapter 2;
      github.com/hplgit/fdm-book.
    Uses: a first nest before the time loop, end points apart, three arrays rotated, means of neighbours in an index.
    """
    Nx = u.size - 1
    for i in range(1, Nx):
        right = 0.5 * (q[i] + q[i + 1]) * (u_1[i + 1] - u_1[i])
        left = 0.5 * (q[i] + q[i - 1]) * (u_1[i] - u_1[i - 1])
        u[i] = u_1[i] + 0.5 * C2 * (right - left)
    u[0] = u[Nx] = 0.0
    u_2, u_1, u = u_1, u, u_2
    for n in range(1, Nt):
        for i in range(1, Nx):
            right = 0.5 * (q[i] + q[i + 1]) * (u_1[i + 1] - u_1[i])
            left = 0.5 * (q[i] + q[i - 1]) * (u_1[i] - u_1[i - 1])
            u[i] = -u_2[i] + 2 * u_1[i] + C2 * (right - left)
        i = 0
        u[i] = -u_2[i] + 2 * u_1[i] + C2 * (q[i] + q[i + 1]) * (u_1[i + 1] - u_1[i])
        i = Nx
        u[i] = -u_2[i] + 2 * u_1[i] + C2 * (q[i] + q[i - 1]) * (u_1[i - 1] - u_1[i])
        u_2, u_1, u = u_1, u, u_2
    return u_1


@wave_1d.problem
def wave_1d_problem(n: int = 101, Nt: int = 50) -> dict[str, Any]:
    x = np.linspace(0, 1, n)
    start = np.exp(-(((x - 0.3) / 0.05) ** 2))
    return {"u": np.zeros(n), "u_1": start, "u_2": np.zeros(n), "q": np.where(x > 0.6, 0.25, 1.0), "C2": 0.8, "Nt": Nt}


@lw.nest
def leapfrog_2d(u, c2, source, dt, h):
    """The acoustic wave equation of fourth order in space, three time levels in one array; records a line of receivers.

    Source: R. M. Alford, K. R. Kelly, D. M. Boore, "Accuracy of finite-difference modeling of the acoustic wave
      equation" (1974).
    Uses: levels t % 3, (t - 1) % 3 and (t + 1) % 3, stencils two points wide, one element changed between nests, a
      record by rows.
    """
    _, nx, ny = u.shape
    steps = len(source)
    record = np.zeros((steps, ny))
    for t in range(steps):
        before, now, after = (t - 1) % 3, t % 3, (t + 1) % 3
        for i in range(2, nx - 2):
            for j in range(2, ny - 2):
                dxx = (
                    -u[now, i - 2, j]
                    + 16 * u[now, i - 1, j]
                    - 30 * u[now, i, j]
                    + 16 * u[now, i + 1, j]
                    - u[now, i + 2, j]
                )
                dyy = (
                    -u[now, i, j - 2]
                    + 16 * u[now, i, j - 1]
                    - 30 * u[now, i, j]
                    + 16 * u[now, i, j + 1]
                    - u[now, i, j + 2]
                )
                u[after, i, j] = 2 * u[now, i, j] - u[before, i, j] + c2[i, j] * dt**2 * (dxx + dyy) / (12 * h**2)
        u[after, nx // 2, ny // 2] += dt**2 * source[t]
        for j in range(ny):
            record[t, j] = u[after, 2, j]
    return record


@leapfrog_2d.problem
def leapfrog_2d_problem(n: int = 24, steps: int = 14) -> dict[str, Any]:
    t = np.arange(steps) - 5.0
    source = (1 - 0.2 * t**2) * np.exp(-0.1 * t**2)
    return {"u": np.zeros((3, n, n)), "c2": np.ones((n, n)), "source": source, "dt": 0.4, "h": 1.0}


@lw.nest
def schrodinger(psi, V, dx, dt, steps):
    """A wave packet at a barrier: Crank-Nicolson for Schrödinger's equation, a complex tridiagonal system in each step.

    Source: A. Goldberg, H. M. Schey, J. L. Schwartz, "Computer-generated motion pictures of quantum-mechanical
      scattering" (1967).
    Uses: complex128, recurrences forward and back, a coefficient table computed once, a probability summed at the end.
    """
    n = len(psi)
    e = np.zeros(n, dtype=complex)
    f = np.zeros(n, dtype=complex)
    lam = 2 * dx**2 / dt
    e[1] = 2 + dx**2 * V[1] - 1j * lam
    for i in range(2, n - 1):
        e[i] = 2 + dx**2 * V[i] - 1j * lam - 1 / e[i - 1]
    for step in range(steps):
        for i in range(1, n - 1):
            omega = -psi[i + 1] + (1j * lam + dx**2 * V[i] + 2) * psi[i] - psi[i - 1]
            f[i] = omega + f[i - 1] / e[i - 1] if i > 1 else omega
        for i in range(n - 2, 0, -1):
            psi[i] = (psi[i + 1] - f[i]) / e[i]
    inside = 0.0
    for i in range(n // 2, n):
        inside += abs(psi[i]) ** 2 * dx
    return inside


@schrodinger.problem
def schrodinger_problem(n: int = 100, steps: int = 20) -> dict[str, Any]:
    x = np.linspace(0, 1, n)
    psi = np.exp(-(((x - 0.35) / 0.05) ** 2) + 60j * x)
    psi[0] = psi[-1] = 0
    return {"psi": psi, "V": np.where(abs(x - 0.55) < 0.02, 2000.0, 0.0), "dx": x[1] - x[0], "dt": 2e-4, "steps": steps}


@lw.nest
def helmholtz(u, f, k2, h, omega, sweeps):
    """Damped Helmholtz equation, relaxed point by point in complex numbers.

    Source: Y. A. Erlangga, C. Vuik, C. W. Oosterlee, "On a class of preconditioners for the Helmholtz equation" (2004).
    Uses: complex64 in place, a complex constant, the largest modulus of a change returned.
    """
    worst = 0.0
    for sweep in range(sweeps):
        worst = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                diagonal = 4 - h * h * k2 * (1 - 0.5j)
                new = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h * h * f[i, j]) / diagonal
                change = omega * (new - u[i, j])
                u[i, j] += change
                worst = max(worst, abs(change))
    return worst


@helmholtz.problem
def helmholtz_problem(n: int = 18, sweeps: int = 8) -> dict[str, Any]:
    f = np.zeros((n, n), np.complex64)
    f[n // 2, n // 2] = 1.0
    return {"u": np.zeros((n, n), np.complex64), "f": f, "k2": 40.0, "h": 1 / (n - 1), "omega": 0.8, "sweeps": sweeps}


@lw.nest
def mandelbrot(counts, xmin, xmax, ymin, ymax, limit):
    """How many steps each point takes to escape.

    Source: B. B. Mandelbrot, "The Fractal Geometry of Nature" (1982); github.com/numba/numba-examples, mandelbrot_set.
    Uses: a complex scalar, an inner loop left by break, z.real and z.imag, an integer array.
    """
    height, width = counts.shape
    for i in range(height):
        for j in range(width):
            c = complex(xmin + j * (xmax - xmin) / width, ymin + i * (ymax - ymin) / height)
            z = 0j
            count = limit
            for k in range(limit):
                z = z * z + c
                if z.real * z.real + z.imag * z.imag >= 4.0:
                    count = k
                    break
            counts[i, j] = count


@mandelbrot.problem
def mandelbrot_problem(n: int = 36, limit: int = 30) -> dict[str, Any]:
    return {
        "counts": np.zeros((n, n + 6), np.int32),
        "xmin": -2.0,
        "xmax": 0.6,
        "ymin": -1.2,
        "ymax": 1.2,
        "limit": limit,
    }


@lw.nest
def wave_space_time(u, C):
    """The wave equation with all of its history, rows n and n - 1 giving row n + 1.

    Source: J. W. Thomas, "Numerical Partial Differential Equations: Finite Difference Methods" (1995).
    Uses: one nest over a table of time by space, two rows back, C**2.
    """
    for n in range(1, u.shape[0] - 1):
        for i in range(1, u.shape[1] - 1):
            u[n + 1, i] = 2 * u[n, i] - u[n - 1, i] + C**2 * (u[n, i - 1] - 2 * u[n, i] + u[n, i + 1])


@wave_space_time.problem
def wave_space_time_problem(steps: int = 60, n: int = 80) -> dict[str, Any]:
    u = np.zeros((steps, n))
    u[0] = u[1] = np.exp(-((np.arange(n) - n / 3) ** 2) / 20)
    u[:, [0, -1]] = 0.0
    return {"u": u, "C": 0.9}
