"""Nine-point Gauss-Seidel: Laplace's equation to sixth order, solved in place.

The five-point mean of `gauss_seidel.py` is off by h^2. Taking the corners in as well,

    u[i, j] = (4 (north + west + east + south) + four corners) / 20,

leaves an error of h^6 for Laplace's equation: half the spacing, a 64th of the error. The price is in the
dependences. The corner above and to the right has its new value already, so over (i, j) a point depends on
(1, -1): backwards along j. Rectangular tiles would need each other's values and none could go first. Lapwing
skews j by i: in j + i every dependence points forwards, tiles are parallelograms, and the points are still done
in an order that keeps every bit.

Source: the Mehrstellen formula in L. Collatz, "The Numerical Treatment of Differential Equations", table VI.

    lapwing run examples/gauss_seidel9.py -n 2 --check -p n=2048
    mpiexec -n 2 python examples/gauss_seidel9.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def smooth9(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                beside = u[i - 1, j] + u[i, j - 1] + u[i, j + 1] + u[i + 1, j]
                corners = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
                u[i, j] = (4.0 * beside + corners) / 20.0


@smooth9.problem
def problem(n: int = 1024, sweeps: int = 10) -> dict[str, Any]:
    """A plate of n x n points with the exact solution along its edges and 0 inside."""
    u = exact(n)
    u[1:-1, 1:-1] = 0.0
    return {"u": u, "sweeps": sweeps}


def exact(n: int) -> np.ndarray:
    """A solution of Laplace's equation on the unit square: sin(2x) exp(2y)."""
    x, y = np.meshgrid(np.linspace(0.0, 1.0, n), np.linspace(0.0, 1.0, n), indexing="ij")
    return np.sin(2.0 * x) * np.exp(2.0 * y)


def main() -> None:
    lines = [f"{'points':>9}  {'error':>8}  of the coarser one's"]
    before = None
    for n in (5, 9, 17):
        u = lw.DistributedArray(problem(n)["u"])
        smooth9(u, 3 * n * n)  # enough for the last bits
        plate = u.numpy()  # on rank 0; None on the others
        if plate is not None:
            error = float(np.abs(plate - exact(n)).max())
            share = "" if before is None else f"1/{before / error:.0f}"
            lines.append(f"{f'{n} x {n}':>9}  {error:8.1e}  {share}".rstrip())
            before = error
    if before is not None:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
