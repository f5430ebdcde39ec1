"""Innermost loops inside of a body that are done as several: which are, and that results are those of the plain loop."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms


def in_order(function: Any) -> lw.Nest:
    """A nest as a region that runs in its own order."""
    nest = lw.Nest(function)
    nest.source = dataclasses.replace(nest.source, sequential=True)
    return nest


def text_of(nest: lw.Nest, arguments: dict[str, Any]) -> str:
    bound = nest.bind(arguments)
    return tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0]).split("void lw_tile_compute")[0]


@in_order
def moved_right(a, b):
    """Two stores to one array, one of them ahead of the index, which comes back at the end."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if b[i, j] == 1 and b[i, (j + 1) % m] == 0:
                a[i, j] = 0
                a[i, (j + 1) % m] = 1


@in_order
def moved_down(a, b):
    """Two stores that are to one element where there is one row."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if b[i, j] == 2 and b[(i + 1) % n, j] == 0:
                a[i, j] = 0
                a[(i + 1) % n, j] = 2


@in_order
def onto_both_rows(a, b):
    """The same, whatever the other array has."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if b[i, j] == 1:
                a[i, j] = 2
                a[(i + 1) % n, j] = 3


@in_order
def fluxes(a, b):
    """Updates of both neighbours of an edge."""
    n, m = a.shape
    for i in range(n):
        for j in range(m - 1):
            a[i, j] = a[i, j] - b[i, j]
            a[i, j + 1] = a[i, j + 1] + b[i, j]


@in_order
def chained(a, b):
    """What one iteration stores, the next one looks at."""
    n, m = a.shape
    for i in range(n):
        for j in range(m - 1):
            if b[i, j] == 1:
                a[i, j] = a[i, j + 1]
                a[i, j + 1] = 0


@in_order
def shifted(a, b, w):
    """What stands under a condition on the index has no element elsewhere."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if i == 0 or j == 0:
                a[i, j] = 0
            elif w[i] <= j:
                a[i, j] = b[i - 1, j - w[i]]
            else:
                a[i, j] = b[i - 1, j]


@in_order
def both_ends(a, b):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if j == 0:
                a[i, j] = b[i, j + 1]
            elif j == m - 1:
                a[i, j] = b[i, j - 1]
            else:
                a[i, j] = b[i, j - 1] + b[i, j + 1]


@in_order
def beyond(a, b):
    """The element is there under the inner condition alone."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if b[i, j] == 1:
                a[i, j] = 2
                if j + 1 < m:
                    a[i, j + 1] = 3


@in_order
def compared(a, b, p):
    """One condition of each kind, with an index that is further."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if j < p:
                a[i, j] = b[i, j]
        for j in range(m):
            if j + 1 <= p:
                a[i, j] = 2 * a[i, j]
        for j in range(m):
            if p < j - 1:
                a[i, j] = a[i, j] + 1
        for j in range(m):
            if j >= p:
                a[i, j] = 3 * a[i, j]
        for j in range(1, m):
            if j + 2 == p:
                a[i, j] = a[i, j] + 2
        for j in range(m - 1):
            if p != j - 2:
                a[i, j] = a[i, j] - 3


FAR = 2**49


@pytest.mark.parametrize("m", [1, 2, 40])
@pytest.mark.parametrize("p", [-FAR, *range(-4, 5), *range(37, 44), FAR])
def test_conditions_on_the_index(p: int, m: int) -> None:
    given, right = arrays((2, m), "float64"), arrays((2, m), "float64")
    compared(given["a"], given["b"], p)
    compared.python(right["a"], right["b"], p)
    assert given["a"].tobytes() == right["a"].tobytes()


def arrays(shape: tuple[int, int], dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(sum(shape))
    return {name: rng.integers(0, 3, shape).astype(dtype) for name in "ab"} | {"w": rng.integers(1, 9, shape[0])}


NESTS = (moved_right, moved_down, onto_both_rows, fluxes, chained, shifted, both_ends, beyond)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (1, 70), (2, 3), (5, 70), (3, 260)])
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_results_are_those_of_the_plain_loop(nest: lw.Nest, shape: tuple[int, int], dtype: str) -> None:
    given, right = arrays(shape, dtype), arrays(shape, dtype)
    names = nest.loops.parameters
    raised: type[Exception] | None = None
    try:
        nest.python(*(right[name] for name in names))
    except IndexError as error:
        raised = type(error)
    if raised is not None or (nest is fluxes and dtype != "float64"):
        return  # of such indices, and of integers that might not fit, other tests speak
    nest(*(given[name] for name in names))
    assert all(given[name].tobytes() == right[name].tobytes() for name in names)


@pytest.mark.parametrize(
    ("nest", "dtype", "vectors"),
    [
        (moved_right, "int8", 2),
        (moved_down, "int8", 1),
        (fluxes, "float64", 2),
        (chained, "int8", 0),
        (both_ends, "float64", 1),
    ],
    ids=lambda value: value.name if isinstance(value, lw.Nest) else None,
)
def test_loops_whose_iterations_are_independent(nest: lw.Nest, dtype: str, vectors: int) -> None:
    given = arrays((5, 70), dtype)
    text = text_of(nest, {name: given[name] for name in nest.loops.parameters})
    independent = text.split("#pragma GCC ivdep")[1:]
    assert len(independent) == vectors
    assert not any(" if (" in part.partition("}")[0] for part in independent)


def test_the_store_that_is_furthest_ahead_comes_first() -> None:
    given = arrays((5, 70), "int8")
    first, second = text_of(moved_right, {"a": given["a"], "b": given["b"]}).split("#pragma GCC ivdep")[1:]
    assert "j + 1] = lw_select_i8(" in first.partition("}")[0]
    assert "j] = lw_select_i8(" in second.partition("}")[0]


def test_no_element_is_stored_to_that_need_not_be_there() -> None:
    given = arrays((5, 70), "int8")
    text = text_of(beyond, {"a": given["a"], "b": given["b"]})
    assert "lw_select_i8(test, a[" not in text
    assert "(int8_t)3" in text


# -- windows around elements -----------------------------------------------------------------------------------------


@in_order
def blurred(a, b, r, sigma):
    """A window of which some is outside, and a sum that divides."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            total, norm = 0.0, 0.0
            for k in range(-r, r + 1):
                scale = k**2 / sigma
                for h in range(-r, r + 1):
                    if 0 <= i + k < n and 0 <= j + h < m:
                        w = np.exp(-scale - (a[i + k, j + h] - a[i, j]) ** 2)
                        total += w * a[i + k, j + h]
                        norm += w
            b[i, j] = total / norm


