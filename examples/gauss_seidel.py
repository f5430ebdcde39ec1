"""Gauss-Seidel sweeps over a heated plate: Laplace's equation in two dimensions, solved in place.

A point is replaced by the mean of its four neighbours. Two of them, above and to the left, have their new
values already; the other two still have the old ones. That is what makes Gauss-Seidel converge twice as fast
as Jacobi's method with half the memory, and what makes it hard to run in parallel: within a sweep every point
depends on the one before it, and a sweep on the one before that. Most parallel codes change the order of the
points (red-black) and so the answer. Lapwing keeps the order, and with it every bit, by running the sweep as
a wavefront of tiles.

Source: any textbook on iterative methods, such as Y. Saad, "Iterative Methods for Sparse Linear Systems",
chapter 4.

    lapwing run examples/gauss_seidel.py -n 2 --check -p n=2048
    mpiexec -n 2 python examples/gauss_seidel.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def residual(u):
    """How far the worst point is from the mean of its neighbours: a nest that only reduces."""
    worst = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            mean = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
            worst = max(worst, abs(mean - u[i, j]))
    return worst


@smooth.problem
def problem(n: int = 1024, sweeps: int = 10) -> dict[str, Any]:
    """A plate of n x n points: its first row is kept at 100 degrees, the other edges at 0."""
    u = np.zeros((n, n))
    u[0] = 100.0
    return {"u": u, "sweeps": sweeps}


def main() -> None:
    u = lw.DistributedArray(problem()["u"])  # stays on the ranks between the calls below
    done = 0
    lines = [f"{'sweeps':>6}  {'residual':>9}", f"{done:6}  {residual(u):9.5f}"]
    for sweeps in (1, 1, 2, 4, 8, 16, 32, 64, 128):
        smooth(u, sweeps)
        done += sweeps
        lines.append(f"{done:6}  {residual(u):9.5f}")
    plate = u.numpy()  # on rank 0; None on the others
    if plate is not None:
        print("\n".join(lines))
        middle = plate[:, plate.shape[1] // 2]
        print(f"the plate is warmer than 1 degree down to row {np.flatnonzero(middle > 1.0)[-1]} of {len(middle)}")


if __name__ == "__main__":
    main()
