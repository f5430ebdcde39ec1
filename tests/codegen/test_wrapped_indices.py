"""Indices that come back at the other end: the innermost loop is split, and has the bits of the plain loop at every size."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms


@lw.nest
def ring(v, u):
    n = u.shape[0]
    for i in range(n):
        v[i] = u[i - 1] - 2.0 * u[i] + u[(i + 1) % n]


@lw.nest
def torus(v, u):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            left, right = (j - 1) % m, (j + 2) % m
            v[i, j] = u[i - 1, j] + u[(i + 1) % n, j] + u[i, left] + u[i, right]


@lw.nest
def part(v, u, low, high):
    n = u.shape[0]
    for i in range(low, high):
        v[i] = u[(i + 1) % n] - u[i - 1]


@lw.nest
def reflected(v, u, low, high):
    """Indices that stay at an end, wherever that is."""
    n = u.shape[0]
    for i in range(n):
        v[i] = u[max(i - 1, 0)] - u[min(i + 2, n - 1)] + max(i - 1, low) - min(i + 1, high)


@lw.nest
def wrapped_back(v, u):
    """The index goes down, and the array is as long as another."""
    n = v.shape[0]
    for i in range(n - 1, -1, -1):
        v[i] = u[(i + 1) % n] - u[i - 1]


@pytest.mark.parametrize("n", range(2, 9))
@pytest.mark.parametrize("nest", [ring, wrapped_back])
def test_vectors(nest: lw.Nest, n: int) -> None:
    u = np.random.default_rng(n).random(n)
    mine, right = np.zeros(n), np.zeros(n)
    nest(mine, u)
    nest.python(right, u)
    assert mine.tobytes() == right.tobytes()


FAR = 2**49


@pytest.mark.parametrize("n", [1, 2, 3, 9])
@pytest.mark.parametrize(("low", "high"), [(0, 5), (3, 3), (7, -2), (FAR, -FAR), (-FAR, FAR)])
def test_ends_to_stay_at(n: int, low: int, high: int) -> None:
    u = np.random.default_rng(n).random(n)
    mine, right = np.zeros(n), np.zeros(n)
    reflected(mine, u, low, high)
    reflected.python(right, u, low, high)
    assert mine.tobytes() == right.tobytes()


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 4), (5, 7), (4, 40)])
def test_matrices(shape: tuple[int, int]) -> None:
    u = np.random.default_rng(0).random(shape)
    mine, right = np.zeros(shape), np.zeros(shape)
    torus(mine, u)
    torus.python(right, u)
    assert mine.tobytes() == right.tobytes()


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (0, 20), (1, 19), (3, 9), (19, 20), (7, 7)])
def test_parts(low: int, high: int) -> None:
    u = np.random.default_rng(1).random(20)
    mine, right = np.zeros(20), np.zeros(20)
    part(mine, u, low, high)
    part.python(right, u, low, high)
    assert mine.tobytes() == right.tobytes()


def test_the_inner_part_has_no_wraps() -> None:
    bound = ring.bind({"v": np.zeros(9), "u": np.zeros(9)})
    text = tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])
    _, _, inside = text.partition("ring_point_inside(")
    assert "lw_wrap" not in inside.partition("}")[0]
    assert "lw_wrap" in text
