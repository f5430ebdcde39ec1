"""Square roots in three dimensions: the test loop of the paper on overlapping tile schedules.

Each point needs its three lower neighbours, the new values, so no loop is parallel and every tile waits for
three others. It is the smallest nest that shows what a pipelined schedule gains by sending one tile's faces
while it computes the next: k is the long dimension, cut into tiles along which every rank runs, and i and j
make the grid of ranks.

Source: N. Koziris, A. Sotiropoulos, G. Goumas, "Minimizing Completion Time for Loop Tiling with Computation
and Communication Overlapping": float elements, spaces of 16 x 16 x 16384, 16 x 16 x 32768 and 32 x 32 x 4096
points.

    lapwing run examples/sqrt3d.py -n 2 --check
    lapwing run examples/sqrt3d.py -n 2 -p i=32 -p j=32 -p k=4096
    mpiexec -n 2 python examples/sqrt3d.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def sqrt3d(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@sqrt3d.problem
def problem(i: int = 16, j: int = 16, k: int = 16384) -> dict[str, Any]:
    """An i x j x k space, and the three faces of given values that it starts from."""
    a = np.zeros((i + 1, j + 1, k + 1), np.float32)
    rng = np.random.default_rng(0)
    a[0], a[:, 0], a[:, :, 0] = (rng.random(face.shape, np.float32) for face in (a[0], a[:, 0], a[:, :, 0]))
    return {"a": a}


def main() -> None:
    a = lw.DistributedArray(problem()["a"])
    start = time.perf_counter()
    sqrt3d(a)
    seconds = time.perf_counter() - start

    whole = a.numpy()  # on rank 0; None on the others
    if whole is not None:
        points = whole[1:, 1:, 1:]
        print(f"{points.size:,} points in {seconds:.3f} s, building and distributing included")
        # Far from the faces x = 3 sqrt(x) holds, whatever the faces are: the loop forgets its start and tends to 9.
        print(f"last point {points[-1, -1, -1]:.6f}; the fixed point of x = 3 sqrt(x) is 9")


if __name__ == "__main__":
    main()
