"""CPU time that ranks lost to something else: other programs, or each other where there are more ranks than cores.

A rank that computes, and one that waits by looking again and again, uses all the time of its core: what its thread did not
get went to something else. The runtime measures that in every run (cpu_lost in lw_times), a calibration while it computes; both
say so where it is too much for figures to be trusted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from lapwing.units import share

NOISY = 0.05  # the share of the time from which on figures are not to be trusted


@dataclass(frozen=True)
class Moment:
    """When something began on this thread: by the clock, and in seconds of CPU time."""

    clock: float
    cpu: float

    @staticmethod
    def now() -> Moment:
        return Moment(time.perf_counter(), time.thread_time())

    def lost_since(self) -> tuple[float, float]:
        """Seconds since then, and how many of them this thread was without a core."""
        now = Moment.now()
        seconds = now.clock - self.clock
        return seconds, min(seconds, max(0.0, seconds - (now.cpu - self.cpu)))


def warning(shares: Mapping[str, float], ranks: int, cores: int) -> str | None:
    """What to say of runs whose ranks lost CPU time; None where none lost much.

    shares: by run, the part of the ranks' time that was lost. ranks: so many take turns on so many cores.
    """
    worst = max(shares.values(), default=0.0)
    if worst <= NOISY:
        return None
    each = ", ".join(f"{name} {share(value)}" for name, value in shares.items())
    text = f"CPU time lost, of the ranks' time: {each}. "
    if ranks > cores:
        return (
            text
            + f"{ranks} ranks take turns on {cores} core{'' if cores == 1 else 's'}: times say little of what each takes."
        )
    return (
        text
        + "Something else ran on their cores (other programs, or helper threads), and times may be off by as much; "
        "stop other programs and run again."
    )
