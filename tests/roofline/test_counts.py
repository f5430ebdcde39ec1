"""What a point of a nest takes, counted."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.roofline.counts import Elements, elements, operations, traffic


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def upwards(u):
    for i in range(u.shape[0] - 2, 0, -1):
        for j in range(u.shape[1] - 2, 0, -1):
            u[i, j] = u[i + 1, j] + u[i, j + 1]


@lw.nest
def rooted(u, v, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            x = np.sqrt(u[i - 1, j]) + h * h * h / 3.0
            u[i, j] = x / (h + v[i, j]) + np.sqrt(u[i - 1, j]) + v[i, j] / 4.0


@lw.nest
def divided(u, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] / 3.0 + u[i, j - 1] / h + 1.0 / u[i, j]


@lw.nest
def aligned(h, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            s = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + s, h[i - 1, j] - 1, h[i, j - 1] - 1)


@lw.nest
def stored_first(e, h):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = h[i - 1, j] + 1.0
            h[i, j] = 2.0 * e[i, j]


@lw.nest
def under_a_condition(u, v):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            if u[i - 1, j] > 0.5:
                v[i, j] = u[i, j] / u[i - 1, j]


@lw.nest
def looked_up(u, table, place):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = table[place[j]]


def of(nest: lw.Nest, **arguments: Any) -> BoundNest:
    return nest.bind(arguments)


def floats(*shape: int) -> np.ndarray:
    return np.ones(shape)


def innermost(bound: BoundNest) -> Elements:
    loop = bound.nest.space_loops[-1]
    return elements(bound, loop.name, loop.step)


def test_every_operation_is_counted_once_for_a_point() -> None:
    assert operations(of(gauss_seidel, u=floats(9, 9), sweeps=1).body) == {("simple", "float64"): 4}


def test_equal_expressions_count_once_and_what_is_the_same_everywhere_not_at_all() -> None:
    found = operations(of(rooted, u=floats(9, 9), v=floats(9, 9), h=0.5).body)
    # The root is the same twice, h * h * h / 3.0 the same in all points, and a quotient by a power of two is a product.
    assert found == {("sqrt", "float64"): 1, ("/", "float64"): 1, ("simple", "float64"): 1 + 1 + 1 + 1 + 1}


def test_quotients_by_what_does_not_change_are_products_in_vectors() -> None:
    body = of(divided, u=floats(9, 9), h=0.5).body
    assert operations(body) == {("/", "float64"): 3, ("simple", "float64"): 2}
    assert operations(body, by_reciprocals=True) == {("/", "float64"): 1, ("simple", "float64"): 2 + 2 * 5}


def test_operations_are_of_the_type_that_is_computed_in() -> None:
    body = of(rooted, u=floats(9, 9).astype("f4"), v=floats(9, 9).astype("f4"), h=np.float32(0.5)).body
    assert {dtype for _, dtype in operations(body)} == {"float32"}


def test_conditions_and_selections_of_integers() -> None:
    letters = np.zeros(9, np.int32)
    found = operations(of(aligned, h=np.zeros((9, 9), np.int32), a=letters, b=letters).body)
    # a == b and one choice, three sums, three maxima.
    assert found == {("simple", "int32"): 8}


def test_what_some_points_do_is_not_counted() -> None:
    bound = of(under_a_condition, u=floats(9, 9), v=floats(9, 9))
    assert operations(bound.body) == {("simple", "float64"): 1}
    assert innermost(bound) == Elements((8,), (), ())


def test_a_row_that_a_loop_comes_by_is_loaded_once() -> None:
    """Of u[i, j - 1] and u[i, j + 1] only the latter is news, and u[i, j - 1] alone is what the point before has stored."""
    assert innermost(of(gauss_seidel, u=floats(9, 9), sweeps=1)) == Elements((8, 8, 8), (), (8,))
    assert innermost(of(upwards, u=floats(9, 9))) == Elements((8,), (), (8,))
    letters = np.zeros(9, np.int8)
    found = innermost(of(aligned, h=np.zeros((9, 9), np.int32), a=letters, b=letters))
    assert (sorted(found.loaded), found.stored) == ([1, 4], (4,))  # a is the same along a row


def test_what_was_just_stored_is_not_loaded() -> None:
    assert innermost(of(stored_first, e=floats(9, 9), h=floats(9, 9))) == Elements((8,), (), (8, 8))


def test_look_ups_are_told_apart() -> None:
    found = innermost(of(looked_up, u=floats(5, 6), table=floats(4), place=np.zeros(6, np.int64)))
    assert (found.loaded, found.gathered, found.stored) == ((8,), (8,), (8,))


def test_traffic_is_that_of_the_block() -> None:
    bound = of(rooted, u=floats(40, 30), v=floats(40, 30), h=0.5)
    whole, part = traffic(bound, (39, 29)), traffic(bound, (10, 29))
    assert (whole.touched, whole.written) == (8 * (40 * 29 + 39 * 29), 8 * 40 * 29)
    assert (part.touched, part.written) == (8 * (11 * 29 + 10 * 29), 8 * 11 * 29)
