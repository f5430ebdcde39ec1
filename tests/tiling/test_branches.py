"""Which conditions in loops that run in their own order stay branches, and that results are those of the plain loop."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms

pytestmark = pytest.mark.usefixtures("little_optimised")


@lw.nest
def steepest(dem, near, dist, direction):
    """Eight neighbours: a new steepest one is as likely as not."""
    for i in range(1, dem.shape[0] - 1):
        for j in range(1, dem.shape[1] - 1):
            best = 0.0
            found = -1
            for k in range(8):
                slope = (dem[i, j] - dem[i + near[k], j]) / dist[k]
                if slope > best:
                    best = slope
                    found = k
            direction[i, j] = found


@lw.nest
def longest(x, ends, out):
    """So many that a new one is seldom met; it is kept in a variable and in an element."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            best = -1.0
            for k in range(ends[0]):
                if x[i, k] * j > best:
                    best = x[i, k] * j
            out[i, j] = best


@lw.nest
def kept_in_elements(x, ends, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = -1.0
            for k in range(ends[0]):
                if x[i, k] * j > out[i, j]:
                    out[i, j] = x[i, k] * j


@lw.nest
def limited(x, ends, out):
    """What is tested is data, in a loop that hands on a number, and rows wait for each other."""
    for i in range(1, out.shape[0]):
        level = out[i - 1, 0]
        for k in range(x.shape[1]):
            if x[i, k] > 0.5:
                level = 0.5 * level + x[i, k]
            else:
                level = 0.25 * level
        out[i, 0] = level


@lw.nest
def searched_inside(x, ends, out):
    """The search stands under another condition, which stays with it."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            best = -1.0
            for k in range(ends[0]):
                if x[i, k] != 0.25:
                    best += 0.5
                    if x[i, k] * j > best:
                        best = x[i, k] * j
            out[i, j] = best


@lw.nest
def divided(x, ends, out):
    """What is done under the condition takes long."""
    for i in range(1, out.shape[0]):
        level = out[i - 1, 0]
        for k in range(x.shape[1]):
            if x[i, k] > 0.5:
                level = 1.0 / (2.0 + level * level)
        out[i, 0] = level


@lw.nest
def toppled(x, ends, out):
    """What the next iteration looks at is stored to, or left as it is."""
    for i in range(out.shape[0]):
        for k in range(1, x.shape[1] - 1):
            if x[i, k] > 0.5:
                x[i, k] -= 0.5
                x[i, k + 1] += 0.25


@lw.nest
def stored_anyway(x, ends, out):
    """What the next iteration looks at is stored to in both arms."""
    for i in range(out.shape[0]):
        for k in range(1, x.shape[1]):
            if x[i, k] > 0.5:
                x[i, k] = x[i, k - 1] + 0.5
            else:
                x[i, k] = x[i, k - 1]


@lw.nest
def left_to_this_iteration(x, ends, out):
    """What is stored to, or left as it is, is looked at in the same iteration alone, or in an earlier one."""
    for i in range(out.shape[0]):
        level = 0.0
        for k in range(x.shape[1] - 1):
            level = 0.5 * level + x[i, k + 1]
            if x[i, k] > 0.5:
                x[i, k] = level
        out[i, 0] = level


def arguments(nest: lw.Nest, seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (7, 40)) / 4
    if nest is steepest:
        near, dist = np.array([-1, 0, 1, 1, -1, 0, -1, 1]), rng.choice([1.0, math.sqrt(2)], 8)
        return {"dem": x, "near": near, "dist": dist, "direction": np.zeros(x.shape, np.int8)}
    x[2, 5], x[3, ::7], x[4] = np.nan, -0.0, -np.inf
    return {"x": x, "ends": np.array([33]), "out": np.zeros((7, 6))}


IN_ORDER = (toppled, stored_anyway, left_to_this_iteration)  # as regions


def inner_loop(nest: lw.Nest) -> str:
    """The loop over k in the C of the first form."""
    region = lw.Nest(nest.python)
    region.source = replace(region.source, sequential=nest in IN_ORDER)
    bound = region.bind(arguments(nest))
    source = tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])
    begin = source.index("for (int64_t k")
    return source[begin : source.index("\n}", begin)]


@pytest.mark.parametrize("nest", [steepest, limited, stored_anyway, left_to_this_iteration])
def test_conditions_on_data_and_searches_among_few_are_values(nest: lw.Nest) -> None:
    text = inner_loop(nest)
    assert "if (" not in text
    assert "lw_select_f64" in text


@pytest.mark.parametrize("nest", [longest, kept_in_elements, searched_inside, divided, toppled])
def test_searches_among_many_and_what_takes_long_are_branches(nest: lw.Nest) -> None:
    assert "if (" in inner_loop(nest)


@pytest.mark.parametrize("nest", [steepest, longest, kept_in_elements, limited, searched_inside, divided, *IN_ORDER])
def test_results_are_those_of_the_plain_loop(nest: lw.Nest) -> None:
    for seed in range(3):
        given, expected = arguments(nest, seed), arguments(nest, seed)
        with np.errstate(all="ignore"):
            nest.python(**expected)
            nest(**given)
        for name, values in expected.items():
            assert values.tobytes() == given[name].tobytes(), name
