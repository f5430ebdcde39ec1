"""Loops whose condition lets them do something in one of so many iterations: they have the bits of the plain loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.inner_loops.strides import with_stride
from lapwing.codegen.rows import tile_loops
from lapwing.codegen.tile import tile_source
from lapwing.runtime.execute import tile_library
from lapwing.tiling.inner import legal_forms


@lw.nest
def red_black(u, f, h, sweeps):
    for t in range(sweeps):
        for colour in range(2):
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    if (i + j) % 2 == colour:
                        u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h**2 * f[i, j])


@lw.nest
def by_twos(u, f, h, sweeps):
    n, m = u.shape
    for t in range(sweeps):
        for parity in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + parity) % 2, m - 1, 2):
                    u[i, j] += h * (f[i, j - 1] - f[i, j + 1])


@lw.nest
def in_threes(u, f, h, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                if (j - 2 * i - t) % 3 == 1 and f[i, j] > h:
                    u[i, j] = f[i, j] - t


@lw.nest
def never(u, f, h, sweeps):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if (j + sweeps) % 4 == sweeps:
                u[i, j] = h + j


@lw.nest
def backwards(u, f, h, sweeps):
    for i in range(u.shape[0]):
        for j in range(u.shape[1] - 1, -1, -1):
            if (i + j) % 2 == 0:
                u[i, j] = h * f[i, j]


@lw.nest
def otherwise(u, f, h, sweeps):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if (i + j) % 2 == 0:
                u[i, j] = h
            else:
                u[i, j] = f[i, j]


@lw.nest
def twice_as_far(u, f, h, sweeps):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if (i + 2 * j) % 3 == 0:
                u[i, j] = h


STRIDED = [red_black, by_twos, in_threes, never]


@pytest.fixture(autouse=True)
def _without_masks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tile_loops, "vector_bytes", lambda: 32)
    tile_library.cache_clear()
    yield
    tile_library.cache_clear()


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("nest", [*STRIDED, backwards, otherwise, twice_as_far])
def test_bits_of_the_plain_loop(nest: lw.Nest) -> None:
    random = np.random.default_rng(0)
    for shape in ((3, 3), (4, 7), (5, 8), (6, 65), (3, 1), (9, 90)):
        for sweeps in (1, 2, 5, -3):
            u, f = random.random((2, *shape))
            expected = u.copy()
            nest(u, f, 0.3, sweeps)
            nest.python(expected, f, 0.3, sweeps)
            assert u.tobytes() == expected.tobytes(), (shape, sweeps)


@pytest.mark.parametrize("nest", [*STRIDED, backwards, otherwise, twice_as_far])
def test_which_loops_leave_iterations_out(nest: lw.Nest) -> None:
    bound = nest.bind({"u": np.zeros((9, 9)), "f": np.zeros((9, 9)), "h": 0.5, "sweeps": 2})
    is_strided = nest in STRIDED
    form = legal_forms(bound, nest.dependences)[0]
    assert ("lw_first_congruent(" in tile_source(bound, (), form)) is is_strided
    assert (with_stride(bound.body, "j", frozenset({"t", "colour", "parity", "i"})) is not None) is (
        nest in (*STRIDED, backwards)
    )


def test_half_of_the_lanes_where_there_are_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_loops, "vector_bytes", lambda: 64)
    for nest, is_strided in ((red_black, False), (in_threes, True)):
        bound = nest.bind({"u": np.zeros((9, 9)), "f": np.zeros((9, 9)), "h": 0.5, "sweeps": 2})
        form = legal_forms(bound, nest.dependences)[0]
        assert ("lw_first_congruent(" in tile_source(bound, (), form)) is is_strided
