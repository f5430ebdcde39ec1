"""Nests that a compiler once got wrong."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import check_arrays

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError


@pytest.fixture(autouse=True)
def compilers() -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


@lw.nest
def three(u, v, w):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            w[i, j] = 0.25 * w[i, j] + 0.25 * w[i, j]
            u[i, j] = 0.25 * u[i - 1, j] + 0.25 * u[i - 1, j] + 0.25 * u[i, j - 1] + 0.25 * u[i - 1, j]
            v[i, j] = 0.25 * v[i - 1, j]


@lw.nest
def from_zero(u, v, w):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            x = 0.0
            u[i, j] = 0.0 - w[i, j]
            v[i, j] = x - (w[i, j] if j > 3 else i)


@lw.nest
def beyond(u, w):
    for i in range(u.shape[0]):
        u[i] = 1 if w[i] + 1 > w[i] else 0


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
def test_the_greatest_integer_plus_one_is_the_least(dtype: str) -> None:
    check(beyond, {"u": np.zeros(9, np.int8), "w": np.full(9, np.iinfo(dtype).max, dtype)})


def test_loop_distribution_keeps_the_order_of_dependent_statements() -> None:
    random = np.random.default_rng(0)
    arguments = {name: random.random((5, 31)) for name in "uvw"}
    check(three, arguments)


def test_zero_minus_an_integer_zero_is_plus_zero() -> None:
    check(from_zero, {"u": np.ones((6, 7)), "v": np.ones((6, 7)), "w": np.arange(42).reshape(6, 7) % 3})


def check(nest: lw.Nest, arguments: dict[str, np.ndarray]) -> None:
    right, found = ({n: a.copy() for n, a in arguments.items()} for _ in range(2))
    with np.errstate(over="ignore"):
        nest.python(**right)
    nest(**found)
    check_arrays(found, right)
