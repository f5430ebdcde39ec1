"""Successive over-relaxation in three dimensions: Poisson's equation on the unit cube with the 7-point stencil.

    -(u_xx + u_yy + u_zz) = f  inside,   u = 0  on the faces

Every update takes new values from three neighbours and old values from the other three, and goes omega times
as far as Gauss-Seidel would. With the best omega the number of sweeps grows with n and no longer with n
squared. That needs the new values at once: with old values alone an omega above 1 diverges. The right-hand
side f is an array that is only read.

Source: D. M. Young, "Iterative Solution of Large Linear Systems" (1971). The exact solution is known here:
u = sin(pi x) sin(pi y) sin(pi z) for f = 3 pi^2 u.

    lapwing run examples/sor3d.py -n 2 --check
    mpiexec -n 2 python examples/sor3d.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def sor(u, f, omega, sweeps):
    h = 1.0 / (u.shape[0] - 1)
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    new = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                    old = u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1]
                    mean = (new + old + h * h * f[i, j, k]) / 6.0
                    u[i, j, k] = u[i, j, k] + omega * (mean - u[i, j, k])


def solution(n: int) -> np.ndarray:
    """The exact solution on n x n x n points, the faces included."""
    wave = np.sin(math.pi * np.linspace(0.0, 1.0, n))
    return wave[:, None, None] * wave[:, None] * wave


@sor.problem
def problem(n: int = 97, sweeps: int = 20, omega: float = 0.0) -> dict[str, Any]:
    """n points along each side; omega = 0 stands for the best one, 2 / (1 + sin(pi / (n - 1)))."""
    best = 2.0 / (1.0 + math.sin(math.pi / (n - 1)))
    f = 3.0 * math.pi**2 * solution(n)
    return {"u": np.zeros((n, n, n)), "f": f, "omega": omega or best, "sweeps": sweeps}


def main() -> None:
    arguments = problem()
    u, f = lw.DistributedArray(arguments["u"]), lw.DistributedArray(arguments["f"])
    omega, sweeps = arguments["omega"], arguments["sweeps"]
    exact = solution(u.shape[0])
    for call in range(1, 11):
        sor(u, f, omega, sweeps)
        values = u.numpy()  # on rank 0; None on the others
        if values is not None:
            print(f"{call * sweeps:4} sweeps, omega {omega:.4f}: largest error {np.abs(values - exact).max():.2e}")


if __name__ == "__main__":
    main()
