"""How long a test waits before it calls a run hung: generous where the machine is quick, longer where it is slow or busy.

``python tests/limits.py SECONDS`` prints a limit for this machine as it is now.
"""

from __future__ import annotations

import functools
import statistics
import sys
import time

LOOP = 200_000  # turns of the loop that is timed
QUICK = 0.012  # seconds it takes on an idle core of the machine for which limits are written


@functools.cache
def slowness() -> float:
    """How much longer than there a core takes here and now; at least 1."""

    def loop() -> float:
        begin, total = time.perf_counter(), 0
        for turn in range(LOOP):
            total += turn & 7
        return time.perf_counter() - begin

    return max(1.0, statistics.median(loop() for _ in range(3)) / QUICK)


def scaled(seconds: float) -> float:
    """A limit for this machine."""
    return seconds * slowness()


if __name__ == "__main__":
    print(round(scaled(float(sys.argv[1]))))
