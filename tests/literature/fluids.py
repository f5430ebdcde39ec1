"""Transport and flow: upwind, Lax-Wendroff, MacCormack, Burgers, shallow water, cavity flow, Euler, lattice Boltzmann."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def upwind(u, c, dt, dx, steps):
    """Advection by the first-order upwind scheme, the direction chosen in each point by the sign of the speed.

    Source: R. Courant, E. Isaacson, M. Rees (1952); R. J. LeVeque, "Finite Volume Methods for Hyperbolic Problems"
      (2002), section 4.9.
    Uses: if/else with guarded writes, periodic ends by %, a copy each step.
    """
    n = len(u)
    for step in range(steps):
        un = u.copy()
        for i in range(n):
            if c[i] > 0:
                u[i] = un[i] - c[i] * dt / dx * (un[i] - un[i - 1])
            else:
                u[i] = un[i] - c[i] * dt / dx * (un[(i + 1) % n] - un[i])


@upwind.problem
def upwind_problem(n: int = 120, steps: int = 40) -> dict[str, Any]:
    x = np.linspace(0, 1, n, endpoint=False)
    return {"u": np.exp(-200 * (x - 0.3) ** 2), "c": np.cos(2 * np.pi * x), "dt": 0.5 / n, "dx": 1 / n, "steps": steps}


@lw.nest
def lax_wendroff(u, dt, dx, steps):
    """Burgers' equation by Richtmyer's two-step method: half points, then whole points.

    Source: R. D. Richtmyer, K. W. Morton, "Difference Methods for Initial-Value Problems" (1967), section 12.7.
    Uses: a flux function, an array of half points one shorter, two nests a step, periodic with %.
    """
    n = u.shape[0]
    half = np.empty(n)
    for step in range(steps):
        for i in range(n):
            j = (i + 1) % n
            half[i] = 0.5 * (u[i] + u[j]) - 0.5 * dt / dx * (flux(u[j]) - flux(u[i]))
        for i in range(n):
            u[i] -= dt / dx * (flux(half[i]) - flux(half[i - 1]))


def flux(u):
    return 0.5 * u * u


@lax_wendroff.problem
def lax_wendroff_problem(n: int = 120, steps: int = 30) -> dict[str, Any]:
    return {"u": 1.5 + np.sin(2 * np.pi * np.arange(n) / n), "dt": 0.2 / n, "dx": 1 / n, "steps": steps}


@lw.nest
def maccormack(h, q, g, dx, cfl, t_end):
    """A dam break in one dimension by MacCormack's method; the step follows from the fastest wave.

    Source: R. W. MacCormack (1969); E. F. Toro, "Shock-Capturing Methods for Free-Surface Shallow Flows" (2001).
    Uses: while on a time, a step size from a max reduction, predictor backward, corrector forward, two fields.
    """
    n = len(h)
    hp = h.copy()
    qp = q.copy()
    t = 0.0
    steps = 0
    while t < t_end:
        speed = 0.0
        for i in range(n):
            speed = max(speed, abs(q[i] / h[i]) + np.sqrt(g * h[i]))
        dt = min(cfl * dx / speed, t_end - t)
        lam = dt / dx
        for i in range(n - 1):
            hp[i] = h[i] - lam * (q[i + 1] - q[i])
            right = q[i + 1] ** 2 / h[i + 1] + 0.5 * g * h[i + 1] ** 2
            left = q[i] ** 2 / h[i] + 0.5 * g * h[i] ** 2
            qp[i] = q[i] - lam * (right - left)
        for i in range(1, n - 1):
            right = qp[i] ** 2 / hp[i] + 0.5 * g * hp[i] ** 2
            left = qp[i - 1] ** 2 / hp[i - 1] + 0.5 * g * hp[i - 1] ** 2
            h[i], q[i] = (
                0.5 * (h[i] + hp[i] - lam * (qp[i] - qp[i - 1])),
                0.5 * (q[i] + qp[i] - lam * (right - left)),
            )
        t += dt
        steps += 1
    return steps


@maccormack.problem
def maccormack_problem(n: int = 80) -> dict[str, Any]:
    h = np.where(np.arange(n) < n // 2, 1.2, 1.0)
    return {"h": h, "q": np.zeros(n), "g": 9.81, "dx": 1 / n, "cfl": 0.7, "t_end": 0.08}


@lw.nest
def burgers_2d(u, v, nt, dt, dx, dy, nu):
    """Burgers' equations in two dimensions, upwind for u and v, walls held at one.

    Source: L. A. Barba, G. F. Forsyth, "CFD Python: the 12 steps to Navier-Stokes", JOSE 2(16) (2018), step 8.
    Uses: two copies each step, long expressions, four edges set by whole rows and columns.
    """
    ny, nx = u.shape
    for n in range(nt):
        un = u.copy()
        vn = v.copy()
        for j in range(1, ny - 1):
            for i in range(1, nx - 1):
                u[j, i] = (
                    un[j, i]
                    - dt / dx * un[j, i] * (un[j, i] - un[j, i - 1])
                    - dt / dy * vn[j, i] * (un[j, i] - un[j - 1, i])
                    + nu * dt / dx**2 * (un[j, i + 1] - 2 * un[j, i] + un[j, i - 1])
                    + nu * dt / dy**2 * (un[j + 1, i] - 2 * un[j, i] + un[j - 1, i])
                )
                v[j, i] = (
                    vn[j, i]
                    - dt / dx * un[j, i] * (vn[j, i] - vn[j, i - 1])
                    - dt / dy * vn[j, i] * (vn[j, i] - vn[j - 1, i])
                    + nu * dt / dx**2 * (vn[j, i + 1] - 2 * vn[j, i] + vn[j, i - 1])
                    + nu * dt / dy**2 * (vn[j + 1, i] - 2 * vn[j, i] + vn[j - 1, i])
                )
        u[0, :] = 1
        u[-1, :] = 1
        u[:, 0] = 1
        u[:, -1] = 1
        v[0, :] = 1
        v[-1, :] = 1
        v[:, 0] = 1
        v[:, -1] = 1


@burgers_2d.problem
def burgers_2d_problem(n: int = 21, nt: int = 6) -> dict[str, Any]:
    u = np.ones((n, n))
    u[n // 4 : n // 2, n // 4 : n // 2] = 2.0
    d = 2 / (n - 1)
    return {"u": u, "v": u.copy(), "nt": nt, "dt": 0.0009 * d * d / 0.01, "dx": d, "dy": d, "nu": 0.01}


@lw.nest
def cavity_flow(u, v, p, nt, nit, dt, dx, dy, rho, nu):
    """Flow in a cavity with a moving lid: a Poisson equation for the pressure inside each step, then the velocities.

    Source: L. A. Barba, G. F. Forsyth, "CFD Python: the 12 steps to Navier-Stokes", JOSE 2(16) (2018), step 11.
    Uses: a time loop around an iteration and three nests, copies, Neumann edges as loops and as slices, **2.
    """
    ny, nx = u.shape
    b = np.zeros((ny, nx))
    for n in range(nt):
        for j in range(1, ny - 1):
            for i in range(1, nx - 1):
                dudx = (u[j, i + 1] - u[j, i - 1]) / (2 * dx)
                dvdy = (v[j + 1, i] - v[j - 1, i]) / (2 * dy)
                dudy = (u[j + 1, i] - u[j - 1, i]) / (2 * dy)
                dvdx = (v[j, i + 1] - v[j, i - 1]) / (2 * dx)
                b[j, i] = rho * ((dudx + dvdy) / dt - dudx**2 - 2 * dudy * dvdx - dvdy**2)
        for q in range(nit):
            pn = p.copy()
            for j in range(1, ny - 1):
                for i in range(1, nx - 1):
                    p[j, i] = (
                        (pn[j, i + 1] + pn[j, i - 1]) * dy**2
                        + (pn[j + 1, i] + pn[j - 1, i]) * dx**2
                        - b[j, i] * dx**2 * dy**2
                    ) / (2 * (dx**2 + dy**2))
            for j in range(ny):
                p[j, nx - 1] = p[j, nx - 2]
                p[j, 0] = p[j, 1]
            p[0, :] = p[1, :]
            p[-1, :] = 0
        un = u.copy()
        vn = v.copy()
        for j in range(1, ny - 1):
            for i in range(1, nx - 1):
                u[j, i] = (
                    un[j, i]
                    - un[j, i] * dt / dx * (un[j, i] - un[j, i - 1])
                    - vn[j, i] * dt / dy * (un[j, i] - un[j - 1, i])
                    - dt / (2 * rho * dx) * (p[j, i + 1] - p[j, i - 1])
                    + nu * dt / dx**2 * (un[j, i + 1] - 2 * un[j, i] + un[j, i - 1])
                    + nu * dt / dy**2 * (un[j + 1, i] - 2 * un[j, i] + un[j - 1, i])
                )
                v[j, i] = (
                    vn[j, i]
                    - un[j, i] * dt / dx * (vn[j, i] - vn[j, i - 1])
                    - vn[j, i] * dt / dy * (vn[j, i] - vn[j - 1, i])
                    - dt / (2 * rho * dy) * (p[j + 1, i] - p[j - 1, i])
                    + nu * dt / dx**2 * (vn[j, i + 1] - 2 * vn[j, i] + vn[j, i - 1])
                    + nu * dt / dy**2 * (vn[j + 1, i] - 2 * vn[j, i] + vn[j - 1, i])
                )
        for i in range(nx):
            u[ny - 1, i] = 1.0


@cavity_flow.problem
def cavity_flow_problem(n: int = 15, nt: int = 5) -> dict[str, Any]:
    u, v, p = np.zeros((3, n, n))
    return {"u": u, "v": v, "p": p, "nt": nt, "nit": 8, "dt": 0.005, "dx": 2 / n, "dy": 2 / n, "rho": 1.0, "nu": 0.1}


@lw.nest
def vorticity_streamfunction(omega, psi, h, dt, re, tol, steps):
    """Lid-driven cavity by vorticity and stream function: SOR for psi until converged, Thom's walls, explicit
    vorticity.

    Source: P. J. Roache, "Computational Fluid Dynamics" (Hermosa, 1976), chapter III.
    Uses: while in a time loop, wall loops in sequence, a temporary array, chained comparison on a count.
    """
    n = psi.shape[0]
    rhs = np.zeros((n, n))
    for step in range(steps):
        error, count = 1.0, 0
        while error > tol and 0 <= count < 100:
            error = 0.0
            for i in range(1, n - 1):
                for j in range(1, n - 1):
                    gs = 0.25 * (psi[i + 1, j] + psi[i - 1, j] + psi[i, j + 1] + psi[i, j - 1] + h * h * omega[i, j])
                    error = max(error, abs(gs - psi[i, j]))
                    psi[i, j] += 1.5 * (gs - psi[i, j])
            count += 1
        for k in range(1, n - 1):
            omega[k, 0] = -2 * psi[k, 1] / h**2
            omega[k, n - 1] = -2 * psi[k, n - 2] / h**2 - 2 / h
            omega[0, k] = -2 * psi[1, k] / h**2
            omega[n - 1, k] = -2 * psi[n - 2, k] / h**2
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                advection = (
                    (psi[i, j + 1] - psi[i, j - 1]) * (omega[i + 1, j] - omega[i - 1, j])
                    - (psi[i + 1, j] - psi[i - 1, j]) * (omega[i, j + 1] - omega[i, j - 1])
                ) / (4 * h * h)
                diffusion = omega[i + 1, j] + omega[i - 1, j] + omega[i, j + 1] + omega[i, j - 1] - 4 * omega[i, j]
                rhs[i, j] = -advection + diffusion / (re * h * h)
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                omega[i, j] += dt * rhs[i, j]


@vorticity_streamfunction.problem
def vorticity_problem(n: int = 15, steps: int = 5) -> dict[str, Any]:
    rest = {"h": 1 / (n - 1), "dt": 0.005, "re": 100.0, "tol": 1e-4, "steps": steps}
    return {"omega": np.zeros((n, n)), "psi": np.zeros((n, n)), **rest}


@lw.nest
def shallow_water(h, hu, hv, g, dt, dx, steps):
    """The shallow water equations on a torus by Lax and Friedrichs' scheme, three fields at once.

    Source: R. J. LeVeque, "Finite Volume Methods for Hyperbolic Problems" (2002), sections 4.6 and 13.1.
    Uses: % in four index variables, tuple assignments, three arrays written and swapped, one chained comparison.
    """
    n, m = h.shape
    hn, hun, hvn = np.empty_like(h), np.empty_like(hu), np.empty_like(hv)
    lam = dt / (2 * dx)
    dry = 0
    for step in range(steps):
        for i in range(n):
            for j in range(m):
                iw, ie, js, jn = (i - 1) % n, (i + 1) % n, (j - 1) % m, (j + 1) % m
                hn[i, j] = (h[iw, j] + h[ie, j] + h[i, js] + h[i, jn]) / 4 - lam * (
                    hu[ie, j] - hu[iw, j] + hv[i, jn] - hv[i, js]
                )
                fe, fw = (
                    hu[ie, j] ** 2 / h[ie, j] + g / 2 * h[ie, j] ** 2,
                    hu[iw, j] ** 2 / h[iw, j] + g / 2 * h[iw, j] ** 2,
                )
                go, gs = hu[i, jn] * hv[i, jn] / h[i, jn], hu[i, js] * hv[i, js] / h[i, js]
                hun[i, j] = (hu[iw, j] + hu[ie, j] + hu[i, js] + hu[i, jn]) / 4 - lam * (fe - fw + go - gs)
                fe, fw = hu[ie, j] * hv[ie, j] / h[ie, j], hu[iw, j] * hv[iw, j] / h[iw, j]
                go, gs = (
                    hv[i, jn] ** 2 / h[i, jn] + g / 2 * h[i, jn] ** 2,
                    hv[i, js] ** 2 / h[i, js] + g / 2 * h[i, js] ** 2,
                )
                hvn[i, j] = (hv[iw, j] + hv[ie, j] + hv[i, js] + hv[i, jn]) / 4 - lam * (fe - fw + go - gs)
                if 0 <= hn[i, j] < 0.9:
                    dry += 1
        h, hn = hn, h
        hu, hun = hun, hu
        hv, hvn = hvn, hv
    return h, hu, hv, dry


@shallow_water.problem
def shallow_water_problem(n: int = 16, steps: int = 6) -> dict[str, Any]:
    x, y = np.mgrid[:n, :n] / n
    h = 1 + 0.5 * np.exp(-50 * ((x - 0.5) ** 2 + (y - 0.4) ** 2))
    return {
        "h": h,
        "hu": np.zeros_like(h),
        "hv": np.zeros_like(h),
        "g": 9.81,
        "dt": 0.2 / n,
        "dx": 1 / n,
        "steps": steps,
    }


@lw.nest
def sod_hll(U, gamma, dx, cfl, t_end):
    """Sod's shock tube by Godunov's method with the flux of Harten, Lax and van Leer.

    Source: E. F. Toro, "Riemann Solvers and Numerical Methods for Fluid Dynamics" (Springer, 2009), section 10.3.
    Uses: components in the last axis, helper functions returning tuples, if/elif/else over wave speeds, an inner
      loop of 3, while.
    """
    n = U.shape[0]
    F = np.zeros((n - 1, 3))
    t = 0.0
    while t < t_end:
        fastest = 0.0
        for i in range(n):
            rho, u, p = primitive(U[i, 0], U[i, 1], U[i, 2], gamma)
            fastest = max(fastest, abs(u) + math.sqrt(gamma * p / rho))
        dt = min(cfl * dx / fastest, t_end - t)
        for i in range(n - 1):
            rl, ul, pl = primitive(U[i, 0], U[i, 1], U[i, 2], gamma)
            rr, ur, pr = primitive(U[i + 1, 0], U[i + 1, 1], U[i + 1, 2], gamma)
            cl, cr = math.sqrt(gamma * pl / rl), math.sqrt(gamma * pr / rr)
            sl, sr = min(ul - cl, ur - cr), max(ul + cl, ur + cr)
            if sl >= 0:
                F[i, 0], F[i, 1], F[i, 2] = rl * ul, rl * ul * ul + pl, ul * (U[i, 2] + pl)
            elif sr <= 0:
                F[i, 0], F[i, 1], F[i, 2] = rr * ur, rr * ur * ur + pr, ur * (U[i + 1, 2] + pr)
            else:
                F[i, 0] = (sr * rl * ul - sl * rr * ur + sl * sr * (rr - rl)) / (sr - sl)
                fl, fr = rl * ul * ul + pl, rr * ur * ur + pr
                F[i, 1] = (sr * fl - sl * fr + sl * sr * (U[i + 1, 1] - U[i, 1])) / (sr - sl)
                fl, fr = ul * (U[i, 2] + pl), ur * (U[i + 1, 2] + pr)
                F[i, 2] = (sr * fl - sl * fr + sl * sr * (U[i + 1, 2] - U[i, 2])) / (sr - sl)
        for i in range(1, n - 1):
            for k in range(3):
                U[i, k] -= dt / dx * (F[i, k] - F[i - 1, k])
        t += dt


def primitive(rho, momentum, energy, gamma):
    u = momentum / rho
    return rho, u, (gamma - 1) * (energy - 0.5 * rho * u * u)


@sod_hll.problem
def sod_hll_problem(n: int = 60) -> dict[str, Any]:
    left = np.arange(n) < n // 2
    U = np.stack([np.where(left, 1.0, 0.125), np.zeros(n), np.where(left, 2.5, 0.25)], axis=1)
    return {"U": U, "gamma": 1.4, "dx": 1 / n, "cfl": 0.8, "t_end": 0.1}


@lw.nest
def muscl(u, a, dt, dx, steps):
    """Advection of second order with van Leer's limiter on slopes, ghost cells copied around each step.

    Source: B. van Leer, "Towards the ultimate conservative difference scheme V", J. Comput. Phys. 32 (1979).
    Uses: ghost cells filled between nests, slopes in an array of their own, if product > 0 else 0, three nests a step.
    """
    n = len(u)
    slope = np.zeros(n)
    f = np.zeros(n + 1)
    nu = a * dt / dx
    for step in range(steps):
        u[0], u[1] = u[n - 4], u[n - 3]
        u[n - 2], u[n - 1] = u[2], u[3]
        for i in range(1, n - 1):
            left = u[i] - u[i - 1]
            right = u[i + 1] - u[i]
            if left * right > 0:
                slope[i] = 2 * left * right / (left + right)
            else:
                slope[i] = 0.0
        for i in range(2, n - 1):
            f[i] = a * (u[i - 1] + 0.5 * (1 - nu) * slope[i - 1])
        for i in range(2, n - 2):
            u[i] = u[i] - dt / dx * (f[i + 1] - f[i])


@muscl.problem
def muscl_problem(n: int = 104, steps: int = 25) -> dict[str, Any]:
    u = np.where((np.arange(n) > 20) & (np.arange(n) < 50), 1.0, 0.0)
    return {"u": u, "a": 1.0, "dt": 0.5 / n, "dx": 1 / n, "steps": steps}


@lw.nest
def lattice_boltzmann(f, obstacle, tau, ux0, steps):
    """D2Q9 lattice Boltzmann past an obstacle: collide with BGK, stream on a torus, bounce back, drive the inflow.

    Source: T. Krüger et al., "The Lattice Boltzmann Method" (Springer, 2017), section 3.2-3.3.
    Uses: lattice tables, inner loops over 9 directions with accumulators, pushes to (i + cx[k]) % nx, guards by a
      mask, swap.
    """
    cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
    cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    w = np.array([4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36])
    opposite = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
    nx, ny, _ = f.shape
    fnew = np.zeros_like(f)
    for step in range(steps):
        for i in range(nx):
            for j in range(ny):
                if obstacle[i, j]:
                    continue
                rho, mx, my = 0.0, 0.0, 0.0
                for k in range(9):
                    rho += f[i, j, k]
                    mx += cx[k] * f[i, j, k]
                    my += cy[k] * f[i, j, k]
                u = mx / rho
                v = my / rho
                if i == 0:
                    u = ux0
                for k in range(9):
                    cu = 3.0 * (cx[k] * u + cy[k] * v)
                    feq = rho * w[k] * (1.0 + cu + 0.5 * cu * cu - 1.5 * (u * u + v * v))
                    f[i, j, k] += (feq - f[i, j, k]) / tau
        for i in range(nx):
            for j in range(ny):
                for k in range(9):
                    ip = (i + cx[k]) % nx
                    jp = (j + cy[k]) % ny
                    if obstacle[ip, jp]:
                        fnew[i, j, opposite[k]] = f[i, j, k]
                    else:
                        fnew[ip, jp, k] = f[i, j, k]
        f, fnew = fnew, f
    return f


@lattice_boltzmann.problem
def lattice_boltzmann_problem(n: int = 16, steps: int = 4) -> dict[str, Any]:
    w = np.array([4 / 9] + 4 * [1 / 9] + 4 * [1 / 36])
    x, y = np.mgrid[: n + 8, :n]
    obstacle = (x - n // 3) ** 2 + (y - n // 2) ** 2 < 9
    return {"f": np.ones((n + 8, n, 1)) * w, "obstacle": obstacle, "tau": 0.8, "ux0": 0.08, "steps": steps}
