"""Short loops around others are written out: which they are, and that they do what the plain loop does."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms


@lw.nest
def ranked(image, out, rows, columns, window, rank):
    n, m = image.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            count = 0
            for p in range(3):
                for q in range(2, -1, -1):
                    value = image[rows[i, p], columns[j, q]]
                    k = count
                    while k > 0 and window[k - 1] > value:
                        window[k] = window[k - 1]
                        k -= 1
                    window[k] = value
                    count += 1
            out[i, j] = window[rank]


@lw.nest
def left_to_compilers(u, count):
    for i in range(1, u.shape[0]):
        for k in range(3):
            count[k] = count[k] + u[i - 1]
        u[i] = count[i % 3]


@lw.nest
def around_a_long_one(u, count):
    for i in range(1, u.shape[0]):
        for k in range(3):
            for q in range(i):
                count[k] = count[k] + u[q]
        u[i] = count[i % 3]


@lw.nest
def of_many_iterations(u, count):
    for i in range(1, u.shape[0]):
        for k in range(10):
            while count[k % 3] > 9:
                count[k % 3] -= u[i - 1]
        u[i] = count[i % 3]


def around(extent: int) -> np.ndarray:
    """Of every index, the one before it, itself, and the one behind it."""
    return np.arange(extent)[:, None] + np.arange(-1, 2)


def unrolled_in(nest: lw.Nest, *arguments: Any) -> list[str]:
    region = lw.Nest(nest.python)
    region.source = replace(region.source, sequential=True)
    bound = region.bind(region.arguments(*arguments))
    text = tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])
    return re.findall(r"#pragma GCC unroll (\d+)\n *for \(int64_t (\w+) =", text)


def test_loops_around_short_ones() -> None:
    image = np.zeros((5, 6), np.uint8)
    places = around(5), around(6)
    assert unrolled_in(ranked, image, image.copy(), *places, np.zeros(10, np.uint8), 4) == [("3", "p"), ("3", "q")]


@pytest.mark.parametrize("nest", [left_to_compilers, around_a_long_one, of_many_iterations])
def test_loops_that_stay(nest: lw.Nest) -> None:
    assert not unrolled_in(nest, np.ones(5), np.ones(3))


@pytest.mark.parametrize("rank", [0, 4, 8, 9])
def test_bits_of_the_plain_loop(rank: int) -> None:
    image = np.random.default_rng(rank).integers(0, 9, (9, 14)).astype(np.uint8)
    found, expected = image.copy(), image.copy()
    ranked(image, found, around(9), around(14), np.zeros(10, np.uint8), rank)
    ranked.python(image, expected, around(9), around(14), np.zeros(10, np.uint8), rank)
    assert found.tobytes() == expected.tobytes()


@lw.nest
def neighbours_of_tuples(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                total = f[i, j]
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di != 0 or dj != 0:
                            total += u[i + di, j + dj]
                u[i, j] = total / 9.0


@lw.nest
def never(u):
    for i in range(u.shape[0]):
        if 1 == 2:
            u[i] = 0.0


def test_conditions_on_values_of_tuples_are_decided_before_the_loops() -> None:
    random = np.random.default_rng(3)
    u, f = random.random((9, 20)), random.random((9, 20))
    bound = neighbours_of_tuples.bind({"u": u, "f": f, "sweeps": 3})
    assert bound.body.is_straight
    expected = u.copy()
    neighbours_of_tuples.python(expected, f, 3)
    neighbours_of_tuples(u, f, 3)
    assert u.tobytes() == expected.tobytes()


def test_a_condition_that_never_holds() -> None:
    u = np.ones(5)
    never(u)
    assert u.tolist() == [1.0] * 5
