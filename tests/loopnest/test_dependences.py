"""Dependences against what an enumeration of all iterations of a small nest finds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from loading import bind_for_ranks, load
from random_nests import FARTHEST, Case, cases
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import inside_sweep
from lapwing.loopnest.skew import find_skew
from lapwing.tiling.skewing import skewed_dependences

Vector = tuple[int, ...]


def enumerated(bound: BoundNest, arguments: dict[str, object]) -> set[tuple[str, Vector]]:
    """Kinds and distances inside a sweep: flow from the last write, anti and output to every later write."""
    nest, depth = bound.nest, bound.nest.sweep_depth
    guarded = {name for name in nest.written if len(write_offsets(nest, name)) == 1}
    last: dict[object, Vector] = {}
    touched: dict[object, list[tuple[str, Vector]]] = {}
    found = set()
    for point in bound.domain.points(len(nest.loops)):
        is_done = are_within_bounds(bound, point, arguments)
        for statement in statements(nest):
            for access in ir.statement_reads(statement):
                if access.array in nest.written and (is_done or access.array not in guarded):
                    element = (access.array, index_of(bound, access, point))
                    if element in last and last[element][:depth] == point[:depth]:
                        found.add(("flow", minus(point, last[element])))
                    touched.setdefault(element, []).append(("anti", point))
            if isinstance(statement, ir.Store) and (is_done or statement.target.array not in guarded):
                element = (statement.target.array, index_of(bound, statement.target, point))
                for kind, before in touched.get(element, []):
                    if before[:depth] == point[:depth]:
                        found.add((kind, minus(point, before)))
                last[element] = point
                touched.setdefault(element, []).append(("output", point))
    return {(kind, vector) for kind, vector in found if any(vector)}


def write_offsets(nest: ir.LoopNest, array: str) -> set[object]:
    """Of an array with several of them a store that a guard leaves out counts as one of the old value."""
    return {s.target.affine for s in statements(nest) if isinstance(s, ir.Store) and s.target.array == array}


def statements(nest: ir.LoopNest) -> tuple[ir.Statement, ...]:
    """The loops' own: where the bounds are near affine ones, they are within an ``if``."""
    first = nest.body[0]
    return first.then if isinstance(first, ir.If) else nest.body


def are_within_bounds(bound: BoundNest, point: Vector, arguments: dict[str, object]) -> bool:
    first = bound.nest.body[0]
    if not isinstance(first, ir.If):
        return True
    values = {loop.name: loop.step * x for loop, x in zip(bound.nest.loops, point, strict=True)}
    return bool(eval(first.text[3:-1], {**arguments, **bound.parameters, **values}))


def index_of(bound: BoundNest, access: ir.Access, point: Vector) -> Vector:
    values = {loop.name: loop.step * x for loop, x in zip(bound.nest.loops, point, strict=True)}
    return tuple(a.evaluate({**bound.symbols, **values}) for a in access.affine if a is not None)


def minus(a: Vector, b: Vector) -> Vector:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def is_roomy(bound: BoundNest) -> bool:
    """Whether every distance that offsets allow has room to occur."""
    space = bound.domain.box[bound.nest.sweep_depth :]
    if isinstance(bound.nest.body[0], ir.If):
        return False
    return bound.domain.is_box and all(high - low > 2 * FARTHEST for low, high in space)


def imported(case: Case) -> Iterator[object]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(case.source)
        yield load(path)


def check(data: st.DataObject) -> None:
    case = data.draw(cases(skewed=data.draw(st.booleans(), label="skewed"), expressions=False), label="nest")
    for module in imported(case):
        nest = module.nest  # type: ignore[attr-defined]
    bound = bind_for_ranks(nest, case.arguments())
    assume(bound is not None)
    found = nest.dependences
    inside = {(d.kind, d.vector) for d in inside_sweep(found, nest.loops.sweep_depth)}
    real = enumerated(bound, case.arguments())
    assert real <= inside, f"missed: {real - inside}"
    assert all(vector > (0,) * len(vector) for _, vector in inside), f"backwards in time: {inside}"
    skew = find_skew(nest.loops, found)
    assert case.skewed or skew is None
    assert (skew is not None) == any(x < 0 for _, vector in inside for x in vector)
    after = inside_sweep(skewed_dependences(found, skew), nest.loops.sweep_depth)
    assert all(x >= 0 for d in after for x in d.vector), f"{skew} leaves {after}"
    if is_roomy(bound):
        assert inside <= real, f"these never occur: {inside - real}"


def test_sweeps_of_unknown_number_are_any_distance_apart() -> None:
    @lw.nest
    def nest(u, n):
        for s in range(2):
            for t in range(n):
                for i in range(1, u.shape[0]):
                    u[i] = 0.5 * u[i - 1]

    assert {d.vector for d in inside_sweep(nest.dependences, 2)} == {(0, 0, 1)}


def test_a_window_that_moves_with_the_sweep() -> None:
    @lw.nest
    def nest(u, n):
        for s in range(2):
            for t in range(n + 1, 2 * s + 1):
                for i in range(t + 1, t + 56):
                    u[i] = 0.5 * u[i - 1]

    assert {d.vector for d in inside_sweep(nest.dependences, 2)} == {(0, 0, 1)}


def test_red_points_depend_on_black_ones_of_the_sweep_before() -> None:
    @lw.nest
    def nest(u, sweeps):
        for _ in range(sweeps):
            for color in range(2):
                for i in range(1, u.shape[0] - 1):
                    for j in range(1 + (i + color) % 2, u.shape[1] - 1, 2):
                        u[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]

    assert not inside_sweep(nest.dependences, 2)
    before = {d.vector for d in nest.dependences if d.vector[:2] == (0, 1)}
    assert before >= {(0, 1, 1, 0), (0, 1, -1, 0), (0, 1, 0, 1), (0, 1, 0, -1)}


def test_one_colour_depends_on_nothing_of_its_own_sweep() -> None:
    @lw.nest
    def nest(u, color):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if (i + j) % 2 == 0:
                    u[i, j] = u[i - 1, j] + u[i + 1, j]

    @lw.nest
    def bits(u):
        for i in range(1, u.shape[0] - 3):
            if i & 3 != 2:
                continue
            u[i] = u[i - 1] + u[i + 3]

    assert not nest.dependences
    assert {d.vector for d in bits.dependences} <= {(1,)}


def test_parts_of_distances_that_hold_no_integers_are_none() -> None:
    @lw.nest
    def nest(u, n, rows):
        for i in range(u.shape[1] + 3, 1, -1):
            for j in range(2 + (i + 2) % 4, n - 1, 3):
                for k in range(rows - 10, 6):
                    u[k, i, j] = u[k, i - 1, j] + u[k, i, j - 1] + u[k - 1, i + 1, j + 1]

    assert {(d.kind, d.vector) for d in nest.dependences} == {("flow", (1, -1, 1)), ("anti", (1, 0, 0))}


def test_guards_that_are_not_known_count_as_done() -> None:
    @lw.nest
    def nest(u, v):
        for i in range(1, u.shape[0] - 1):
            if (i + v[i]) % 2 == 0:
                u[i] = u[i - 1] + u[i + 1]

    assert {d.vector for d in nest.dependences} == {(1,)}


def test_dependences_are_those_that_occur() -> None:
    search(check, wanted(15), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_dependences_are_those_that_occur_at_length() -> None:
    search(check, wanted(10000), first_seed())
