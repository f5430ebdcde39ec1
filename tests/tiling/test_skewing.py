"""Skewing: its factors, the nest in skewed coordinates, loop bounds, blocks of equal work, and sheared memory."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.rows.bounds import tile_bounds
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.loopnest.dependences import Dependence, inside_sweep
from lapwing.loopnest.skew import Skew, find_skew
from lapwing.runtime.arrays.layout import written_boxes
from lapwing.runtime.arrays.shear import Shear, shear_of
from lapwing.runtime.arrays.storage import allocate, needed_box, storage_of
from lapwing.tiling.faces import Faces
from lapwing.tiling.partition import Partition, even_cuts, weighted_cuts
from lapwing.tiling.skewing import skewed_dependences, skewed_nest


@lw.nest
def nine_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1] + u[i + 1, j - 1]


@lw.nest
def heat(u):
    for t in range(1, u.shape[0]):
        for i in range(1, u.shape[1] - 1):
            u[t, i] = 0.25 * (u[t - 1, i - 1] + u[t - 1, i + 1]) + 0.5 * u[t - 1, i]


@lw.nest
def far_up(u):
    for i in range(u.shape[0] - 2, 0, -1):
        for j in range(1, u.shape[1] - 2):
            u[i, j] = 0.5 * u[i + 1, j + 2] + 0.25 * u[i, j - 1]


@lw.nest
def triangle(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(i, u.shape[1] - 1):
            u[i, j] = 0.5 * u[i - 1, j + 1] + 0.25 * u[i, j - 1]


@lw.nest
def chain(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for k in range(1, u.shape[2] - 1):
                u[i, j, k] = u[i - 1, j + 1, k - 1] + u[i, j - 1, k + 1] + u[i, j, k - 1]


@lw.nest
def columns(u):
    for i in range(1, u.shape[1] - 1):
        for j in range(u.shape[0] - 2, 0, -1):
            u[j, i] = 0.5 * u[j - 1, i - 1] + 0.25 * u[j + 1, i]


@lw.nest
def plates(u):
    for t in range(1, u.shape[0]):
        for i in range(1, u.shape[1] - 1):
            for j in range(1, u.shape[2] - 1):
                u[t, i, j] = u[t - 1, i - 1, j] + u[t - 1, i + 1, j] + u[t - 1, i, j - 1] + u[t - 1, i, j + 1]


@lw.nest
def moving(u, n):
    for t in range(2, n):
        for i in range(t, t + 3):
            for j in range(i, i + 5):
                u[i, j] = u[i, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 2]


@lw.nest
def band(u):
    for i in range(u.shape[0] - 2, 0, -1):
        for j in range(max(1, i - 2, 4 - i), min(u.shape[1] - 2, 9 - i, i + 4)):
            u[i, j] = 0.5 * u[i + 1, j + 2] + 0.25 * u[i, j - 1]


@lw.nest
def straight(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + u[i, j - 1]


CASES: dict[str, tuple[lw.Nest, tuple[Any, ...], list[list[int]]]] = {
    "nine_points": (nine_points, (np.ones((7, 9)), 2), [[1, 0, 0], [0, 1, 0], [0, 1, 1]]),
    "heat": (heat, (np.ones((6, 9)),), [[1, 0], [1, 1]]),
    "far_up": (far_up, (np.ones((8, 12)),), [[1, 0], [2, 1]]),
    "triangle": (triangle, (np.ones((8, 10)),), [[1, 0], [1, 1]]),
    "chain": (chain, (np.ones((5, 6, 8)),), [[1, 0, 0], [1, 1, 0], [0, 1, 1]]),
    "columns": (columns, (np.ones((9, 7)),), [[1, 0], [1, 1]]),
    "plates": (plates, (np.ones((5, 7, 6)),), [[1, 0, 0], [1, 1, 0], [1, 0, 1]]),
    "band": (band, (np.ones((8, 12)),), [[1, 0], [2, 1]]),
    "moving": (moving, (np.ones((10, 14)), 7), [[1, 0, 0], [0, 1, 0], [0, 2, 1]]),
}
Names = pytest.mark.parametrize("name", CASES)


def bound_of(name: str) -> tuple[BoundNest, BoundNest]:
    """The nest of a case as it is, and skewed."""
    nest, arguments, _ = CASES[name]
    bound = nest.bind(nest.arguments(*arguments))
    return bound, skewed_nest(bound, find_skew(nest.loops, nest.dependences))


def points_of(bound: BoundNest) -> list[tuple[int, ...]]:
    return list(bound.domain.points(len(bound.nest.loops)))


# -- the matrix ------------------------------------------------------------------------------------------------------


@Names
def test_factors_are_the_least(name: str) -> None:
    nest, _, rows = CASES[name]
    skew = find_skew(nest.loops, nest.dependences)
    assert skew is not None
    assert [list(row) for row in skew.rows] == rows
    product = np.array(skew.rows) @ np.array(skew.inverse)
    assert (product == np.eye(len(rows), dtype=int)).all()


def test_a_legal_nest_is_left_alone() -> None:
    assert find_skew(straight.loops, straight.dependences) is None
    bound = straight.bind(straight.arguments(np.ones((4, 5))))
    assert skewed_nest(bound, None) is bound


def test_the_skewing_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def counted(nest: ir.LoopNest, dependences: Sequence[Dependence]) -> Skew | None:
        found.append(nest)
        return find_skew(nest, dependences)

    monkeypatch.setattr("lapwing.loopnest.skew.find_skew", counted)
    nest = lw.nest(triangle.python)
    for rows in (8, 9):
        arguments = (np.ones((rows, 10)),)
        assert nest.bind(nest.arguments(*arguments)).analysis.skew is nest.skew is not None
        for ranks in (1, 2):
            assert nest.plan(*arguments, ranks=ranks).skew is nest.skew
    assert found == [nest.loops]


def test_no_smaller_factors_will_do() -> None:
    """Random dependences of a nest of three loops, against all factors there are."""
    generator = random.Random(5)
    for _ in range(60):
        vectors = [tuple(generator.randint(-2, 2) for _ in range(3)) for _ in range(generator.randint(1, 4))]
        vectors = [v for v in vectors if v > (0, 0, 0)]
        dependences = [Dependence("flow", v, "u", "u[…]", 1, "u[…]", 1) for v in vectors]
        skew = find_skew(chain.loops, dependences)
        rows = skew.rows if skew else ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        assert all(sum(a * x for a, x in zip(row, v, strict=True)) >= 0 for row in rows for v in vectors)
        for k in (1, 2):
            fitting = (
                sum(factors)
                for factors in itertools.product(range(8), repeat=k)
                if all(v[k] + sum(f * v[m] for m, f in enumerate(factors)) >= 0 for v in vectors)
            )
            assert sum(rows[k][:k]) == min(fitting)


@Names
def test_no_dependence_points_backwards_afterwards(name: str) -> None:
    nest, _, _ = CASES[name]
    skew = find_skew(nest.loops, nest.dependences)
    after = inside_sweep(skewed_dependences(nest.dependences, skew), nest.loops.sweep_depth)
    assert after
    assert all(x >= 0 for d in after for x in d.vector)


# -- the domain ------------------------------------------------------------------------------------------------------


@Names
def test_the_same_points_are_visited(name: str) -> None:
    bound, skewed = bound_of(name)
    assert sorted(tuple(skewed.indices(p).values()) for p in points_of(skewed)) == sorted(
        tuple(bound.indices(p).values()) for p in points_of(bound)
    )


@Names
def test_counts_are_exact(name: str) -> None:
    for bound in bound_of(name):
        points = points_of(bound)
        for axis, (low, high) in enumerate(bound.domain.box):
            found = bound.domain.counts(axis)
            assert found is not None
            counted = Counter(point[axis] for point in points)
            assert found.tolist() == [counted[x] for x in range(low, high)]


@Names
@pytest.mark.parametrize("parts", [2, 3])
def test_parts_have_about_as_many_points(name: str, parts: int) -> None:
    _, bound = bound_of(name)
    for axis in range(bound.nest.sweep_depth, len(bound.nest.loops)):
        counts, step = bound.domain.counts(axis), bound.domain.loops[axis].step
        assert counts is not None
        cuts = even_cuts(bound.domain, axis, parts)
        assert sorted(set(cuts)) == list(cuts)
        low, high = bound.domain.box[axis]
        by_index = dict(zip([step * x for x in range(low, high)], counts.tolist(), strict=True))
        assert (cuts[0], cuts[-1]) == (min(by_index), max(by_index) + 1)
        work = [sum(by_index[x] for x in range(*cut)) for cut in itertools.pairwise(cuts)]
        assert max(work) - sum(work) / parts <= max(by_index.values())


def test_every_part_has_a_row() -> None:
    assert weighted_cuts(0, [0, 0, 0, 10, 0], 4) == (0, 2, 3, 4, 5)
    assert weighted_cuts(5, [1, 1, 1], 3) == (5, 6, 7, 8)
    assert weighted_cuts(0, [9, 1, 1, 1], 2) == (0, 1, 4)
    assert weighted_cuts(0, [1, 1, 1, 9], 2) == (0, 3, 4)
    assert weighted_cuts(0, [0, 0], 2) == (0, 1, 2)
    with pytest.raises(ValueError, match="3 parts of 2 rows"):
        weighted_cuts(0, [1, 1], 3)


# -- bounds of the tile's loops --------------------------------------------------------------------------------------

FUNCTIONS = {"lw_max_i64": max, "lw_min_i64": min, "lw_floordiv_i64": lambda a, b: a // b}


def value(text: str, names: Mapping[str, Any]) -> int:
    """The value of a bound's C text."""
    text = text.replace("->", ".").replace("&&", "and")
    text = re.sub(r"^\((.*) \? (.*) : (.*)\)$", r"((\2) if (\1) else (\3))", text)
    return int(eval(text, {**FUNCTIONS, **names}))


