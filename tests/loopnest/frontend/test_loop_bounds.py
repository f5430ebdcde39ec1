"""Steps, and bounds that are affine only nearly: both loops are cut into tiles, and do Python's iterations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from everyday import one_of
from loading import load

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError

pytestmark = pytest.mark.usefixtures("little_optimised")

SIZES = ((9, 12, 3, 1), (12, 9, 0, 0), (7, 7, -2, 5), (1, 3, 1, 2))  # rows, columns, k, c

RANGES = {
    "steps": ("0, n, 2", "0, m, 3"),
    "steps down": ("n - 1, -1, -2", "m - 1, 0, -4"),
    "steps from an outer index": ("0, n", "i % 3, m, 2"),
    "red and black": ("1, n - 1", "1 + (i + c) % 2, m - 1, 2"),
    "red and black by bits": ("1, n - 1", "1 + ((i + c) & 1), m - 1, 2"),
    "red and black downwards": ("n - 2, 0, -1", "m - 2 - (i + c) % 2, 0, -2"),
    "a band": ("0, n", "max(0, i - k), min(m, i + k + 1)"),
    "a band downwards": ("n - 1, -1, -1", "min(m - 1, i + k), max(-1, i - k - 1), -1"),
    "a band of three bounds": ("0, n", "max(0, i - k, c - i), min(m, i + k + 1)"),
    "bounds in bounds": ("0, n", "max(0, max(c, i - k)) + 1, m - max(0, i - k)"),
    "a band in steps": ("0, n", "max(0, i - 3), min(m, i + 4), 2"),
    "ragged at both ends": ("0, n", "i % 4, m - (2 * i + 1) % 3"),
    "less than nothing": ("0, n", "i % 4, m - 8 * ((i + c) % 2)"),
    "of two starts": ("0, n", "0 if i % 3 == c else 2, m"),
    "of two ends": ("0, n", "0, m if i > k and not i == c else m - 2"),
    "a remainder of a remainder": ("0, n", "(i + i % 3) % 2, m, 2"),
    "a negated remainder": ("0, n", "1 + -(-(i % 2)), m - 1, 2"),
    "a product": ("0, n", "2 * (i % 2), m, 4"),
}


@pytest.fixture(scope="module", autouse=True)
def compilers() -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


def nest_of(rows: str, columns: str, directory: Path) -> lw.Nest:
    lines = ["import lapwing as lw", "@lw.nest", "def nest(u, k, c):", "    n, m = u.shape"]
    lines += [f"    for i in range({rows}):", f"        for j in range({columns}):"]
    lines += ["            u[i, j] = 2 * u[i, j] + 3 * i + j"]
    (directory / "nest.py").write_text("\n".join(lines) + "\n")
    return load(directory / "nest.py").nest


@pytest.mark.parametrize("name", one_of(2, RANGES))
def test_iterations_are_those_of_python(name: str, tmp_path: Path) -> None:
    nest = nest_of(*RANGES[name], tmp_path)
    assert nest.loops.loop_names == ("i", "j")
    for n, m, k, c in SIZES:
        right, found = (np.arange(n * m).reshape(n, m) for _ in range(2))
        nest.python(right, k, c)
        nest.bind({"u": found, "k": k, "c": c})  # it is tiled, and not done in its own order instead
        nest(found, k, c)
        assert np.array_equal(found, right), (n, m, k, c)


def test_a_symbol_of_a_remainder_is_an_integer(tmp_path: Path) -> None:
    nest = nest_of(*RANGES["red and black"], tmp_path)
    with pytest.raises(lw.RefusedError, match="depends on c, which is not an integer"):
        nest.bind({"u": np.zeros((5, 5)), "k": 1, "c": 0.0})


def test_indices_of_the_loop_s_own_iterations_are_inside() -> None:
    @lw.nest
    def nest(u, w):
        for i in range(0, u.shape[0], 2):
            for j in range(u.shape[1]):
                u[i, j] += w[i + 1, j]

    even, odd = np.ones((6, 3)), np.ones((5, 3))
    assert nest.bind({"u": even, "w": even.copy()}).domain.box == ((0, 5), (0, 3))
    with pytest.raises(lw.RefusedError, match="index 1 reaches 5"):
        nest.bind({"u": odd, "w": odd.copy()})


@pytest.mark.parametrize("columns", ["0, m, 8", "0, m, k", "i // 2, m", "0, max(i, k)", "u[i, 0], m"])
def test_what_is_far_from_affine_is_an_inner_loop(columns: str, tmp_path: Path) -> None:
    nest = nest_of("0, n", columns, tmp_path)
    assert nest.refusals or nest.loops.loop_names == ("i",)


def test_sweeps_are_not_left_out() -> None:
    @lw.nest
    def nest(u, n):
        for t in range(0, n, 2):
            for i in range(1, u.shape[0]):
                u[i] = 0.5 * u[i - 1] + 1.0

    (region,) = nest.regions  # the sweeps are a loop around it
    assert region.loops.loop_names == ("i",)
    right, found = (np.arange(8.0) for _ in range(2))
    nest.python(right, 7)
    nest(found, 7)
    assert np.array_equal(right, found)


def test_what_is_stored_beyond_the_array_but_for_a_condition_is_not_tiled() -> None:
    @lw.nest
    def nest(u, v):
        for i in range(v.shape[0]):
            v[i] += 1
            if i < u.shape[0]:
                u[i] = v[i]

    with pytest.raises(lw.RefusedError, match="the loops go beyond"):
        nest.bind({"u": np.zeros(5), "v": np.zeros(9)})
    u, v = np.zeros(5), np.zeros(9)
    nest(u, v)
    assert u.tolist() == [1.0] * 5
    assert v.tolist() == [1.0] * 9


def test_rows_in_which_nothing_is_done_are_left_out() -> None:
    @lw.nest
    def nest(u, v):
        for i in range(v.shape[0]):
            if 2 <= i < u.shape[0]:
                u[i] = v[i]

    assert nest.bind({"u": np.zeros(5), "v": np.zeros(9)}).domain.box == ((2, 5),)
    assert nest.bind({"u": np.zeros(1), "v": np.zeros(9)}).domain.is_empty


def test_a_loop_that_these_arguments_keep_whole_is_an_inner_loop() -> None:
    @lw.nest
    def nest(u):
        for i in range(u.shape[0]):
            for k in range(i, u.shape[1], 2):
                u[i, k - 1] += 1.0

    right, found = np.ones((4, 5)), np.ones((4, 5))
    nest.python(right)
    nest(found)
    assert np.array_equal(right, found)
    assert nest.loops.loop_names == ("i", "k")
    assert nest.for_arguments({"u": found}).loops.loop_names == ("i",)


def test_a_loop_along_which_nothing_can_be_cut_is_an_inner_loop() -> None:
    @lw.nest
    def nest(u):
        for i in range(1, u.shape[0]):
            for j in range(i % 2, u.shape[1] - 1, 2):
                u[i, j] = u[i - 1, u.shape[1] - 1 - j] + 1.0

    assert nest.loops.loop_names == ("i",)
    right, found = (np.arange(35.0).reshape(5, 7) for _ in range(2))
    nest.python(right)
    nest(found)
    assert np.array_equal(right, found)
