"""How hypothesis is used here: repeatable, no database, no limit on one example, and an end to shrinking."""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine

# hypothesis has no setting for it, and its own limit of five minutes is longer than a test may take.
engine.MAX_SHRINKING_SECONDS = 40


def wanted(examples: int) -> int:
    """The number of examples, unless LAPWING_EXAMPLES gives another."""
    return int(os.environ.get("LAPWING_EXAMPLES", examples))


def first_seed() -> int:
    return int(os.environ.get("LAPWING_SEED", "0"))


def search(check: Callable[[st.DataObject], None], examples: int, start: int) -> None:
    """Call ``check`` with random data; raise its error for the simplest data found that makes it fail."""

    @seed(start)
    @settings(
        max_examples=examples, database=None, deadline=None, print_blob=False, report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def property_holds(data: st.DataObject) -> None:
        check(data)

    property_holds()
