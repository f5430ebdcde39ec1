"""CPU time that ranks lost: measured, and said where it is too much for figures to be trusted."""

from __future__ import annotations

import time

import numpy as np
import pytest

from lapwing.calibrate.tiles import noise_of
from lapwing.trace.interference import NOISY, Moment, warning


def test_a_thread_that_sleeps_is_without_a_core() -> None:
    begin = Moment.now()
    time.sleep(0.02)
    seconds, lost = begin.lost_since()
    assert 0.01 < lost <= seconds


def test_little_is_not_worth_a_word() -> None:
    assert warning({}, 2, 2) is None
    assert warning({"overlap": 0.0, "blocking": NOISY}, 2, 2) is None


@pytest.mark.parametrize(
    ("ranks", "cores", "said"),
    [(2, 2, "stop other programs"), (4, 2, "4 ranks take turns on 2 cores"), (2, 1, "2 ranks take turns on 1 core:")],
)
def test_every_run_is_named_with_what_it_lost(ranks: int, cores: int, said: str) -> None:
    text = warning({"overlap": 0.31, "blocking": 0.01}, ranks, cores)
    assert text is not None
    assert text.startswith("CPU time lost, of the ranks' time: overlap 31%, blocking 1%. ")
    assert said in text


def test_a_calibration_says_it_alike() -> None:
    even = np.full(100, 1e-3)
    assert noise_of(even).warning is None
    lost = noise_of(even, cpu_lost=0.2)
    assert lost.value == 0.2
    assert lost.warning is not None
    assert "20% of the CPU time was lost to something else" in lost.warning
    assert "computations of 1 ms" in lost.warning
