"""What the plan notes on lanes: why they have no buffers, or no vectors, as the generator itself decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from inner_forms import vectors_of

import lapwing as lw
from lapwing.planner.notes import notes_of_lanes


@lw.nest
def transposing(d, a, b):
    """Elements that are there under a condition alone: of buffers, and of sequences."""
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            cost = int(a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)


@lw.nest
def bordered(d, a, b):
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            if i == 0 or j == 0:
                d[i, j] = i + j
                continue
            if a[i - 1] == b[j - 1]:
                d[i, j] = d[i - 1, j - 1]
            else:
                d[i, j] = 1 + min(d[i - 1, j - 1], d[i - 1, j], d[i, j - 1])


@lw.nest
def with_directions(d, trace, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            if d[i - 1, j] > d[i, j - 1]:
                d[i, j] = d[i - 1, j] + a[i - 1]
                trace[i, j] = 1
            else:
                d[i, j] = d[i, j - 1] + b[j - 1]
                trace[i, j] = 2


@lw.nest
def rounded(d, weights):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = weights[j] * d[i - 1, j] + d[i, j - 1]


@lw.nest
def squared(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = (a[i - 1] - b[j - 1]) ** 2 + min(d[i - 1, j], d[i, j - 1])


@lw.nest
def divided(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = d[i, j - 1] + d[i - 1, j]
            if a[i - 1] > b[j - 1]:
                d[i, j] = d[i, j] // int(a[i - 1])


@lw.nest
def elsewhere(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = d[i, j - 1] + d[i - 1, j]
            if 2 * i < a.shape[0]:
                d[i, j] = d[i, j] + a[2 * i]


@lw.nest
def inside(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            for k in range(3):
                d[i, j] = d[i, j] + d[i, j - 1] * k - d[i - 1, j]


def arguments_of(nest: lw.Nest, dtype: str) -> dict[str, Any]:
    made = {
        "d": np.zeros((9, 8), dtype),
        "trace": np.zeros((9, 8), np.int8),
        "a": np.ones(9, dtype),
        "b": np.ones(8, dtype),
        "weights": np.ones(8),
    }
    return {name: made[name] for name in nest.loops.parameters}


@pytest.mark.parametrize(
    ("nest", "dtype", "reason"),
    [
        (transposing, "int64", None),
        (bordered, "int32", None),
        (with_directions, "int64", None),
        (with_directions, "float64", None),
        (
            rounded,
            "float32",
            "lanes in buffers are computed one by one: weights has elements of another size (float64)",
        ),
        (squared, "float64", "lanes in buffers are computed one by one: there is a power"),
        (divided, "int64", "lanes in buffers are computed one by one: what is computed under a condition may raise"),
        (
            elsewhere,
            "int64",
            "lanes in buffers are computed one by one: a is read under a condition, and may have no such element",
        ),
        (inside, "float64", "rows are not copied into buffers: there are loops inside"),
    ],
)
def test_why_lanes_are_not_computed_in_vectors(nest: lw.Nest, dtype: str, reason: str | None) -> None:
    bound = nest.bind(arguments_of(nest, dtype))
    with vectors_of(64):
        notes = notes_of_lanes(bound, nest.dependences)
    if reason is None:
        assert notes == ()
    else:
        (note,) = notes
        assert f"{nest.loops.line}: {reason}" in note


@pytest.mark.parametrize("nest", [transposing, bordered])
def test_bodies_that_have_vectors_need_vectors_that_are_long_enough(nest: lw.Nest) -> None:
    bound = nest.bind(arguments_of(nest, "int64"))
    with vectors_of(16):
        (note,) = notes_of_lanes(bound, nest.dependences)
    assert "vectors of the processor are too short" in note


def test_independent_loops_have_no_lanes_to_speak_of() -> None:
    @lw.nest
    def doubled(u):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] = 2.0 * u[i, j]

    assert notes_of_lanes(doubled.bind({"u": np.zeros((4, 5))}), doubled.dependences) == ()