def walked(bound: BoundNest, box: SimpleNamespace, visits: Counter[int]) -> Iterator[tuple[int, ...]]:
    """The points the tile's loops come to; ``visits`` counts the iterations of every loop that lead to none."""
    symbols = {f"s{k}": bound.symbols[name] for k, (name, _) in enumerate(bound.nest.symbols)}
    scalars = {name: f"s{k}" for k, (name, _) in enumerate(bound.nest.symbols)}
    space = [loop.name for loop in bound.nest.space_loops]
    bounds = tile_bounds(bound, {name: name for name in space}, scalars)
    depth = bound.nest.sweep_depth

    def walk(outer: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(outer) == len(bounds):
            yield (*box.lo[:depth], *outer)
            return
        names = {"box": box, **symbols, **dict(zip(space, outer, strict=False))}
        here = bounds[len(outer)]
        for x in range(value(here.low, names), value(here.high, names)):
            inside = list(walk((*outer, x)))
            visits[len(outer)] += not inside
            yield from inside

    return walk(())


def check_walk(bound: BoundNest) -> Counter[int]:
    """The tile's loops come to the right points, in order; counts the iterations of every loop that lead to none."""
    generator = random.Random(3)
    points, depth = points_of(bound), bound.nest.sweep_depth
    empty: Counter[int] = Counter()
    for _ in range(40):
        ranges = []
        for k, (low, high) in enumerate(bound.domain.box):
            a, b = sorted(generator.sample(range(low, high + 1), 2))
            ranges.append((a, b) if k >= depth else (a, a + 1))
        inside = [p for p in points if all(a <= x < b for x, (a, b) in zip(p, ranges, strict=True))]
        box = SimpleNamespace(lo=[low for low, _ in ranges], hi=[high for _, high in ranges])
        assert list(walked(bound, box, empty)) == inside
    return +empty


@Names
def test_loops_walk_the_tile_and_nothing_else(name: str) -> None:
    _, bound = bound_of(name)
    assert not check_walk(bound)


def test_loops_of_a_triangle_and_of_single_points() -> None:
    @lw.nest
    def lower(u):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, i + 1):
                u[i, j] = u[i + 1, j]

    @lw.nest
    def single(u, n):
        for t in range(2, n):
            for i in range(t, t + 1):
                for j in range(i - 1, i):
                    for k in range(1, 2 * i):
                        u[i, j, k] = 0.5 * u[i, j, k - 1]

    assert not check_walk(lower.bind(lower.arguments(np.ones((9, 9)))))
    check_walk(single.bind(single.arguments(np.ones((9, 9, 20)), 8)))


