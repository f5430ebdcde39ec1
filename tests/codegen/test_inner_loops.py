"""Innermost loops inside of a body that are done as several: which are, and that results are those of the plain loop."""

from __future__ import annotations

import dataclasses
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


NESTS = (moved_right, moved_down, fluxes, chained, shifted, both_ends, beyond)


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
