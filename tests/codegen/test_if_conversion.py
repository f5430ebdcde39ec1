"""Conditional stores as stores of values: which are, and that results are those of the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms


@lw.nest
def life(cells, counts):
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            if cells[i, j] == 1 and (counts[i, j] < 2 or counts[i, j] > 3):
                cells[i, j] = 0
            elif cells[i, j] == 0 and counts[i, j] == 3:
                cells[i, j] = 1


@lw.nest
def guarded(u, v):
    """What stands under the condition is outside of the array elsewhere."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if j > 0:
                u[i, j] = v[i, j - 1]


@lw.nest
def two_targets(u, v):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if v[i, j] > 0.5:
                u[i, j] = 0.0
                v[i, j] = 1.0


@lw.nest
def quotients(u, v):
    """Of one dividend and divisor in each arm, or of another."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if v[i, j] > 0.5:
                r = u[i, j] / v[i, j]
            else:
                r = v[i, j] / u[i, j]
            u[i, j] = r


@lw.nest
def crossed(u, v):
    """Each value is made of what the other array holds before; which of both is stored to first differs between the arms."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if v[i, j] > 0.5:
                v[i, j] = u[i, j] * 2.0
                u[i, j] = 3.0
            else:
                u[i, j] = v[i, j] - u[i, j]


@lw.nest
def again(u, v):
    """What an arm has changed is looked at after, under another condition and outside of it."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            p = u[i, j]
            if v[i, j] > 0.25:
                u[i, j] = v[i, j] + 1.0
                p = u[i, j] * 2.0
                if p > 3.0:
                    u[i, j] = u[i, j] - p
                    v[i, j] = u[i, j]
                else:
                    p = v[i, j]
            v[i, j] = v[i, j] + p


@lw.nest
def counted(u, v):
    count = 0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if v[i, j] > 0.5:
                count += 1
                if u[i, j] > 0.5:
                    count += 2
            else:
                u[i, j] = 0.0
                count -= 1
    return count


@lw.nest
def ended(u, v):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if v[i, j] > 0.75:
                continue
            if v[i, j] > 0.25:
                u[i, j] = v[i, j]
                continue
            v[i, j] = 0.5 * u[i, j]


@lw.nest
def named_alike(u, v):
    """Names that are also those of what the generator makes."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            test = u[i, j] - v[i, j]
            chosen = 2.0 * test
            if test > 0.25:
                u[i, j] = chosen
                v[i, j] = u[i, j] + test
            else:
                chosen = v[i, j]
            u[i, j] = u[i, j] + chosen


@lw.nest
def raising(u, v):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if v[i, j] > 0.5:
                u[i, j] = 1 // (i + j - 3)


@lw.nest
def chained(u, v):
    for i in range(u.shape[0]):
        for j in range(1, u.shape[1]):
            if v[i, j] > 0.5:
                u[i, j] = u[i, j - 1]


def floats() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    u, v = rng.random((9, 33)), rng.random((9, 33))
    u[2, 3], u[4, 5], v[0, :4] = np.nan, -0.0, 0.0
    return u, v


def whole_numbers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.integers(0, 2, (9, 33)), rng.integers(0, 9, (9, 33))


def plain_text(nest: lw.Nest, *arrays: Any) -> str:
    bound = nest.bind(dict(zip(nest.loops.parameters, arrays, strict=True)))
    return tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])


@pytest.mark.parametrize(
    ("nest", "made", "branches"),
    [
        (life, whole_numbers, False),
        (guarded, floats, True),
        (two_targets, floats, False),
        (quotients, floats, False),
        (crossed, floats, False),
        (again, floats, False),
        (counted, floats, False),
        (ended, floats, False),
        (named_alike, floats, False),
        (chained, floats, True),
    ],
)
def test_only_stores_that_may_always_be_done_lose_their_branch(nest: lw.Nest, made: Any, branches: bool) -> None:
    assert (" if (" in plain_text(nest, *made())) is branches
    mine, right = made(), made()
    assert nest(*mine) == nest.python(*right)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mine, right, strict=True))


def test_what_may_raise_stays_under_its_condition() -> None:
    u, v = np.zeros((2, 2), int), np.zeros((2, 2))
    v[0, 0] = 1.0
    raising(u, v)
    assert u[0, 0] == -1
    v[:] = 1.0
    u, v = np.zeros((3, 3), int), np.ones((3, 3))
    with pytest.raises(lw.RunError, match="ZeroDivisionError"):
        raising(u, v)
    assert not u.any()


@lw.nest
def looked_up(u, a, index):
    for i in range(a.shape[0]):
        if a[i] > 0.5:
            u[i, index[i]] = a[i]


def test_elements_that_are_looked_up_are_looked_up_under_their_condition() -> None:
    a = np.random.default_rng(1).random(64)
    index = np.where(a > 0.5, np.arange(64) % 3, 7)
    found, right = np.zeros((64, 3)), np.zeros((64, 3))
    looked_up(found, a, index)
    looked_up.python(right, a, index)
    assert np.array_equal(found, right)
