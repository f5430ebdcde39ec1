"""Advice that is followed leads somewhere: the repaired nest is accepted, runs, and agrees with the plain loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from everyday import one_of
from refusal_cases import REFUSALS, load
from refused import ALL
from repairs import NO_FUNCTION, REPAIRS, key_of

# A case for every repair: where several refusals have one way out, it is gone once.
CASES = {key_of(case): case for case in ALL if case.name not in NO_FUNCTION}


pytestmark = pytest.mark.usefixtures("little_optimised")


def test_every_repair_is_of_a_case() -> None:
    assert set(CASES) <= set(REPAIRS)
    assert set(REPAIRS) - set(CASES) <= {key_of(case) for case in REFUSALS if case not in ALL}


@pytest.mark.parametrize("key", one_of(6, CASES))
def test_the_repaired_nest_agrees_with_the_plain_loop(key: str, tmp_path: Path) -> None:
    case = CASES[key]
    repair = REPAIRS[key]
    nest = load(repair.source or case.source, tmp_path / "their.py").f
    found, expected = (copied((repair.arguments or case.arguments)()) for _ in range(2))
    if repair.options:
        chosen = nest.using(**repair.options["using"])
        plan = chosen.plan(*found, ranks=repair.options["ranks"])
        assert plan.ranks + plan.idle == repair.options["ranks"]
    here, right = nest(*found), nest.python(*expected)
    # A sum is rounded once, not in every step.
    assert here == (pytest.approx(right, rel=1e-14) if isinstance(right, float) else right)
    for here, right in zip(found, expected, strict=True):
        if isinstance(here, np.ndarray):
            assert here.tobytes() == right.tobytes()


def copied(arguments: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments)
