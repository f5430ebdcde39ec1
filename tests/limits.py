"""How long a test waits before it calls a run hung: generous where the machine is quick, longer where it is slow or busy.

``python tests/limits.py SECONDS`` prints a limit for this machine as it is now.
"""

from __future__ import annotations

import functools
import os
import statistics
import sys
import time

LOOP = 200_000  # turns of the loop that is timed
TOLD = "LAPWING_SLOWNESS_FOR_TESTS"
QUICK = 0.012  # seconds it takes on an idle core of the machine for which limits are written


@functools.cache
def slowness() -> float:
    """How much longer than there a core takes here and now, or how many processes want each core; at least 1.

    Processes that this one starts are told, and measure nothing.
    """
    if TOLD not in os.environ:
        crowded = os.getloadavg()[0] / (os.cpu_count() or 1)  # which a loop shorter than a turn on a core does not feel
        os.environ[TOLD] = str(max(1.0, crowded, statistics.median(loop_seconds() for _ in range(3)) / QUICK))
    return float(os.environ[TOLD])


def loop_seconds() -> float:
    begin, total = time.perf_counter(), 0
    for turn in range(LOOP):
        total += turn & 7
    return time.perf_counter() - begin


def scaled(seconds: float) -> float:
    """A limit for this machine."""
    return seconds * slowness()


if __name__ == "__main__":
    print(round(scaled(float(sys.argv[1]))))
