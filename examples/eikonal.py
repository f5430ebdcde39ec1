"""First-arrival times over real terrain: how long it takes to walk to every place, by fast sweeping.

The arrival time T obeys the eikonal equation |grad T| = 1 / speed. Godunov's upwind update of a point takes
the earlier of its two neighbours in each direction. Done in place, a sweep down and right carries arrivals
any distance down and right; four sweeps, one for each pair of directions, make a round, and after some rounds
nothing changes. Every sweep is a nest of its own, its loops ascending or descending, in which each point
depends on the one before it. The times stay distributed over the ranks from sweep to sweep, and every sweep
returns by how much it lowered a time at most.

Source: H. Zhao, "A fast sweeping method for Eikonal equations", Math. Comp. 74 (2005). The terrain is the
elevation model of the Jacksboro fault in Tennessee that matplotlib ships; the speed is W. Tobler's hiking
function (1993) of its steepness.

    python examples/eikonal.py --picture out/eikonal.png
    mpiexec -n 2 python examples/eikonal.py
    lapwing run examples/eikonal.py -n 2 --check -p spacing=10
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw

FAR = 1e9  # seconds: not reached yet


@lw.nest
def down_right(T, cost):
    change = 0.0
    for i in range(1, T.shape[0] - 1):
        for j in range(1, T.shape[1] - 1):
            a = min(T[i - 1, j], T[i + 1, j])
            b = min(T[i, j - 1], T[i, j + 1])
            gap = a - b
            c = cost[i, j]
            arrival = min(a, b) + c if abs(gap) >= c else 0.5 * (a + b + np.sqrt(2.0 * c * c - gap * gap))
            change = max(change, T[i, j] - arrival)
            T[i, j] = min(T[i, j], arrival)
    return change


@lw.nest
def up_right(T, cost):
    change = 0.0
    for i in range(T.shape[0] - 2, 0, -1):
        for j in range(1, T.shape[1] - 1):
            a = min(T[i - 1, j], T[i + 1, j])
            b = min(T[i, j - 1], T[i, j + 1])
            gap = a - b
            c = cost[i, j]
            arrival = min(a, b) + c if abs(gap) >= c else 0.5 * (a + b + np.sqrt(2.0 * c * c - gap * gap))
            change = max(change, T[i, j] - arrival)
            T[i, j] = min(T[i, j], arrival)
    return change


@lw.nest
def up_left(T, cost):
    change = 0.0
    for i in range(T.shape[0] - 2, 0, -1):
        for j in range(T.shape[1] - 2, 0, -1):
            a = min(T[i - 1, j], T[i + 1, j])
            b = min(T[i, j - 1], T[i, j + 1])
            gap = a - b
            c = cost[i, j]
            arrival = min(a, b) + c if abs(gap) >= c else 0.5 * (a + b + np.sqrt(2.0 * c * c - gap * gap))
            change = max(change, T[i, j] - arrival)
            T[i, j] = min(T[i, j], arrival)
    return change


@lw.nest
def down_left(T, cost):
    change = 0.0
    for i in range(1, T.shape[0] - 1):
        for j in range(T.shape[1] - 2, 0, -1):
            a = min(T[i - 1, j], T[i + 1, j])
            b = min(T[i, j - 1], T[i, j + 1])
            gap = a - b
            c = cost[i, j]
            arrival = min(a, b) + c if abs(gap) >= c else 0.5 * (a + b + np.sqrt(2.0 * c * c - gap * gap))
            change = max(change, T[i, j] - arrival)
            T[i, j] = min(T[i, j], arrival)
    return change


@down_right.problem
def problem(spacing: float = 75.0) -> dict[str, Any]:
    """Arrival times at points so many metres apart, known at the start only, and the seconds to cross each point.

    Both arrays have a margin of one point that is never reached.
    """
    height = terrain(spacing)
    steepness = np.hypot(*np.gradient(height, spacing))
    speed = 6.0 / 3.6 * np.exp(-3.5 * (steepness + 0.05))  # metres per second
    T = np.full((height.shape[0] + 2, height.shape[1] + 2), FAR)
    T[T.shape[0] // 2, T.shape[1] // 2] = 0.0
    return {"T": T, "cost": np.pad(spacing / speed, 1, mode="edge")}


def terrain(spacing: float) -> np.ndarray:
    """Heights in metres at points so many metres apart, north up: the elevation model interpolated to a square grid."""
    try:
        from matplotlib.cbook import get_sample_data
    except ImportError:
        raise SystemExit('The elevation model comes with matplotlib: pip install "lapwing[examples]"') from None
    with get_sample_data("jacksboro_fault_dem.npz") as model:
        height = model["elevation"].astype(float)
        degree = 111_200.0  # metres along a meridian
        dy = degree * model["dy"]
        dx = degree * model["dx"] * np.cos(np.radians(0.5 * (model["ymin"] + model["ymax"])))
    rows, columns = np.arange(height.shape[0]) * dy, np.arange(height.shape[1]) * dx
    y, x = np.arange(0.0, rows[-1], spacing), np.arange(0.0, columns[-1], spacing)
    height = np.stack([np.interp(x, columns, row) for row in height])
    return np.stack([np.interp(y, rows, column) for column in height.T], axis=1)


def solve(T: Any, cost: Any) -> int:
    """Sweep until nothing changes; returns the number of rounds. Collective under MPI."""
    rounds, change = 0, FAR
    while change > 0.0:
        change = max(sweep(T, cost) for sweep in (down_right, up_left, up_right, down_left))
        rounds += 1
    return rounds


def draw(path: Path, times: np.ndarray, spacing: float) -> None:
    """Contours of equal arrival time over the hill-shaded terrain."""
    from matplotlib.colors import LightSource
    from matplotlib.figure import Figure

    height = terrain(spacing)
    hours = times / 3600.0
    size = (0.0, 1e-3 * spacing * height.shape[1], 1e-3 * spacing * height.shape[0], 0.0)
    figure = Figure(figsize=(8, 8), layout="constrained")
    axes = figure.add_subplot()
    shade = LightSource(azdeg=315, altdeg=45).hillshade(height, vert_exag=3, dx=spacing, dy=spacing)
    axes.imshow(shade, extent=size, cmap="gray", vmin=-0.2, vmax=1.1)
    image = axes.imshow(hours, extent=size, cmap="viridis_r", alpha=0.45)
    every = np.arange(0.5, hours.max(), 0.5)
    lines = axes.contour(hours, every, extent=size, origin="upper", colors="black", linewidths=0.5)
    axes.clabel(lines, lines.levels[1::2], fmt="%g h", fontsize=8)
    start_y, start_x = 1e-3 * spacing * (np.argwhere(times == 0.0)[0] + 0.5)
    axes.plot(start_x, start_y, "*", color="red", markersize=14, markeredgecolor="white")
    axes.set(title="Hours on foot from the star", xlabel="km to the east", ylabel="km to the south")
    figure.colorbar(image, label="hours", shrink=0.8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description="Hours on foot from one place to all others.")
    parser.add_argument("--spacing", type=float, default=75.0, help="metres between points (default 75)")
    parser.add_argument("--picture", type=Path, help="draw the arrival times into this file")
    options = parser.parse_args()

    arguments = problem(options.spacing)
    T, cost = lw.DistributedArray(arguments["T"]), lw.DistributedArray(arguments["cost"])
    rounds = solve(T, cost)
    times = T.numpy()  # on rank 0; None on the others
    if times is None:
        return
    times = times[1:-1, 1:-1]
    print(f"{times.shape[0]} x {times.shape[1]} points, {rounds} rounds of four sweeps until no time changed")
    farthest, median = times.max() / 3600.0, np.median(times) / 3600.0
    print(f"the farthest point is reached after {farthest:.2f} hours, half of the points within {median:.2f}")
    if options.picture:
        draw(options.picture, times, options.spacing)
        print(f"picture: {options.picture}")


if __name__ == "__main__":
    main()
