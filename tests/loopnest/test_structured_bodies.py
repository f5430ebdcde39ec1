"""Bodies with conditions, inner loops and axes of no loop: accepted, planned for ranks, and equal to the plain loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError


@pytest.fixture(autouse=True)
def _needs_compilers(little_optimised: None) -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


CASES: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {}


def grid(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def case(*arguments: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A nest, and what makes each of its arguments."""

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, lambda: tuple(make() for make in arguments)
        return function

    return noted


@case(lambda: grid(9, 11))
def if_statement(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if u[i, j] > 0.5:
                u[i, j] = 0.0
            elif u[i, j] > 0.3:
                u[i, j] *= 2.0
            else:
                u[i, j] = -u[i, j]


@case(lambda: grid(9, 11))
def edges_skipped(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if i == 0 or j == 0:
                continue
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])


@case(lambda: grid(9, 11))
def maximum_in_an_if(u):
    best = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if u[i, j] > best:
                best = u[i, j]
    return best


@case(lambda: np.floor(5 * grid(9, 11)))
def last_of_the_least(u):
    best = 9.0
    row = column = -1
    for i in range(u.shape[0] - 1, -1, -1):
        for j in range(u.shape[1]):
            if u[i, j] <= best:
                best, row, column = u[i, j], i, j
    return best, row, column


@case(lambda: grid(9, 11))
def while_in_the_body(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            while u[i, j] < 0.9:
                u[i, j] += 0.25


@case(lambda: grid(9, 11))
def broken_off(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            for k in range(5):
                if k * 0.2 > u[i, j]:
                    break
            u[i, j] = k


@case(lambda: grid(9, 11))
def value_of_a_loop_that_runs(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            for k in range(3):
                x = u[i, j] * k
            u[i, j] = x


@case(lambda: grid(9, 11), lambda: grid(9, seed=1))
def statements_beside_a_loop(u, w):
    for i in range(1, u.shape[0]):
        s = 2.0 * w[i]
        u[i, 0] = 0.0
        w[i] += 1.0
        for j in range(1, u.shape[1]):
            u[i, j] = s * u[i, j - 1]


@case(lambda: grid(9, 11))
def two_inner_loops(u):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] += u[i - 1, j]
        for j in range(u.shape[1] - 2, -1, -1):
            u[i, j] += u[i, j + 1]


@case(lambda: grid(5, 7), lambda: grid(7, 6, seed=1), lambda: np.zeros((5, 6)))
def matrix_product(a, b, c):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@case(lambda: grid(9, 11), lambda: np.zeros(9))
def row_written(u, s):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            s[i] = s[i] + u[i, j]


@case(lambda: grid(9, 30), lambda: np.arange(9) % 4)
def bounds_of_all_kinds(u, n):
    for i in range(u.shape[0]):
        for j in range(min(i, 3)):
            u[i, j] = 1.0
        for j in range(i // 2, i * i // 4):
            u[i, j] = 2.0
        for j in range(n[i]):
            u[i, j] += 3.0


@case(lambda: grid(9, 30), lambda: np.arange(9))
def indices_of_all_kinds(u, t):
    for i in range(1, u.shape[0]):
        for j in range(1, 9):
            u[i, j] = u[i - 1, 2 * j] + u[i, t[j] - 1] + u[i, -j] + u[i, j // 2] + u[i, (j + 1) % 4] + u[i, i]


@case(lambda: grid(9, 11), lambda: np.zeros((9, 11)))
def neighbours_around_the_edge(u, v):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = u[i - 1, j] + u[i, j - 1] + u[(i + 1) % u.shape[0], (j + 1) % u.shape[1]]


@case(lambda: grid(9, 11, 3))
def components_of_a_cell(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for c in range(3):
                u[i, j, c] = u[i - 1, j, c] + 0.5 * u[i, j - 1, 2 - c]


@case(lambda: grid(9, 30), lambda: np.array([3, -2, 1, 7, -5, 2, -1, 4, 30]))
def steps_of_all_kinds(u, by):
    for i in range(u.shape[0]):
        for j in range(2 if by[i] > 0 else 28, 29 if by[i] > 0 else 1, by[i]):
            u[i, j] += 1.0
        for j in range(i) if i % 2 == 0 else range(20, i, -i):
            u[i, j] *= 2.0


@case(lambda: grid(9, 11))
def a_scalar_of_two_types(u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            s = 0
            for k in range(j):
                s += u[i, k] if k % 2 == 0 else 1
            u[i, j] = math.sqrt(abs(s))


@pytest.mark.parametrize("name", CASES)
def test_equal_to_the_plain_loop(name: str) -> None:
    function, arguments = CASES[name]
    nest = lw.nest(function)
    found, expected = arguments(), arguments()
    result, right = nest(*found), function(*expected)
    assert repr(result) == repr(right)
    for here, there in zip(found, expected, strict=True):
        assert here.tobytes() == there.tobytes()
    plan = nest.plan(*found, ranks=2)
    assert plan.ranks + plan.idle == 2


def test_a_step_of_zero() -> None:
    u = grid(9, 11)
    before = u.copy()

    @lw.nest
    def zero(u, by):
        for i in range(u.shape[0]):
            for j in range(0, u.shape[1], by[i]):
                u[i, j] += 1.0

    with pytest.raises(lw.RunError, match="a step of zero; the plain loop raises ValueError here"):
        zero(u, np.zeros(9, np.int64))
    assert np.array_equal(u, before)