@in_order
def in_place(a, b, r, sigma):
    """What an iteration stores, others look at."""
    n, m = a.shape
    for i in range(n):
        for j in range(r, m):
            total = 0.0
            for k in range(r + 1):
                total += np.exp(-((a[i, j - k] - b[i, j]) ** 2) / sigma)
            a[i, j] = total


@in_order
def to_the_diagonal(a, b, r, sigma):
    """How long the inner loop is depends on the outer one."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            total = 0.0
            for k in range(j + 1):
                total += np.exp(-a[i, k] / sigma)
            b[i, j] = total


@pytest.mark.parametrize("r", [0, 1, 3, 40])
@pytest.mark.parametrize("m", [1, 15, 16, 40, 300])
def test_windows(m: int, r: int) -> None:
    check_window(blurred, (2, m), r, 0.5)


@pytest.mark.parametrize("nest", [in_place, to_the_diagonal])
def test_loops_that_stay_outside(nest: lw.Nest) -> None:
    check_window(nest, (3, 70), 2, 0.5)
    assert "_strip[j - j_strip]" not in text_of(nest, of_window((3, 70), 2, 0.5))


def test_functions_are_called_along_the_outer_loop() -> None:
    assert re.search(r"total_\d_strip\[j - j_strip\]", text_of(blurred, of_window((3, 70), 2, 0.5)))


def test_an_error_in_a_window() -> None:
    given, right = of_window((3, 70), 2, 0.0), of_window((3, 70), 2, 0.0)
    with pytest.raises(lw.RunError, match="ZeroDivisionError"):
        blurred(**given)
    assert all(given[name].tobytes() == right[name].tobytes() for name in "ab")


def of_window(shape: tuple[int, int], r: int, sigma: float) -> dict[str, Any]:
    rng = np.random.default_rng(shape[1])
    return {"a": rng.random(shape), "b": np.zeros(shape), "r": r, "sigma": sigma}


def check_window(nest: lw.Nest, shape: tuple[int, int], r: int, sigma: float) -> None:
    given, right = of_window(shape, r, sigma), of_window(shape, r, sigma)
    nest(**given)
    nest.python(**right)
    assert all(given[name].tobytes() == right[name].tobytes() for name in "ab")


@in_order
def patterns(image, out, h):
    for i in range(1, image.shape[0] - 1):
        for j in range(1, image.shape[1] - 1):
            middle = image[i, j]
            code = 0
            if image[i - 1, j] >= middle:
                code |= 1
            if image[i, j + 1] >= middle:
                code |= 2
            if image[i + 1, j] >= middle:
                code |= 4
            if image[i, j - 1] >= middle:
                code |= 8
            out[i, j] = code
            h[code] += 1


def test_what_is_counted_is_computed_before() -> None:
    given = {"image": np.ones((9, 70), np.uint8), "out": np.zeros((9, 70), np.uint8), "h": np.zeros(16, np.int64)}
    text = text_of(patterns, given)
    assert "code_9_strip" in text
    assert "lw_lookup" not in text


@in_order
def around_each(u, v, r):
    n = u.shape[0]
    for i in range(n):
        largest = u[i]
        for k in range(max(0, i - r), min(n, i + r + 1)):
            largest = max(largest, u[k])
        v[i] = largest


def test_windows_that_are_cut_off_are_done_one_by_one() -> None:
    """Lanes are for those between."""
    text = text_of(around_each, {"u": np.ones(90), "v": np.zeros(90), "r": 2})
    assert "i_whole_from = lw_max_i64(i, r), i_whole_until" in " ".join(text.split()).replace("; const int64_t", ",")
