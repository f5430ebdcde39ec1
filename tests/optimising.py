"""How much tests have generated code optimised, which mostly runs for a moment: in a quarter of the time it is compiled, too.

With -O1 it would be half; with -O0 a fifth less than with -Og, and far from the code that users run.
"""

from __future__ import annotations

import os

from lapwing.runtime.binding import native


def little_optimised() -> tuple[str, ...]:
    return tuple("-Og" if flag == "-O3" else flag for flag in native.TILE_FLAGS)


def optimise_little() -> None:
    """For programs that tests start, unless they go through all rounds (randomness.THOROUGHLY): long tests have code compiled as
    for users."""
    if "LAPWING_ALL_ROUNDS" not in os.environ:
        native.TILE_FLAGS = little_optimised()
