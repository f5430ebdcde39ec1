"""Advection in three dimensions: a puff of smoke, carried across a box by a steady wind.

    v_t + cx v_x + cy v_y + cz v_z = 0

As in advection2d.py each point needs its own old value and the new ones of its neighbours upwind, here three:
the dependence matrix over (t, i, j, k) is the identity. With time as the mapping dimension the process grid
has three dimensions, so that the faces are as small as can be, and no loop has to be left whole.

Source: G. Goumas, N. Anastopoulos, N. Koziris, N. Ioannou, "Overlapping Computation and Communication in SMT
Clusters with Commodity Interconnects", equation 2 in three dimensions. Its spaces, of 256 sweeps, hold among
others 128 x 128 x 128 and 192 x 192 x 192 points. The weights make it the implicit upwind scheme for Courant
numbers Cx, Cy and Cz (advection2d.py), which keeps the total of v and moves its centre of mass by exactly Cx,
Cy and Cz points a sweep.

    lapwing run examples/advection3d.py -n 2 --check
    lapwing run examples/advection3d.py -n 8 --grid all --engine blocking,overlap,helper
    mpiexec -n 2 python examples/advection3d.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def advect(v, cx, cy, cz, sweeps):
    wx = cx / (1.0 + cx + cy + cz)
    wy = cy / (1.0 + cx + cy + cz)
    wz = cz / (1.0 + cx + cy + cz)
    keep = 1.0 - wx - wy - wz
    for t in range(sweeps):
        for i in range(1, v.shape[0]):
            for j in range(1, v.shape[1]):
                for k in range(1, v.shape[2]):
                    v[i, j, k] = keep * v[i, j, k] + wx * v[i - 1, j, k] + wy * v[i, j - 1, k] + wz * v[i, j, k - 1]


@advect.problem
def problem(n: int = 128, sweeps: int = 64, cx: float = 0.5, cy: float = 0.5, cz: float = 0.25) -> dict[str, Any]:
    """n points along each side, a puff of Gaussian profile near one corner, Courant numbers cx, cy, cz."""
    side = np.linspace(0.0, 1.0, n)
    profile = np.exp(-((side - 0.3) ** 2) / (2 * 0.06**2))
    v = profile[:, None, None] * profile[:, None] * profile
    v[0], v[:, 0], v[:, :, 0] = 0.0, 0.0, 0.0  # clean air blows in
    return {"v": v, "cx": cx, "cy": cy, "cz": cz, "sweeps": sweeps}


def centre(v: np.ndarray) -> np.ndarray:
    """The centre of mass, in points."""
    sides = [v.sum(axis=(1, 2)), v.sum(axis=(0, 2)), v.sum(axis=(0, 1))]
    return np.array([np.arange(len(side)) @ side / side.sum() for side in sides])


def main() -> None:
    arguments = problem()
    start, courant = arguments["v"], [arguments[name] for name in ("cx", "cy", "cz")]
    v = lw.DistributedArray(start.copy())
    for done in range(16, arguments["sweeps"] + 1, 16):
        advect(v, *courant, 16)
        values = v.numpy()  # on rank 0; None on the others
        if values is not None:
            off = np.abs(centre(values) - centre(start) - done * np.array(courant)).max()
            print(
                f"{done:3} sweeps: total {values.sum():.3f} of {start.sum():.3f}, centre "
                f"({', '.join(f'{x:.2f}' for x in centre(values))}), off by {off:.3f}; densest {values.max():.3f}"
            )


if __name__ == "__main__":
    main()
