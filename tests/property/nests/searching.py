"""How hypothesis is used here: repeatable, no database, no limit on one example, and an end to shrinking."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.internal.conjecture import engine
from randomness import time_is_left

# hypothesis has no setting for it, and its own limit of five minutes is longer than a test may take.
engine.MAX_SHRINKING_SECONDS = 40


class TimeIsUp(KeyboardInterrupt):
    """Ends a search that has found nothing, as Ctrl-C would; anything else hypothesis takes for the outcome of one example."""


def search(check: Callable[[st.DataObject], None], examples: int, start: int, simplest: bool = True) -> bool:
    """Call ``check`` with random data; raise its error for the simplest data found that makes it fail.

    simplest: whether the first example is the simplest one, as hypothesis has it, rather than a random one: of one or two it
    would be half.
    Returns whether there was time for all examples.
    """
    goes_on = time_is_left()
    failed = False

    @seed(start)
    @settings(
        max_examples=examples, database=None, deadline=None, print_blob=False, report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def property_holds(data: st.DataObject) -> None:
        nonlocal failed
        if not failed and not goes_on():
            raise TimeIsUp
        assume(simplest or data.draw(st.integers(0, 2**32), label="not the simplest") > 0)
        try:
            check(data)
        except Exception as error:
            failed = failed or not isinstance(error, UnsatisfiedAssumption)
            raise

    try:
        property_holds()
    except TimeIsUp:
        return False
    return True
