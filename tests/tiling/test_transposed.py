"""Which nests take buffers of transposed elements, what these hold, and why others take none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.loopnest.skew import find_skew
from lapwing.planner.inner import choice_by_rule
from lapwing.runtime.binding import native
from lapwing.tiling.skewing import skewed_dependences, skewed_nest
from lapwing.tiling.transposed import COPIED_STEPS, MARGIN, planes_of, reason_against


@lw.nest
def gauss_seidel(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - f[i, j])


@lw.nest
def nine_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j + 1] + u[i, j - 1] + u[i + 1, j - 1] + u[i, j + 1])


@lw.nest
def aligned(h, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(0, h[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else -1), h[i, j - 1] - 1)


@lw.nest
def scored(h, e, f, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 4)
            f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 4)
            h[i, j] = max(0, h[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2), e[i, j], f[i, j])
            best = max(best, h[i, j])
    del h, e
    return best


@lw.nest
def in_sweeps(h, u, sweeps):
    for t in range(sweeps):
        for i in range(1, h.shape[0]):
            for j in range(1, h.shape[1]):
                h[i, j] = 0.5 * h[i - 1, j] + 0.25 * h[i, j - 1] + 0.125 * h[i, j]
                u[i, j] = h[i, j]
    del h


@lw.nest
def in_planes(h, u):
    for k in range(1, h.shape[0]):
        for i in range(1, h.shape[1]):
            for j in range(1, h.shape[2]):
                h[k, i, j] = 0.5 * h[k - 1, i, j] + 0.25 * h[k, i, j - 1]
                u[k, i, j] = u[k, i - 1, j] + 0.25 * u[k, i, j - 1] + h[k, i, j]
    del h, u


@lw.nest
def over_relaxed(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    before = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                    u[i, j, k] = f[i, j, k] + 0.1 * (before + u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1])


@lw.nest
def pyramid(u):
    for i in range(1, u.shape[0]):
        for j in range(i, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = 0.5 * u[i - 1, j, k] + 0.25 * u[i, j - 1, k] + 0.125 * u[i, j, k - 1]


@lw.nest
def with_inner_loops(u, n):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(n):
                u[i, j] = 0.5 * u[i - 1, j] + 0.25 * u[i, j - 1]


@lw.nest
def summed(u):
    total = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = (0.5 * u[i - 1, j] + 0.25 * u[i, j - 1]) / 3
            if u[i, j] > 0:
                total += u[i, j]
    return total


@lw.nest
def stored_twice(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.5 * u[i - 1, j] + 0.25 * u[i, j - 1]
            u[i + 1, j + 1] = 0.5 * u[i, j]


@lw.nest
def of_cells(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j, 0] = 0.5 * u[i - 1, j, 1] + 0.25 * u[i, j - 1, 0]
            u[i, j, 1] = 0.5 * u[i, j - 1, 1]


@lw.nest
def steep(u):
    for i in range(1, 20):
        for j in range(60 - 2 * i, u.shape[1]):
            u[i, j] = 0.5 * u[i - 1, j] + 0.25 * u[i, j - 1]


def bound_of(nest: lw.Nest, arguments: dict[str, Any]) -> Any:
    return skewed_nest(nest.bind(arguments), find_skew(nest.loops, nest.dependences))


U = np.ones((66, 70))


def test_python_and_c_have_the_same_sizes() -> None:
    (header,) = (path for path in native.HEADERS if path.name == "transposed.h")
    stated = dict(re.findall(r"(LW_STEPS|LW_WIDTH|LW_MARGIN) = ([^,]+),", header.read_text(encoding="utf-8")))
    planes = planes_of(bound_of(gauss_seidel, {"u": U, "f": U, "sweeps": 9}), (0, 1), lanes=32)
    assert planes is not None
    assert stated.pop("LW_WIDTH") == f"LW_LANES + 2 * LW_MARGIN + {planes.width - 32 - 2 * MARGIN}"
    assert stated == {"LW_STEPS": str(COPIED_STEPS), "LW_MARGIN": str(MARGIN)}


def test_what_is_copied_once_for_several_sweeps() -> None:
    planes = planes_of(bound_of(gauss_seidel, {"u": U, "f": U, "sweeps": 9}), (0, 1))
    assert planes is not None
    assert (planes.sweeps, planes.delay, planes.shift) == (7, (0, 1), 1)
    assert [(p.array, p.written, p.reads_old, p.steps, p.lanes) for p in planes.planes] == [
        ("u", True, True, (-1, 1), (-1, 1)),
        ("f", False, True, (0, 0), (0, 0)),
    ]


def test_what_is_read_of_dead_arrays() -> None:
    grid, letters = np.zeros((66, 70), np.int32), np.zeros(70, np.int8)
    arguments = {"h": grid, "e": grid, "f": grid, "a": letters, "b": letters}
    planes = planes_of(bound_of(scored, arguments), (0, 1))
    assert planes is not None
    readers = {p.array: None if p.readers is None else set(p.readers) for p in planes.planes}
    assert readers == {"h": {(0, 1), (1, 0), (1, 1)}, "e": {(0, 1)}, "f": None}
    assert not any(p.reads_old for p in planes.planes)
    arguments["f"] = lw.scratch(grid.shape, np.int32)
    planes = planes_of(bound_of(scored, arguments), (0, 1))
    assert planes is not None
    assert {p.array: p.readers for p in planes.planes}["f"] == ((1, 0),)


def test_what_later_sweeps_and_planes_read_is_stored() -> None:
    planes = planes_of(bound_of(in_sweeps, {"h": U, "u": U, "sweeps": 3}), (0, 1))
    assert planes is not None
    assert [p.readers for p in planes.planes] == [None, None]
    blocks = np.ones((4, 66, 70))
    planes = planes_of(bound_of(in_planes, {"h": blocks, "u": blocks}), (0, 1, 2))
    assert planes is not None
    assert {p.array: p.readers for p in planes.planes if p.written} == {"h": None, "u": ((1, 0), (0, 1))}


def test_nests_that_store_little_take_buffers_by_rule() -> None:
    grid, letters = np.zeros((66, 70), np.int32), np.zeros(70, np.int8)
    arguments = {"h": grid, "e": grid, "f": lw.scratch(grid.shape, np.int32), "a": letters, "b": letters}
    bound = bound_of(scored, arguments)
    choice = choice_by_rule(bound, bound.analysis.dependences, is_alone=True)
    assert choice.form.transposed
    assert choice.rule == "nobody reads what it writes but the iterations next to it"
    stored = bound_of(scored, {**arguments, "f": grid})
    for other, alone in ((stored, True), (bound, False)):
        assert not choice_by_rule(other, other.analysis.dependences, is_alone=alone).form.transposed


def test_rows_of_a_skewed_nest_begin_later_and_sweeps_follow_further_behind() -> None:
    planes = planes_of(bound_of(nine_points, {"u": U, "sweeps": 9}), (0, 1))
    assert planes is not None
    assert (planes.delay, planes.shift, planes.sooner) == ((0, 2), 1, 2)
    assert planes.planes[0].steps == (-1, 1)


def test_planes_of_a_third_loop_follow_one_another() -> None:
    u = np.ones((12, 80, 40))
    planes = planes_of(bound_of(over_relaxed, {"u": u, "f": u, "sweeps": 9}), (0, 1, 2), coalesced=True)
    assert planes is not None
    assert [(p.array, p.distances, p.lanes, p.around) for p in planes.planes] == [
        ("u", ((-1, 0), (1, 0)), (-1, 1), (-1, 1)),
        ("f", ((0, 0), (0, 0)), (0, 0), (0, 0)),
    ]
    assert (planes.delay, planes.margins, planes.least_pitch, planes.sweeps) == ((1, 0), (1, 1), 3, 8)
    wide = np.ones((5, 80, 900))
    planes = planes_of(bound_of(over_relaxed, {"u": wide, "f": wide, "sweeps": 9}), (0, 1, 2), coalesced=True)
    assert planes is None, "no room for several planes of long rows"


@pytest.mark.parametrize(
    ("nest", "arguments"), [(gauss_seidel, {"u": U, "f": U, "sweeps": 9}), (pyramid, {"u": np.ones((9, 80, 40))})]
)
def test_why_planes_do_not_follow_one_another(nest: lw.Nest, arguments: dict[str, Any]) -> None:
    bound = bound_of(nest, arguments)
    order = tuple(range(len(bound.nest.space_loops)))
    assert planes_of(bound, order, coalesced=True) is None
    assert reason_against(bound, order, coalesced=True) == "planes are not alike"


def test_elements_that_nobody_asks_for_are_not_copied_in() -> None:
    h, letters = np.zeros((40, 50), np.int32), np.zeros(60, np.int8)
    planes = planes_of(bound_of(aligned, {"h": h, "a": letters, "b": letters}), (0, 1))
    assert planes is not None
    assert [(p.array, p.reads_old) for p in planes.planes] == [("h", False)]
    assert planes.sweeps == 1


@pytest.mark.parametrize(
    ("nest", "arguments", "reason"),
    [
        (with_inner_loops, {"u": U, "n": 3}, "there are loops inside"),
        (summed, {"u": U}, "a reduction is not that of each row"),
        (stored_twice, {"u": U}, "u is stored to at several offsets"),
        (of_cells, {"u": np.ones((9, 8, 2))}, "u is not stored to along rows of j"),
        (steep, {"u": np.ones((30, 90))}, "rows begin or end sooner"),
    ],
)
def test_why_nothing_is_copied(nest: lw.Nest, arguments: dict[str, Any], reason: str) -> None:
    bound = bound_of(nest, arguments)
    assert planes_of(bound, (0, 1)) is None
    assert (reason_against(bound, (0, 1)) or "").startswith(reason)


def test_the_plan_says_why() -> None:
    dependences = skewed_dependences(summed.dependences, None)
    rule = choice_by_rule(summed.bind({"u": U}), dependences).rule
    assert re.search(r"\(rows are not copied into buffers: a reduction is not that of each row by itself, .*\)$", rule)
    bound = gauss_seidel.bind({"u": U, "f": U, "sweeps": 1})
    assert "buffers" not in choice_by_rule(bound, gauss_seidel.dependences).rule
