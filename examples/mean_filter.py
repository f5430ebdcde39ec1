"""A mean filter in place over real terrain, of any size: in memory, or out of core.

A point becomes the mean of itself and its four neighbours. Two of them, to the north and to the west, have been
filtered already, so that each point depends on the one before it, and the filter runs over the image as a
wavefront. It is the application of the paper on such loops over matrices on disk; `lapwing run --memory`
runs it in that way, with three slabs of rows in memory in turn.

Source: E. Caron, F. Desprez, F. Suter, "Overlapping Computations and Communications with I/O in Wavefront
Algorithms", INRIA research report 5410 (2004), section 4: a convolution with the neighbours to the north,
south, east and west, five operations a point. The terrain is the elevation model of the Jacksboro fault in
Tennessee that matplotlib ships, mirrored at its edges until the image is full.

    lapwing run examples/mean_filter.py -n 2 --check
    lapwing run examples/mean_filter.py -n 2 --memory 64MB -p n=8192
    python examples/mean_filter.py --picture out/mean_filter.png
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.2 * (u[i, j] + u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@smooth.problem
def problem(n: int = 1024, sweeps: int = 3) -> dict[str, Any]:
    """An image of n x n heights in metres. Every rank makes its own part, in memory or on disk; no rank has it whole."""
    return {"u": lw.from_function(height, (n, n)), "sweeps": sweeps}


def height(i: Any, j: Any) -> np.ndarray:
    """Heights at rows i and columns j; beyond the edges of the elevation model they are those of its mirror image."""
    heights = model()
    rows, columns = (
        np.where(k % (2 * n) < n, k % n, n - 1 - k % n) for k, n in zip((i, j), heights.shape, strict=True)
    )
    return heights[rows, columns]


@cache
def model() -> np.ndarray:
    """The elevation model in metres, north up."""
    try:
        from matplotlib.cbook import get_sample_data
    except ImportError:
        raise SystemExit('The elevation model comes with matplotlib: pip install "lapwing[examples]"') from None
    with get_sample_data("jacksboro_fault_dem.npz") as data:
        return np.asarray(data["elevation"], float)


def roughness(u: np.ndarray) -> float:
    """The root mean square of the differences between neighbours, in metres."""
    steps = [np.diff(u, axis=axis) for axis in (0, 1)]
    return float(np.sqrt(np.mean([np.mean(step**2) for step in steps])))


def draw(path: Path, before: np.ndarray, after: np.ndarray, sweeps: int) -> None:
    """The hill-shaded terrain before and after, side by side."""
    from matplotlib.colors import LightSource
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.8), layout="constrained")
    sun = LightSource(azdeg=315, altdeg=45)
    titles = "The Jacksboro fault", f"after {sweeps} sweeps of the mean filter"
    for axes, title, heights in zip(figure.subplots(1, 2), titles, (before, after), strict=True):
        shade = sun.hillshade(heights, vert_exag=3, dx=90, dy=90)  # three seconds of arc apart
        axes.imshow(shade, cmap="gray", vmin=0, vmax=1)
        axes.set(title=title, xticks=(), yticks=())
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description="A mean filter in place over real terrain.")
    parser.add_argument("--n", type=int, default=340, help="rows and columns of the image (default 340)")
    parser.add_argument("--sweeps", type=int, default=5, help="how often it is filtered (default 5)")
    parser.add_argument("--picture", type=Path, help="draw the terrain before and after into this file")
    options = parser.parse_args()

    arguments = problem(options.n, options.sweeps)
    smooth(**arguments)
    after = arguments["u"].numpy()  # on rank 0; None on the others
    if after is None:
        return
    before = height(*np.ogrid[: options.n, : options.n])
    print(f"{options.n} x {options.n} heights, {options.sweeps} sweeps")
    print(f"neighbours differ by {roughness(before):.2f} m before and by {roughness(after):.2f} m after")
    if options.picture:
        draw(options.picture, before, after, options.sweeps)
        print(f"picture: {options.picture}")


if __name__ == "__main__":
    main()
