"""Nests whose sweeps are short are done in their own order in one process, with the bits of the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.planner.plan import Plan


@lw.nest
def recorded(x, z, out):
    for t in range(z.shape[0]):
        for k in range(z.shape[1]):
            x[k] = 0.9 * x[k] + z[t, k]
            out[t, k] = x[k]


@lw.nest
def votes(mask, out, a):
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            if mask[i, j]:
                for t in range(len(out)):
                    out[t] += a[t] * i


@lw.nest
def relaxed(u, sweeps):
    for t in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1])


def planned(nest: lw.Nest, *given: Any) -> tuple[lw.Nest | None, Plan]:
    bound = nest.bind(nest.arguments(*given))
    plan = nest.planned(bound, 1, 1, 1, nest.arguments(*given)).plan
    return nest.in_its_order(bound, plan), plan


def test_short_sweeps_of_free_iterations() -> None:
    region, _ = planned(recorded, np.ones(20), np.ones((30, 20)), np.ones((30, 20)))
    assert region is not None
    assert region.loops.is_sequential


@pytest.mark.parametrize(
    ("nest", "given"),
    [
        (recorded, (np.ones(5000), np.ones((9, 5000)), np.ones((9, 5000)))),  # long
        (recorded, (np.ones(20), np.ones((3, 20)), np.ones((3, 20)))),  # few
        (relaxed, (np.ones(50), 100)),  # that are done at once, in vectors
    ],
)
def test_others_are_cut_into_tiles(nest: lw.Nest, given: tuple[Any, ...]) -> None:
    assert planned(nest, *given)[0] is None


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_bits_of_the_plain_loop(share: float) -> None:
    rng = np.random.default_rng(4)
    cases = [
        (recorded, (rng.random(20), rng.random((30, 20)), np.zeros((30, 20)))),
        (votes, (rng.random((12, 9)) < share, np.zeros(17), rng.random(17))),
    ]
    for nest, given in cases:
        found, expected = ([values.copy() for values in given] for _ in range(2))
        for _ in range(2):
            nest(*found)
            nest.python(*expected)
        for one, other in zip(found, expected, strict=True):
            assert one.tobytes() == other.tobytes()


def test_a_float_may_be_another_one_in_every_call() -> None:
    @lw.nest
    def damped(x, out, rate):
        for t in range(out.shape[0]):
            for k in range(out.shape[1]):
                x[k] = rate * x[k]
                out[t, k] = x[k]

    for rate in (0.5, 0.25, 2.0):
        found, expected = ([np.ones(20), np.zeros((30, 20))] for _ in range(2))
        damped(*found, rate)
        damped.python(*expected, rate)
        assert found[1].tobytes() == expected[1].tobytes()
