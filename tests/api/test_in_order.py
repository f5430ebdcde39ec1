"""Loops that arguments keep from being cut into tiles run in their own order, as sequential regions."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw
from lapwing.api.calls.called_integers import MOST_BINDINGS

pytestmark = pytest.mark.usefixtures("little_optimised")


def _partly_generic(region):
    """The only one, of calls in this process."""
    (found,) = region._partly_generic.values()
    return found


@lw.nest
def periodic(u, c):
    for i in range(u.shape[0]):
        u[i] = u[i] - c * (u[i] - u[i - 1])


@lw.nest
def guarded(u, m):
    for i in range(u.shape[0]):
        if m[i]:
            u[i] = u[i + 1] + 1.0


@lw.nest
def outside(u):
    for i in range(u.shape[0]):
        u[i + 1] = u[i]


@lw.nest
def shifted(u, steps):
    for k in range(1, steps):
        for i in range(k, u.shape[0]):
            u[i] = u[i - k] + 0.5 * u[i]
        print(end="")


@lw.nest
def narrower(u, v):
    for i in range(1, v.shape[0]):
        for j in range(1, v.shape[1]):
            v[i, j] = 0.5 * v[i, j]
            if i < u.shape[0]:
                u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1]) + v[i, j]


@lw.nest
def triangle(u, rows):
    visited = 0
    for i in range(1, rows):
        visited += 1
        for j in range(i, u.shape[0]):
            for k in range(1, u.shape[1]):
                u[i, k] += j * u[i - 1, k]
    return visited


def test_a_store_that_inner_loops_keep_inside() -> None:
    """Those of the last rows are empty, and what the rows count otherwise keeps them in the domain."""
    plan = str(triangle.plan(np.ones((6, 7)), 40, ranks=2))
    assert "in their own order on one rank" in plan
    assert "u[i, k] is stored in inner loops that keep it inside u" in plan
    assert "in their own order" not in str(triangle.plan(np.ones((40, 7)), 40, ranks=2))
    found, right = np.ones((6, 7)), np.ones((6, 7))
    assert triangle(found, 40) == triangle.python(right, 40)
    assert np.array_equal(found, right)


def test_a_store_that_a_condition_keeps_inside() -> None:
    """Ranks hold and send boxes of what their iterations store: these would reach beyond the array."""
    v = np.random.default_rng(1).random((40, 30))
    plan = str(narrower.plan(np.ones((10, 30)), v, ranks=2))
    assert "in their own order on one rank" in plan
    assert "u[i, j] is stored under a condition that keeps it inside u" in plan
    assert "in their own order" not in str(narrower.plan(np.ones((40, 30)), v, ranks=2))
    found, right = (np.ones((10, 30)), v.copy()), (np.ones((10, 30)), v.copy())
    narrower(*found)
    narrower.python(*right)
    assert all(map(np.array_equal, found, right))


def test_an_index_from_the_end() -> None:
    u, v = np.arange(6.0), np.arange(6.0)
    periodic(u, 0.5)
    periodic.python(v, 0.5)
    assert np.array_equal(u, v)
    assert "dependences  [1] [5]" in str(periodic.plan(u, 0.5, ranks=4))  # of the last element, too


@lw.nest
def around(u, steps, m):
    for t in range(steps):
        for i in range(u.shape[0]):
            u[i] = 0.5 * (u[(i + 1) % m] + u[(i - 1) % m])


@pytest.mark.parametrize("m", [1, 3, 5, -1])
def test_indices_that_go_around_elsewhere(m: int) -> None:
    u, v = np.arange(5.0), np.arange(5.0)
    around(u, 3, m)
    around.python(v, 3, m)
    assert np.array_equal(u, v)


def test_an_index_that_data_guards() -> None:
    mask = np.array([1, 0, 1, 0], bool)
    u, v = np.arange(4.0), np.arange(4.0)
    guarded(u, mask)
    guarded.python(v, mask)
    assert np.array_equal(u, v)
    mask[-1] = True
    with pytest.raises(lw.RunError, match="outside axis 0 of u"):
        guarded(u, mask)
    assert np.array_equal(u, v)


def test_an_index_that_is_always_outside_is_refused() -> None:
    with pytest.raises(lw.RefusedError, match="reaches 4"):
        outside(np.zeros(4))


@lw.nest
def stepped(u, steps):
    """The inner loop is given elements of an array of integers."""
    for k in range(steps.shape[0]):
        m = steps[k]
        print(end="")
        left = 0.0
        for i in range(m, u.shape[0]):
            left = 0.5 * (left + u[i - m])
            u[i] = left


def test_what_is_called_with_ever_other_integers_is_made_for_any() -> None:
    u, v = np.ones(400), np.ones(400)
    shifted(u, 30)
    shifted.python(v, 30)
    assert np.array_equal(u, v)
    (region,) = shifted.program.nests
    assert len(region._bound) == MOST_BINDINGS + 1
    assert len(_partly_generic(region)._bound) == 1


def test_numpy_integers_are_integers_of_calls() -> None:
    u, v = np.ones(400), np.ones(400)
    nest = lw.nest(stepped.python)
    steps = np.arange(1, 31, dtype=np.int32)
    nest(u, steps)
    nest.python(v, steps)
    assert np.array_equal(u, v)
    (region,) = nest.program.nests
    assert len(region._bound) == MOST_BINDINGS + 1
    assert len(_partly_generic(region)._bound) == 1


@lw.nest
def weighted(u, below, weights):
    """The counter of the loop around is only looked up by."""
    for m in range(len(weights)):
        print(end="")
        for j in range(u.shape[0]):
            left = 0.0
            for i in range(u.shape[1]):
                left = (left + below[i]) * 0.5 + weights[m] * u[j, i]
                below[i] = left


def test_counters_that_elements_are_looked_up_by() -> None:
    u, weights = np.random.default_rng(1).random((20, 30)), np.array([0.5, 1.5, -1.0])
    found, expected = np.zeros(30), np.zeros(30)
    weighted(u, found, weights)
    weighted.python(u, expected, weights)
    assert np.array_equal(found, expected)
    (region,) = weighted.program.nests
    assert not region._bound
    assert len(_partly_generic(region)._bound) == 1


@lw.nest
def by_parity(u, starts, first):
    """As red-black relaxation: the inner loop begins where a variable says, which is changed by the loop around it."""
    for k in range(len(starts)):
        start = starts[k] if first is None else first
        print(end="")
        for i in range(1, u.shape[0] - 1):
            for j in range(start, u.shape[1] - 1, 2):
                u[i, j] = 0.5 * u[i, j - 1] + u[i, j + 1] + k
            start = 3 - start


@pytest.mark.parametrize(
    ("starts", "first", "kept"),
    [
        ([1] * 20, 1, {"start_before"}),
        ([1] * 9 + [2, 1, 2] + [1] * 9, None, {"start_before"}),
        ([1, 2] * 10, None, set()),
    ],
)
def test_integers_that_do_not_change_between_calls_are_known(starts, first, kept) -> None:
    (region,) = (nest := lw.nest(by_parity.python)).program.nests
    u = np.random.default_rng(0).random((40, 40))
    v = u.copy()
    nest(u, starts, first)
    nest.python(v, starts, first)
    assert np.array_equal(u, v)
    assert _partly_generic(region).source.kept == kept


def test_an_integer_that_was_kept_may_be_any_later() -> None:
    (region,) = (nest := lw.nest(by_parity.python)).program.nests
    u = np.random.default_rng(0).random((40, 40))
    v = u.copy()
    starts = [1] * 8 + list(range(-9, 30)) + [1] * 8
    nest(u, starts, None)
    nest.python(v, starts, None)
    assert np.array_equal(u, v)
    assert len(_partly_generic(region)._bound) == MOST_BINDINGS + 1
    assert region._generic_region._bound


@lw.nest
def smeared(u):
    """Terms are Python's numbers or NumPy's."""
    volume = 0.0
    for j in range(u.shape[0]):
        for i in range(u.shape[1]):
            if u[j, i] < 0.0:
                volume += 1.0
            elif u[j, i] < 0.5:
                volume += 1.0 - u[j, i]
    return volume


@pytest.mark.parametrize("low", [-1.0, 0.25, 0.75])
def test_a_sum_of_terms_of_two_types_is_of_that_of_those_there_are(low: float) -> None:
    u = np.random.default_rng(2).uniform(low, low + 0.2, (9, 11))
    found, expected = smeared(u), smeared.python(u)
    assert (found, type(found)) == (expected, type(expected))


@lw.nest
def ending_early(u, p):
    """Nothing follows where an iteration may end."""
    total = 0.0
    for k in range(p.shape[0]):
        x = p[k]
        total += u[x]
        u[x] = u[x] + 0.5
        if x >= 1:
            continue
    return total


def test_an_iteration_that_may_end_where_it_ends_anyway() -> None:
    p = np.array([0, 2, 1, 2, 0, 1])
    u, v = np.arange(3.0), np.arange(3.0)
    assert ending_early(u, p) == ending_early.python(v, p)
    assert np.array_equal(u, v)


@lw.nest
def bits_of(p, out):
    """What is shifted is Python's zero or NumPy's number."""
    for k in range(p.shape[0]):
        d = 0
        if p[k] > 3:
            d = p[k] - 2
        rest = d
        count = 0
        while rest > 1:
            rest >>= 1
            count += 1
        out[k] = count + (d >> 2)
    return count


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_shifts_to_the_right_of_numbers_of_two_types(dtype: str) -> None:
    p = np.random.default_rng(0).integers(-9, 100, 50).astype(dtype)
    found, expected = np.zeros(50, np.int64), np.zeros(50, np.int64)
    assert bits_of(p, found) == bits_of.python(p, expected)
    assert np.array_equal(found, expected)


@lw.nest
def moved_on(u, p):
    """The condition was of what the index was before."""
    total = 0.0
    for k in range(p.shape[0]):
        x = int(p[k])
        if x < 0 or x > 4:
            continue
        else:
            x = x + 3
        total += u[x]
        u[x] = total
    return total


def test_what_a_condition_says_is_of_the_value_that_it_looked_at() -> None:
    u, p = np.arange(5.0), np.tile(np.array([1, 0, -1, 1, 0], np.int32), 40)
    found, expected = u.copy(), u.copy()
    assert moved_on(found, p) == moved_on.python(expected, p)
    assert np.array_equal(found, expected)
    p[-2] = 4
    found = u.copy()
    with pytest.raises(lw.RunError, match="outside axis 0 of u"):
        moved_on(found, p)
    assert np.array_equal(found, u)
