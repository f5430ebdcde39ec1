"""Refused: choices by hand, and dependences that no tiling respects."""

from __future__ import annotations

from typing import Any

from refusal_cases import GOOD, body, refuse

# -- plans -------------------------------------------------------------------------------------------------------------


def plan(name: str, found: str, way_out: str, ranks: Any = 1, **using: Any) -> None:
    refuse(f"plan: {name}", GOOD, found, way_out, nowhere=True, ranks=ranks, using=using)


plan("engine", "engine 'turbo'", "blocking, overlap", engine="turbo")
plan("engine without a name", "engine ''", "blocking, overlap", engine="")
for tile in (0, -1, 1.5, "8", True):
    plan(f"tile {tile!r}", f"tile {tile!r}", "a whole number of at least 1", tile=tile)
for ranks in (0, -1, 2.0, "2", None):
    plan(f"ranks {ranks!r}", f"{ranks!r} ranks", "a whole number of at least 1", ranks)
for grid in (2, "2x1", (1.0,), (0,), (-1, -1), (None, 1)):
    plan(f"grid {grid!r}", f"grid {grid!r}", "whole numbers of at least 1", grid=grid)
plan("grid too long", "grid 1x2x3 has 3 entries", "or 2 (i, j)", 6, grid=(1, 2, 3))
plan("grid for other ranks", "grid 3 is for 3 ranks, but there are 2", "multiply to 2", 2, grid=(3,))
plan("grid with empty blocks", "grid 4x1 cuts loop i in 4, but it has 3 rows", "at least one", 4, grid=(4, 1))
plan(
    "grid for too many ranks",
    "grid 2 is for 2 ranks, but there are 7",
    "multiply to 7, or to 6, which is",
    7,
    grid=(2,),
)

# -- dependences -------------------------------------------------------------------------------------------------------

body(
    "flow backwards",
    "u[i, j] = u[i-1, j+1]  # <-\nu[i, j-1] = 0.5",
    "flow dependence [1, -2] from u[i, j-1] to u[i-1, j+1]",
    "Reverse loop j",
)
body(
    "anti backwards",
    "u[i, j] = u[i+1, j-1]  # <-\nu[i, j-1] = 0.5",
    "anti dependence [1, -1] from u[i+1, j-1] to u[i, j]",
    "Reverse loop j",
)
body("output backwards", "u[i, j] = 1.0  # <-\nu[i+1, j-1] = 2.0", "output dependence [1, -1]", "write u at one offset")
refuse(
    "flow backwards, descending",
    """
    @lw.nest
    def f(u):
        for i in range(1, 5):
            for j in range(4, 0, -1):
                u[i, j] = u[i-1, j-1]  # <-
                u[i, j-1] = 0.5
    """,
    "flow dependence [1, -1]",
    "Reverse loop j",
)
refuse(
    "two write offsets in a triangle",
    """
    @lw.nest
    def f(u):
        for i in range(1, 4):
            for j in range(i, 5):
                u[i, j] = 1.0
                u[i + 1, j + 1] = 2.0  # <-
    """,
    "u is written at several offsets",
    "Write the array at one offset",
)
