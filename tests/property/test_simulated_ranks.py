"""What ranks tell each other is enough, in time, and inside their memory: plans run message by message in Python."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import assume
from hypothesis import strategies as st
from loading import load
from random_nests import Case, cases, check_refused_grid, choices
from searching import first_seed, search, wanted
from simulated_ranks import Body, Simulation

from lapwing.errors import RefusedError
from lapwing.planner.choose import Wishes, make_plan


def body_of(case: Case) -> Body:
    """The statements of the innermost loop as a function of a point and a rank's arrays."""
    lines = case.source.splitlines()
    loops = [line.split()[1] for line in lines if line.lstrip().startswith("for ")]
    depth = max(k for k, line in enumerate(lines) if line.lstrip().startswith("for "))
    statements = [f"    {line.strip()}" for line in lines[depth + 1 :]]
    unpacked = [f"    {a.name} = arrays[{a.name!r}]" for a in case.arrays]
    text = [f"def body(point, arrays, {', '.join(['np', 'math', *(n for n, _ in case.scalars)])}):"]
    text += [f"    {', '.join(loops)}, = point", *unpacked, *statements]
    names: dict[str, object] = {}
    exec("\n".join(text), names)
    function = names["body"]
    scalars = [value for _, value in case.scalars]
    return lambda point, arrays: function(point, arrays, np, math, *scalars)  # type: ignore[operator]


def check(data: st.DataObject) -> None:
    case = data.draw(cases(illegal=False, expressions=False), label="nest")
    ranks = data.draw(st.sampled_from([2, 3, 4, 6, 8]), label="ranks")
    choice = data.draw(choices(case, ranks), label="cut")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(case.source)
        nest = load(path).nest
    expected, arrays = case.arguments(), case.arguments()
    bound = nest.bind(arrays)
    with np.errstate(all="ignore"):
        nest.python(**expected)
        assume(not bound.domain.is_empty)
        try:
            plan = make_plan(bound, nest.dependences, ranks, Wishes(choice.engine, choice.tile, choice.grid))
        except RefusedError as error:
            check_refused_grid(case, ranks, choice, error)
            assume(False)
        simulation = Simulation(bound, plan, arrays, body_of(case), at_once=choice.engine == "blocking")  # type: ignore[arg-type]
        simulation.check_pairs()
        order = data.draw(st.randoms(use_true_random=False), label="order")
        simulation.run(order.randrange)
    simulation.collect()
    check_arrays(arrays, expected)


def test_messages_are_enough_and_in_time() -> None:
    search(check, wanted(250), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_messages_are_enough_and_in_time_at_length() -> None:
    search(check, wanted(10000), first_seed())