# -- memory ----------------------------------------------------------------------------------------------------------


def boxes(generator: random.Random, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    found = []
    for n in shape:
        low = generator.randint(-2, n)
        found.append((low, low + generator.randint(0, n + 2)))
    return tuple(found)


@Names
def test_pieces_are_the_elements_of_a_sheared_box(name: str) -> None:
    _, bound = bound_of(name)
    (array,) = bound.arrays
    shear, generator = shear_of(bound, "u"), random.Random(2)
    everything = tuple((0, n) for n in array.shape)
    for _ in range(20):
        box = boxes(generator, array.shape)
        every = {e: sheared(shear, e) for e in itertools.product(*(range(n) for n in array.shape))}
        expected = {e: s for e, s in every.items() if all(a <= x < b for x, (a, b) in zip(s, box, strict=True))}
        found = {}
        for plain, moved in shear.pieces(box, everything):
            pairs = list(zip(elements(plain), elements(moved), strict=True))
            assert not found.keys() & {e for e, _ in pairs}
            found.update(pairs)
        assert found == expected
        around = shear.around(box, everything)
        assert all(low <= x < high for e in expected for x, (low, high) in zip(e, around, strict=True))


def elements(box: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(*r) for r in box))


def sheared(shear: Shear, element: Sequence[int]) -> tuple[int, ...]:
    return tuple(sum(a * x for a, x in zip(row, element, strict=True)) for row in shear.rows)


