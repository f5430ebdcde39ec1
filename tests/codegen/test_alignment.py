"""Independent loops that begin with what comes before the first store to a vector: the bits of the plain loop, wherever arrays
begin in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.inner_loops.alignment import row_stored_to
from lapwing.codegen.rows import tile_loops
from lapwing.codegen.tile import tile_source
from lapwing.runtime.execute import tile_library
from lapwing.tiling.inner import legal_forms


@lw.nest
def averaged(v, u):
    n, m = u.shape
    for i in range(n):
        for j in range(1, m - 1):
            v[i, j] = (u[i, j - 1] + u[i, j] + u[i, j + 1]) / 3


@lw.nest
def stepped(u, v, steps):
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            v[i] = u[i - 1] + u[i + 1]
        for i in range(1, u.shape[0] - 1):
            u[i] = v[i] - u[i]


@lw.nest
def ring(v, u):
    n = u.shape[0]
    for i in range(n):
        v[i] = u[i - 1] - 2 * u[(i + 1) % n]


@lw.nest
def in_columns(v, u):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[j, i] = u[i, j]


@lw.nest
def of_bytes(v, u):
    for i in range(u.shape[0]):
        v[i] = u[i] > 0


@pytest.fixture(autouse=True)
def _waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tile_loops, "has_slow_line_splits", lambda: True)
    tile_library.cache_clear()
    yield
    tile_library.cache_clear()


def at_offset(shape: tuple[int, ...], dtype: str, offset: int, seed: int) -> np.ndarray:
    """Elements that begin so many after the beginning of a line of the cache."""
    size = int(np.prod(shape))
    room = np.zeros(size + 32, dtype)
    first = -room.ctypes.data % 64 // room.itemsize + offset
    values = np.random.default_rng(seed).integers(-99, 99, size)
    room[first : first + size] = values
    return room[first : first + size].reshape(shape)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("nest", [averaged, ring])
def test_bits_of_the_plain_loop(nest: lw.Nest, dtype: str) -> None:
    for offset in (0, 1, 3, 6):
        for size in (3, 5, 63, 64, 65, 67, 129, 140, 200):
            shape = (3, size) if nest is averaged else (size,)
            u = at_offset(shape, dtype, 7 - offset, size)
            found, right = (at_offset(shape, "float64" if nest is averaged else dtype, offset, 1) for _ in range(2))
            nest(found, u)
            nest.python(right, u)
            assert found.tobytes() == right.tobytes(), (offset, size)


@pytest.mark.usefixtures("little_optimised")
def test_loops_inside_of_loops() -> None:
    for offset in (0, 1, 2, 5):
        for size in (2, 3, 66, 67, 131, 190):
            arrays = [[at_offset((size,), "float64", place, 3) for place in (offset, 3)] for _ in range(2)]
            stepped(*arrays[0], 5)
            stepped.python(*arrays[1], 5)
            for found, right in zip(*arrays, strict=True):
                assert found.tobytes() == right.tobytes(), (offset, size)


@pytest.mark.parametrize(
    ("nest", "is_peeled"), [(averaged, True), (ring, True), (in_columns, False), (of_bytes, False)]
)
def test_rows_that_are_worth_it(nest: lw.Nest, is_peeled: bool) -> None:
    shape = (70, 70) if nest in (averaged, in_columns) else (70,)
    bound = nest.bind({"v": np.zeros(shape, bool if nest is of_bytes else float), "u": np.zeros(shape)})
    form = legal_forms(bound, nest.dependences)[0]
    assert ("lw_vector_from(" in tile_source(bound, (), form)) is is_peeled
    row = row_stored_to(bound.body.statements, bound.nest.space_loops[-1].name)
    assert (row is not None) is is_peeled


def test_other_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_loops, "has_slow_line_splits", lambda: False)
    bound = ring.bind({"v": np.zeros(70), "u": np.zeros(70)})
    assert "lw_vector_from(" not in tile_source(bound, (), legal_forms(bound, ring.dependences)[0])
