"""Advection in two dimensions: Zalesak's slotted disk, carried down and to the right by a steady wind.

    v_t + cx v_x + cy v_y = 0

The scheme is upwind and in place: of its neighbours a point takes the one above and the one to the left, which
have their new values already. Every point needs its own old value and those two new ones, so the dependence
matrix is the identity: over (t, i, j) it holds (1, 0, 0), (0, 1, 0) and (0, 0, 1). No rank ever needs a value
of one that comes after it, not even between sweeps, and time can be the mapping dimension: all space loops are
cut among the ranks, each rank does its whole block sweep after sweep, and the faces of several sweeps travel
in one message.

Source: G. Goumas, N. Anastopoulos, N. Koziris, N. Ioannou, "Overlapping Computation and Communication in SMT
Clusters with Commodity Interconnects", equation 2 in two dimensions:

    v[i, j] (new) = (1 - wx - wy) v[i, j] + wx v[i-1, j] (new) + wy v[i, j-1] (new)

With wx = Cx / (1 + Cx + Cy) and wy = Cy / (1 + Cx + Cy) it is the implicit upwind scheme for Courant numbers
Cx and Cy: stable for all of them, it keeps the total of v and moves its centre of mass by exactly Cx and Cy
points a sweep. Being of first order, it blurs. 1024 x 1024 points and 256 sweeps is the smallest space of the
source.

    lapwing run examples/advection2d.py -n 2 --check
    lapwing run examples/advection2d.py -n 4 --grid all -p n=2048
    mpiexec -n 2 python examples/advection2d.py --picture out/advection.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def advect(v, cx, cy, sweeps):
    wx = cx / (1.0 + cx + cy)
    wy = cy / (1.0 + cx + cy)
    keep = 1.0 - wx - wy
    for t in range(sweeps):
        for i in range(1, v.shape[0]):
            for j in range(1, v.shape[1]):
                v[i, j] = keep * v[i, j] + wx * v[i - 1, j] + wy * v[i, j - 1]


@advect.problem
def problem(n: int = 1024, sweeps: int = 256, cx: float = 1.0, cy: float = 0.5) -> dict[str, Any]:
    """n x n points of a calm background 0 with the slotted disk in the upper left; Courant numbers cx, cy."""
    x, y = np.meshgrid(np.linspace(0.0, 1.0, n), np.linspace(0.0, 1.0, n), indexing="ij")
    disk = np.hypot(x - 0.3, y - 0.3) < 0.15
    slot = (np.abs(y - 0.3) < 0.025) & (x > 0.2)
    v = np.where(disk & ~slot, 1.0, 0.0)
    return {"v": v, "cx": cx, "cy": cy, "sweeps": sweeps}


def centre(v: np.ndarray) -> tuple[float, float]:
    """The centre of mass, in points."""
    along_i, along_j = v.sum(axis=1), v.sum(axis=0)
    return tuple(float(np.arange(len(a)) @ a / a.sum()) for a in (along_i, along_j))  # type: ignore[return-value]


def draw(path: Path, before: np.ndarray, after: np.ndarray) -> None:
    """The disk at the start and at the end."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    for axes, v, title in zip(figure.subplots(1, 2), (before, after), ("start", "end"), strict=True):
        image = axes.imshow(v, cmap="viridis", vmin=0.0, vmax=1.0)
        axes.plot(*reversed(centre(v)), "+", color="red", markersize=12)
        axes.set(title=title, xlabel="j", ylabel="i")
    figure.colorbar(image, label="v", shrink=0.8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description="A slotted disk in a steady wind.")
    parser.add_argument("--picture", type=Path, help="draw the disk, before and after, into this file")
    options = parser.parse_args()

    arguments = problem()
    start, cx, cy = arguments["v"], arguments["cx"], arguments["cy"]
    v = lw.DistributedArray(start.copy())
    start_i, start_j = centre(start)
    for done in range(64, arguments["sweeps"] + 1, 64):
        advect(v, cx, cy, 64)
        values = v.numpy()  # on rank 0; None on the others
        if values is not None:
            i, j = centre(values)
            print(
                f"{done:4} sweeps: total {values.sum():.3f} of {start.sum():.0f}, centre ({i:.3f}, {j:.3f}), "
                f"carried to ({start_i + cx * done:.3f}, {start_j + cy * done:.3f})"
            )
    if options.picture and values is not None:
        try:
            draw(options.picture, start, values)
        except ImportError:
            raise SystemExit('The picture is drawn with matplotlib: pip install "lapwing[examples]"') from None
        print(f"picture: {options.picture}")


if __name__ == "__main__":
    main()
