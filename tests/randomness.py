"""Which random cases the tests try, and for how long.

LAPWING_SEED says which ones (each number gives others), LAPWING_EXAMPLES how many; LAPWING_SECONDS_A_TEST ends each search
sooner: it then has tried as many as that time holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

THOROUGHLY = {"LAPWING_ALL_ROUNDS": "1"}  # what programs need that go through all rounds


def first_seed() -> int:
    return int(os.environ.get("LAPWING_SEED", "0"))


def wanted(examples: int) -> int:
    """The number of examples, unless LAPWING_EXAMPLES gives another."""
    return int(os.environ.get("LAPWING_EXAMPLES", examples))


def seconds_a_test() -> float:
    """Seconds after which a search tries nothing new."""
    return float(os.environ.get("LAPWING_SECONDS_A_TEST", "inf"))


def time_is_left() -> Callable[[], bool]:
    """Whether a search that begins now should go on."""
    end = time.monotonic() + seconds_a_test()
    return lambda: time.monotonic() < end


def seeds(number: int) -> Iterator[int]:
    """Seeds of a long search by LAPWING_SEED, no two searches' alike, as long as there is time."""
    start = 1_000_000 * (1 + first_seed())
    goes_on = time_is_left()
    for seed in range(start, start + number):
        if not goes_on():
            return
        yield seed


def rounds(few: int, many: int) -> range:
    """Rounds of a program on more ranks than cores, where each call waits for its turn on them; a few hold all classes."""
    return range(many if "LAPWING_ALL_ROUNDS" in os.environ else few)
