"""What all iterations evaluate alike is computed once, and raises where the plain loop does."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import RunError
from lapwing.tiling.invariants import raises_alike, raising_invariants

LARGE = 1e200  # its square is no finite number


@lw.nest
def always(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + u[i, j - 1] * h**2


@lw.nest
def under_a_condition(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            if u[i, j] > 0.0:
                u[i, j] = u[i - 1, j] + u[i, j - 1] * h**2


@lw.nest
def in_an_arm(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + (h**2 if u[i, j] > 0.0 else u[i, j - 1])


@lw.nest
def at_the_right(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + (1.0 if u[i, j] > 0.0 and h**2 > 1.0 else u[i, j - 1])


@lw.nest
def left_out(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            if u[i, j] <= 0.0:
                continue
            u[i, j] = u[i - 1, j] + u[i, j - 1] * h**2


@lw.nest
def of_elements(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + h ** (2 * i)


SOMETIMES = (under_a_condition, in_an_arm, at_the_right, left_out)


def test_what_all_iterations_evaluate_is_found() -> None:
    body = always.bind({"u": np.ones((5, 5)), "h": 0.5}).body
    assert len(raising_invariants(body)) == 1
    assert raises_alike(body)
    for nest in (*SOMETIMES, of_elements):
        body = nest.bind({"u": np.ones((5, 5)), "h": 0.5}).body
        assert raising_invariants(body) == (), nest
        assert not raises_alike(body), nest


def test_it_raises_as_the_plain_loop_does() -> None:
    u = np.ones((9, 8))
    with pytest.raises(OverflowError):
        always.python(u.copy(), LARGE)
    with pytest.raises(RunError, match="a power"):
        always(u, LARGE)
    assert (u == 1.0).all(), "an error leaves arrays as they were"
    always(u[:1], LARGE)  # no iterations


@pytest.mark.parametrize("nest", SOMETIMES)
def test_what_is_not_evaluated_does_not_raise(nest: lw.Nest) -> None:
    found, expected = -np.ones((9, 8)), -np.ones((9, 8))
    nest.python(expected, LARGE)
    nest(found, LARGE)
    assert np.array_equal(found, expected)
    with pytest.raises(RunError, match="a power"):
        nest(np.ones((9, 8)), LARGE)


@pytest.mark.parametrize("h", [0.1, 3.0, 1e-170, 7])
def test_its_value_is_that_of_the_plain_loop(h: float) -> None:
    u = np.random.default_rng(1).random((70, 90))
    found, expected = u.copy(), u.copy()
    always.python(expected, h)
    always(found, h)
    assert np.array_equal(found, expected)
