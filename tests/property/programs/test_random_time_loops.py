"""Random time loops in one process: the bits of plain Python with sums that are exact and rounded once."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import assume
from hypothesis import strategies as st
from loading import load
from random_time_loops import NAMES, TimeLoopCase, time_loops
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError
from lapwing.loopnest.program import short_loops
from lapwing.runtime.rounding import nearest
from lapwing.tiling.boxes import Box
from lapwing.tiling.phased import fusion

HEAD = "import numpy as np\n\n\n"


@pytest.fixture(autouse=True)
def _needs_compilers(little_optimised: None) -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def _compiled_as_a_whole(monkeypatch: pytest.MonkeyPatch, short_loops_are_compiled: None) -> None:
    """Wherever that can be done, and no loop is left to Python."""
    monkeypatch.setattr(short_loops, "BUDGET", 1)
    monkeypatch.setattr(short_loops, "FASTER", 10**9)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Nests are fused where that can be done; how many sweeps each time."""
    monkeypatch.setattr(fusion, "cached_bytes", lambda: -1)
    monkeypatch.setattr(fusion, "BLOCK_BYTES", 16)
    steps, original = list[int](), fusion.Fusion.steps

    def counted(self: fusion.Fusion, phase: int) -> list[Box]:
        steps.append(self.sweeps)
        return original(self, phase)

    monkeypatch.setattr(fusion.Fusion, "steps", counted)
    return steps


def exact_sum(start: Any, terms: Sequence[Any]) -> Any:
    """What a nest gives for a sum: all terms added exactly to what it starts as, rounded once to the type of the sum."""
    if not terms:
        return start
    kind = type(start + terms[0])
    values = [float(start), *map(float, terms)]
    if all(map(math.isfinite, values)):
        return kind(nearest(sum(map(Fraction, values)), np.dtype(kind).name))
    with np.errstate(all="ignore"):
        return kind(sum(v for v in values if not math.isfinite(v)))


def check_loop(data: st.DataObject) -> None:
    check_case(data.draw(time_loops(), label="time loop"))


def check_plain_loop(data: st.DataObject) -> None:
    check_case(data.draw(time_loops(is_plain=True), label="time loop"))


def check_case(case: TimeLoopCase) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "time_loop.py"
        path.write_text(HEAD + case.source)
        nest = lw.Nest(load(path).loop)
        refusals = nest.refusals
        assume(not refusals)
    around: dict[str, Any] = {"np": np, "exact_sum": exact_sum}
    exec(case.exact, around)
    expected, found = case.arguments(), case.arguments()
    raised: Exception | None = None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            right = around["loop"](**expected)
        except (ArithmeticError, ValueError, IndexError) as error:
            raised = error
        try:
            given = nest(**found)
        except lw.RefusedError:
            assume(False)
        except Exception as error:
            if raised is None:
                raise AssertionError("the plain loop does not raise") from error
            return
    assert raised is None, f"the plain loop raises {raised!r}"
    check_arrays({n: found[n] for n in NAMES}, {n: expected[n] for n in NAMES})
    for here, there in zip(given[:3], right[:3], strict=True):
        assert type(here) is type(there), f"{given[:3]!r} for {right[:3]!r}"
        assert here == there or (here != here and there != there), f"{given[:3]} for {right[:3]}"
    for here, there in zip(given[3:], right[3:], strict=True):
        assert [n for n in NAMES if found[n] is here] == [n for n in NAMES if expected[n] is there]


def test_time_loops_are_the_plain_ones() -> None:
    search(check_loop, wanted(6), first_seed())


def test_fused_time_loops_are_the_plain_ones(fused: list[int]) -> None:
    search(check_plain_loop, wanted(6), first_seed() + 2)
    assert fused, "no loop was fused"


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_time_loops_are_the_plain_ones_at_length() -> None:
    search(check_loop, wanted(2000), first_seed() + 1)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_fused_time_loops_are_the_plain_ones_at_length(fused: list[int]) -> None:
    search(check_plain_loop, wanted(2000), first_seed() + 3)