@Names
def test_an_element_lies_where_strides_say(name: str) -> None:
    _, bound = bound_of(name)
    (array,) = bound.arrays
    shear = shear_of(bound, "u")
    box = tuple((min(x), max(x) + 1) for x in zip(*(sheared(shear, e) for e in np.ndindex(array.shape)), strict=True))
    local = allocate(ArrayType("u", "float64", array.shape), box, False, shear)
    for element in np.ndindex(array.shape):
        moved = sheared(shear, element)
        index = tuple(x - low for x, (low, _) in zip(moved, box, strict=True))
        offset = sum(x * s for x, s in zip(element, local.strides, strict=True))
        inside = sum(x * s for x, s in zip(index, local.values.strides, strict=True))
        assert local.origin + 8 * offset == local.values.ctypes.data + inside


@Names
def test_ranks_write_every_element_once(name: str) -> None:
    """Regions of different ranks do not meet, and hold all that is written."""
    _, bound = bound_of(name)
    (array,) = bound.arrays
    everything = tuple((0, n) for n in array.shape)
    depth = bound.nest.sweep_depth
    cuts = tuple(even_cuts(bound.domain, depth + k, 2) for k in range(len(bound.nest.space_loops)))
    partition = Partition(cuts, tuple(loop.step for loop in bound.nest.space_loops))
    found: Counter[tuple[int, ...]] = Counter()
    for rank in range(partition.ranks):
        block = partition.block(rank)
        kept = needed_box(bound, "u", block)
        (box,) = written_boxes(bound, "u", block)
        for plain, _ in shear_of(bound, "u").pieces(box, everything):
            found.update(elements(plain))
            assert all(a <= low and high <= b for (low, high), (a, b) in zip(plain, kept, strict=True))
    assert max(found.values()) == 1
    (store,) = bound.nest.stores
    for point in points_of(bound):
        values = {**bound.symbols, **bound.indices(point)}
        assert tuple(a.evaluate(values) for a in store.target.affine if a is not None) in found


@pytest.mark.parametrize("grid", [(1, 2), (2, 1), (2, 2), (1, 3)])
def test_what_messages_carry_has_its_place(grid: tuple[int, int]) -> None:
    """A message holds the box around all that is touched: more than that, and it must not land on other elements."""
    arguments = nine_points.arguments(np.ones((20, 30)), 2)
    bound = skewed_nest(nine_points.bind(arguments), find_skew(nine_points.loops, nine_points.dependences))
    cuts = tuple(even_cuts(bound.domain, 1 + k, parts) for k, parts in enumerate(grid))
    partition = Partition(cuts, (1, 1))
    faces, points, carried = Faces(bound, partition, 0, 4), set(points_of(bound)), 0
    for rank in range(partition.ranks):
        store, kept = (of(bound, "u", partition.block(rank)) for of in (storage_of, needed_box))
        for channel in faces.incoming(rank):
            for part in (part for message in channel.messages for part in message.parts):
                for point in elements(((0, 1), *part.box)):
                    element = tuple(bound.indices(point).values())[1:]
                    if point in points:
                        carried += 1
                        assert all(low <= x < high for x, (low, high) in zip(element, kept, strict=True))
                        moved = element if store.shear is None else sheared(store.shear, element)
                        assert all(low <= x < high for x, (low, high) in zip(moved, store.box, strict=True))
    assert carried


def test_a_rank_keeps_what_takes_less_memory() -> None:
    skew = find_skew(heat.loops, heat.dependences)
    tall = skewed_nest(heat.bind(heat.arguments(np.ones((300, 400)))), skew)
    kept = storage_of(tall, "u", ((1, 300), (100, 200)))
    assert kept.shear is not None
    assert kept.box == ((0, 300), (98, 200))
    assert storage_of(tall, "u", ((1, 100), (2, 698))).shear is None
    # The last axis of an array has to stay contiguous, and here it is the one that others are moved with.
    both = columns.bind(columns.arguments(np.ones((400, 300))))
    turned = skewed_nest(both, find_skew(columns.loops, columns.dependences))
    assert storage_of(turned, "u", ((1, 299), (-50, 0))).shear is None


# -- what a plan says ------------------------------------------------------------------------------------------------


def test_plan_says_what_is_skewed_and_why() -> None:
    plan = nine_points.plan(np.ones((20, 30)), 2, ranks=2)
    assert plan.to_json()["skew"] == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert "  skewed       j + i: the flow dependence [0, 1, -1] points backwards along j" in str(plan).splitlines()
    both = [
        line.split(":")[0] for line in str(plates.plan(np.ones((5, 7, 6)), ranks=2)).splitlines() if "skewed" in line
    ]
    assert both == ["  skewed       i + t", "  skewed       j + t"]
    legal = straight.plan(np.ones((4, 5)), ranks=2)
    assert legal.to_json()["skew"] is None
    assert "skewed" not in str(legal)


def test_nothing_to_do_is_nothing_to_skew() -> None:
    u = np.ones((2, 9))
    nine_points(u, 3)
    assert (u == 1).all()
    assert nine_points.plan(u, 3, ranks=3).steps == 0
