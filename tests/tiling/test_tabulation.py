"""Which functions have tables, and that nests with tables are the plain loop, also where a table cannot be filled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import RunError
from lapwing.loopnest.binding.bound_nest import global_values
from lapwing.tiling.tabulation import tabulation

pytestmark = pytest.mark.usefixtures("little_optimised")

N = 70


@lw.nest
def decaying(u, k):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] * math.exp(-k[j])


@lw.nest
def on_a_sphere(u, latitudes):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            narrow = latitudes[i] + 0.5
            u[i, j] = u[i, j - 1] / np.cos(narrow) + np.cos(narrow) ** 2


@lw.nest
def of_differences(u, d):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] += d ** (i - j) + d ** (j + 1)


@lw.nest
def of_two_zeros(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = math.atan2(0.0, -1.0 * j - 1) + u[i, j] * math.atan2(-0.0, -1.0 * j - 1)


@lw.nest
def of_inner_loops(u, k):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            s = 0.0
            for q in range(3, 0, -1):
                s += math.exp(k[q] * q)
            for q in range(5):
                s += math.exp(k[q] * q)
            u[i, j] = s


@lw.nest
def of_data(u, k):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = math.exp(-u[i - 1, j]) + math.sqrt(k[j]) + 2 * j


@lw.nest
def where_it_may_be(u, k):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            if k[j] > 0.0:
                u[i, j] = u[i - 1, j] + math.log(k[j])


def arguments(nest: lw.Nest) -> dict[str, Any]:
    u, k = np.random.default_rng(2).random((N, N + 1)), np.random.default_rng(3).random(N + 1)
    if nest is of_differences:
        return {"u": u, "d": 0.75}
    return {"u": u} if nest is of_two_zeros else {"u": u, list(nest.loops.parameters)[1]: k}


def tables(nest: lw.Nest) -> list[tuple[int, ...]]:
    given = arguments(nest)
    found = tabulation(nest.bind(given), given, global_values(nest.python))
    return [] if found is None else [table.shape for table in found.tables]


SHAPES = {
    decaying: [(N + 1,)],
    on_a_sphere: [(N - 1,), (N - 1,)],
    of_differences: [(2 * N,), (N + 1,)],
    of_two_zeros: [(N + 1,), (N + 1,)],
    of_inner_loops: [(3,), (5,)],
    of_data: [],
    where_it_may_be: [(N + 1,)],
}


@pytest.mark.parametrize("nest", SHAPES, ids=lambda nest: nest.name)
def test_functions_of_some_of_the_indices_have_tables(nest: lw.Nest) -> None:
    assert tables(nest) == SHAPES[nest]


@pytest.mark.parametrize("nest", SHAPES, ids=lambda nest: nest.name)
def test_results_are_those_of_the_plain_loop(nest: lw.Nest) -> None:
    for _ in range(2):
        given, expected = arguments(nest), arguments(nest)
        nest(**given)
        nest.python(**expected)
        assert given["u"].tobytes() == expected["u"].tobytes()


def test_what_the_loops_do_not_come_to_may_be_out_of_a_function_s_domain() -> None:
    given, expected = arguments(where_it_may_be), arguments(where_it_may_be)
    for values in (given, expected):
        values["k"][5] = -1.0
    for _ in range(3):
        where_it_may_be(**given)
        where_it_may_be.python(**expected)
        assert given["u"].tobytes() == expected["u"].tobytes()


def test_what_raises_leaves_arrays_as_they_were() -> None:
    given = arguments(decaying)
    given["k"][7] = -1e3
    before = given["u"].copy()
    with pytest.raises(RunError, match="the plain loop raises"):
        decaying(**given)
    assert given["u"].tobytes() == before.tobytes()


def test_numbers_that_change_from_call_to_call() -> None:
    for d in (0.75, 0.5, 1.25):
        given, expected = arguments(of_differences), arguments(of_differences)
        of_differences(given["u"], d)
        of_differences.python(expected["u"], d)
        assert given["u"].tobytes() == expected["u"].tobytes()


def test_small_nests_have_none() -> None:
    given = {"u": np.ones((9, 9)), "k": np.ones(9)}
    assert tabulation(decaying.bind(given), given, {"math": math}) is None


@lw.nest
def with_spacing(u, f, h, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + f[i, j] * h**2)


def test_powers_of_arguments_alone_have_none() -> None:
    """They are evaluated before the loops, so that products with them cost nothing but a multiplication."""
    given: dict[str, Any] = {"u": np.ones((N, N)), "f": np.ones((N, N)), "h": 0.1, "sweeps": 30}
    assert tabulation(with_spacing.bind(given), given, global_values(with_spacing.python)) is None
