"""A rod that cools down, with its whole history kept: a stencil in time.

    u_t = k u_xx

Row t of the array is the rod at time t, computed from the row before by the explicit scheme. Within a row all
points are independent, but tiles of one row are far too thin to be worth a message. Tiles of many rows are what
pays, and there the dependences (1, 1), (1, 0) and (1, -1) over (t, i) stand in the way: the last points
backwards along i. Lapwing skews i by t. In i + t they are (1, 2), (1, 1) and (1, 0), and rectangles of many rows
are legal: parallelograms in the rod's own coordinates.

Source: any textbook on finite differences, such as K. W. Morton and D. F. Mayers, "Numerical Solution of Partial
Differential Equations", chapter 2. A sine of wave number p keeps its shape and shrinks in every step by exactly

    1 - 4 r sin^2(p pi h / 2)     with r = k dt / h^2, stable up to r = 1/2.

    lapwing run examples/heat1d.py -n 2 --check
    mpiexec -n 2 python examples/heat1d.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def cool(u, r):
    for t in range(1, u.shape[0]):
        for i in range(1, u.shape[1] - 1):
            u[t, i] = u[t - 1, i] + r * (u[t - 1, i - 1] - 2.0 * u[t - 1, i] + u[t - 1, i + 1])


@cool.problem
def problem(n: int = 2001, steps: int = 4000, r: float = 0.4) -> dict[str, Any]:
    """A rod of n points, its ends kept at 0: a slow wave and a fast one; all steps are kept."""
    u = np.zeros((steps + 1, n))
    x = np.linspace(0.0, 1.0, n)
    u[0] = np.sin(np.pi * x) + 0.5 * np.sin(WAVES * np.pi * x)
    u[0, -1] = 0.0
    return {"u": u, "r": r}


WAVES = 40  # of the fast one


def wave(row: np.ndarray, number: int) -> float:
    """How much of a sine is in a row."""
    x = np.linspace(0.0, 1.0, len(row))
    return float(2.0 * np.mean(row[:-1] * np.sin(number * np.pi * x[:-1])))


def main() -> None:
    arguments = problem()
    r, rod = arguments["r"], lw.DistributedArray(arguments["u"])
    cool(rod, r)
    u = rod.numpy()  # on rank 0; None on the others
    if u is None:
        return
    n = u.shape[1]
    print(f"{'step':>5}  {'slow wave':>18}  {'fast wave':>18}")
    for t in range(0, len(u), 1000):
        found, expected = [], []
        for number, start in ((1, 1.0), (WAVES, 0.5)):
            found.append(wave(u[t], number))
            expected.append(start * (1.0 - 4.0 * r * np.sin(number * np.pi / (2 * (n - 1))) ** 2) ** t)
        print(f"{t:5}  " + "  ".join(f"{a:.4f} ({b:.4f})" for a, b in zip(found, expected, strict=True)))
    print("in brackets: what the scheme should leave of it")


if __name__ == "__main__":
    main()
