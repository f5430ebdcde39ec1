"""Tilings, shapes and schedules against enumeration and random search."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st
from randomness import first_seed, wanted
from searching import search

from lapwing.errors import RefusedError
from lapwing.theory import linear
from lapwing.theory.shapes import best_rays, best_shape, best_sides, extreme_rays, facet_normals, whole_sides
from lapwing.theory.supernode import Supernode, TileSpace, determinant, dot

Vector = tuple[int, ...]
Ranges = list[tuple[int, int]]


# -- random tilings ----------------------------------------------------------------------------------------------------


def drawn_supernode(data: st.DataObject, integral: bool) -> Supernode:
    """Any H that is not singular: from whole sides, or rational with small denominators."""
    n = data.draw(st.integers(1, 3), label="loops")
    whole = st.integers(-2, 4)
    fractions = st.builds(Fraction, st.integers(-2, 3), st.sampled_from([1, 2, 3]))
    rows = st.lists(st.lists(whole if integral else fractions, min_size=n, max_size=n), min_size=n, max_size=n)
    regular = rows.filter(lambda m: determinant(m) != 0)
    make = Supernode.of_sides if integral else Supernode
    return data.draw(regular.map(make).filter(is_small), label="supernode")


def is_small(supernode: Supernode) -> bool:
    """Whether all points around a tile can be looked at."""
    return all(sum(abs(x) for x in row) <= 9 for row in supernode.P)


def drawn_dependences(data: st.DataObject, supernode: Supernode) -> list[Vector]:
    """Legal ones: HD >= 0."""
    n = supernode.loops
    vectors = st.tuples(*[st.integers(-3, 3)] * n)
    legal = vectors.filter(lambda d: any(d) and all(x >= 0 for x in supernode.shares(d)))
    fallback = tuple(int(6 * sum(row)) for row in supernode.P)  # a multiple of the diagonal is always legal
    return data.draw(st.lists(legal, max_size=3), label="D") or [fallback]


def drawn_box(data: st.DataObject, loops: int) -> Ranges:
    longest = {1: 12, 2: 7, 3: 4}[loops]
    pairs = st.tuples(st.integers(-4, 4), st.integers(1, longest)).map(lambda p: (p[0], p[0] + p[1]))
    return data.draw(st.lists(pairs, min_size=loops, max_size=loops), label="box")


def points(ranges: Ranges) -> Iterator[Vector]:
    return itertools.product(*(range(low, high) for low, high in ranges))


def around(supernode: Supernode, ranges: Ranges) -> Ranges:
    """The box widened so far that it holds every tile that meets it."""
    reach = [math.ceil(sum(abs(x) for x in row)) for row in supernode.P]
    return [(low - r, high + r) for (low, high), r in zip(ranges, reach, strict=True)]


# -- tilings -----------------------------------------------------------------------------------------------------------


def check_every_point_lies_in_one_tile(data: st.DataObject) -> None:
    supernode = drawn_supernode(data, data.draw(st.booleans(), label="integral"))
    ranges = drawn_box(data, supernode.loops)
    space = TileSpace.of_box(supernode, ranges)
    found = [(tile, point) for tile in space.tile_coordinates() for point in space.iterations_of(tile)]
    assert sorted(point for _, point in found) == list(points(ranges))
    for tile, point in found:
        assert supernode.tile_of(point) == tile
        again, place = supernode.transform(point)
        assert again == tile
        assert all(x == dot(row, tile) + y for x, row, y in zip(point, supernode.P, place, strict=True))
        assert all(0 <= dot(row, place) < 1 for row in supernode.H)
    assert all(low <= x < high for tile, _ in found for x, (low, high) in zip(tile, space.bounds, strict=True))


def check_full_and_partial_tiles(data: st.DataObject) -> None:
    supernode = drawn_supernode(data, data.draw(st.booleans(), label="integral"))
    ranges = drawn_box(data, supernode.loops)
    inside = set(points(ranges))
    tiles = {supernode.tile_of(point) for point in inside}
    window = points(around(supernode, ranges))
    partial = {tile for point in window if point not in inside and (tile := supernode.tile_of(point)) in tiles}
    space = TileSpace.of_box(supernode, ranges)
    assert set(space.tile_coordinates()) == tiles
    assert space.partial.count_val().to_python() == len(partial)
    assert space.full.count_val().to_python() == len(tiles - partial)
    if supernode.is_integral:
        assert all(len(space.iterations_of(tile)) == supernode.computation for tile in tiles - partial)


def check_tile_dependences(data: st.DataObject) -> None:
    integral = data.draw(st.booleans(), label="integral")
    supernode = drawn_supernode(data, integral)
    dependences = drawn_dependences(data, supernode)
    if supernode.is_integral:
        window = around(supernode, [(0, 1)] * supernode.loops)
        origins = [point for point in points(window) if not any(supernode.tile_of(point))]
    else:  # denominators divide 6, so that what happens at a point happens again 6 further on
        origins = list(points([(0, 6)] * supernode.loops))
    expected = {
        tuple(b - a for a, b in zip(supernode.tile_of(j), supernode.tile_of(plus(j, d)), strict=True))
        for j in origins
        for d in dependences
    }
    found = supernode.tile_dependences(dependences)
    assert set(found) == {vector for vector in expected if any(vector)}
    if supernode.contains(dependences):
        assert {x for vector in found for x in vector} <= {0, 1}


def plus(a: Vector, b: Vector) -> Vector:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def check_communication_is_counted(data: st.DataObject) -> None:
    """Eq. 1 and eq. 2 count boundaries crossed, exactly where P is integral."""
    supernode = drawn_supernode(data, integral=True)
    dependences = drawn_dependences(data, supernode)
    mapping = data.draw(st.none() | st.integers(0, supernode.loops - 1), label="mapping")
    window = around(supernode, [(0, 1)] * supernode.loops)
    tile = [point for point in points(window) if not any(supernode.tile_of(point))]
    crossed = [supernode.tile_of(plus(point, d)) for point in tile for d in dependences]
    assert len(tile) == supernode.computation
    counted = sum(x for there in crossed for i, x in enumerate(there) if i != mapping)
    assert supernode.communication(dependences, mapping) == counted


# -- shapes ------------------------------------------------------------------------------------------------------------


def drawn_cone(data: st.DataObject) -> list[Vector]:
    """Dependences that are lexicographically positive and span all dimensions."""
    n = data.draw(st.integers(1, 4), label="loops")
    positive = st.tuples(*[st.integers(-2, 2)] * n).filter(lambda d: d > (0,) * n)
    several = st.lists(positive, min_size=n, max_size=n + 3)
    spanning = several.filter(lambda D: any(determinant(rows) for rows in itertools.combinations(D, n)))
    return data.draw(spanning, label="D")


def check_rays_and_normals(data: st.DataObject) -> None:
    dependences = drawn_cone(data)
    normals, rays = facet_normals(dependences), extreme_rays(dependences)
    assert all(dot(h, d) >= 0 for h in normals for d in dependences)
    directions = {tuple(x // math.gcd(*d) for x in d) for d in dependences}
    assert set(rays) <= directions
    # A ray is extreme if and only if the others do not make it: Caratheodory, n of them at a time.
    for direction in directions:
        others = [d for d in directions if d != direction]
        assert (direction in rays) == (not is_made_of(direction, others))


def check_normals_of_any_cone(data: st.DataObject) -> None:
    """Every facet holds n - 1 independent vectors, and all others lie on one side of it; cones that hold a line included."""
    n = data.draw(st.integers(1, 4), label="dimensions")
    several = st.lists(st.tuples(*[st.integers(-2, 2)] * n), min_size=n, max_size=n + 3)
    vectors = data.draw(several.filter(lambda D: any(determinant(d) for d in itertools.combinations(D, n))), label="D")
    expected = set()
    for some in itertools.combinations(vectors, n - 1):
        normal = perpendicular(some, n)
        for h in (normal, tuple(-x for x in normal)):
            if any(h) and all(dot(h, d) >= 0 for d in vectors):
                expected.add(h)
    assert set(facet_normals(vectors)) == expected


def perpendicular(vectors: tuple[Vector, ...], n: int) -> Vector:
    """The cross product of n - 1 vectors, without common divisor."""
    minors = [determinant([[x for i, x in enumerate(v) if i != k] for v in vectors]) * (-1) ** k for k in range(n)]
    divisor = math.gcd(*(int(x) for x in minors)) or 1
    return tuple(int(x) // divisor for x in minors)


def is_made_of(vector: Vector, others: list[Vector]) -> bool:
    """Whether the vector is a sum of non-negative multiples of the others, which are in one half-space."""
    for size in range(1, len(vector) + 1):
        for some in itertools.combinations(others, size):
            if (weights := solution(some, vector)) is not None and all(w >= 0 for w in weights):
                return True
    return False


def solution(columns: tuple[Vector, ...], vector: Vector) -> list[Fraction] | None:
    """Weights of independent columns that give the vector, by Cramer's rule on every choice of rows."""
    size = len(columns)
    for rows in itertools.combinations(range(len(vector)), size):
        matrix = [[column[r] for column in columns] for r in rows]
        if (whole := determinant(matrix)) == 0:
            continue
        weights = []
        for k in range(size):
            replaced = [
                [vector[r] if c == k else x for c, x in enumerate(row)] for r, row in zip(rows, matrix, strict=True)
            ]
            weights.append(determinant(replaced) / whole)
        made = [dot(weights, [column[r] for column in columns]) for r in range(len(vector))]
        return weights if made == list(vector) else None
    return None


def check_shapes_are_not_beaten(data: st.DataObject) -> None:
    """No random legal H, improved step by step, sends less than the closed form."""
    dependences = drawn_cone(data)
    n = len(dependences[0])
    volume = 1e6**n  # large enough for every side to be longer than one
    best = best_shape(volume, dependences, best_rays(dependences))
    generator = random.Random(data.draw(st.integers(0, 1000), label="seed"))
    total = [sum(x) for x in zip(*dependences, strict=True)]
    assert sent_by([[float(x) for x in row] for row in best.supernode.H], total, volume) == pytest.approx(
        best.communication
    )
    normals = facet_normals(dependences)
    within = [[combined(normals, [generator.random() for _ in normals]) for _ in range(n)] for _ in range(5)]
    corners = [[[float(x) for x in h] for h in generator.sample(normals, n)] for _ in range(5)]
    H = min(within + corners, key=lambda rows: sent_by(rows, total, volume))
    least = sent_by(H, total, volume)
    for trial in range(150):
        width = 2.0 ** -(trial // 15)
        tried = [[x + generator.gauss(0, width) for x in row] for row in H]
        legal = all(dot_float(row, d) >= 0 for row in tried for d in dependences)
        if legal and (sent := sent_by(tried, total, volume)) < least:
            H, least = tried, sent
    assert best.communication <= least * (1 + 1e-9)


def sent_by(H: list[list[float]], total: list[int], volume: float) -> float:
    """V_comm by eq. 1 of the tile with this H, its rows scaled (as is best) to equal sums and the volume."""
    n = len(H)
    magnitude = abs(np.linalg.det(np.array(H)))
    sums = math.prod(dot_float(row, total) for row in H)
    return math.inf if magnitude == 0 else float(n * (sums / magnitude * volume ** (n - 1)) ** (1 / n))


def combined(vectors: Sequence[Vector], weights: list[float]) -> list[float]:
    """Inside the cone of the vectors."""
    return [sum(w * x for w, x in zip(weights, component, strict=True)) for component in zip(*vectors, strict=True)]


def dot_float(a: list[float], b: Vector | list[int]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def check_shapes_with_a_given_row_are_not_beaten(data: st.DataObject) -> None:
    """Eq. 2: with the row across the mapping dimension given, no random choice of the others sends less."""
    dependences = drawn_cone(data)
    n = len(dependences[0])
    normals = facet_normals(dependences)
    given = tuple(
        sum(x) for x in zip(*data.draw(st.lists(st.sampled_from(normals), min_size=1, max_size=2)), strict=True)
    )
    total = [sum(x) for x in zip(*dependences, strict=True)]
    chosen = Supernode.of_sides(list(zip(*best_rays(dependences, given), strict=True)))
    assert np.linalg.matrix_rank([[float(x) for x in chosen.H[-1]], given]) == 1
    generator = random.Random(data.draw(st.integers(0, 1000), label="seed"))

    def value(rows: list[list[float]]) -> float:
        """What V_comm grows with: the product of the rows' sums over the determinant."""
        return math.prod(dot_float(row, total) for row in rows) / abs(np.linalg.det(np.array([*rows, given])))

    best = value([[float(x) for x in row] for row in chosen.H[:-1]])
    for _ in range(30):
        rows = [combined(normals, [generator.random() ** 4 for _ in normals]) for _ in range(n - 1)]
        assert best <= value(rows) * (1 + 1e-9)


def check_sides_within_bounds_are_not_beaten(data: st.DataObject) -> None:
    """Trading length between any two sides never pays: the problem is convex, so that is enough."""
    n = data.draw(st.integers(1, 4), label="sides")
    lower = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n), label="lower")
    more = st.integers(0, 50) | st.just(math.inf)
    upper = [low + data.draw(more, label="more") for low in lower]
    costs = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n), label="costs")
    least, most = math.log(math.prod(lower)), min(math.log(math.prod(upper)), 20)
    volume = math.exp(least + data.draw(st.floats(0, 1), label="share") * (most - least))
    sides = best_sides(volume, costs, lower, upper)
    assert math.prod(sides) == pytest.approx(volume)
    assert all(low <= side <= high for low, side, high in zip(lower, sides, upper, strict=True))
    for i, j in itertools.permutations(range(n), 2):
        for factor in (1.001, 1.1):
            longer, shorter = sides[i] * factor, sides[j] / factor
            if longer <= upper[i] and shorter >= lower[j]:
                before = costs[i] / sides[i] + costs[j] / sides[j]
                assert before <= costs[i] / longer + costs[j] / shorter + 1e-9 * before


def check_whole_sides(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 3), label="sides")
    lower = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n), label="lower")
    upper = [low + data.draw(st.integers(0, 9), label="more") for low in lower]
    costs = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n), label="costs")
    volume = data.draw(st.integers(math.prod(lower), math.prod(upper) + 5), label="volume")
    sides = whole_sides(volume, costs, lower, upper)
    every = itertools.product(*(range(low, high + 1) for low, high in zip(lower, upper, strict=True)))
    least = min(price(costs, tried) for tried in every if math.prod(tried) <= volume)
    assert math.prod(sides) <= volume
    assert all(low <= side <= high for low, side, high in zip(lower, sides, upper, strict=True))
    assert price(costs, sides) == least


def price(costs: list[int], sides: tuple[int, ...]) -> Fraction:
    return sum((Fraction(cost, side) for cost, side in zip(costs, sides, strict=True)), Fraction(0))


# -- schedules ---------------------------------------------------------------------------------------------------------


def drawn_tile_space(data: st.DataObject) -> tuple[Ranges, list[Vector], int]:
    """Bounds, dependences between tiles (0 and 1, as for large tiles) and a mapping dimension."""
    n = data.draw(st.integers(1, 3), label="dimensions")
    ranges = drawn_box(data, n)
    near = st.tuples(*[st.integers(0, 1)] * n).filter(any)
    return ranges, data.draw(st.lists(near, max_size=4), label="D^S"), data.draw(st.integers(0, n - 1), label="mapping")


def advances(schedule: linear.LinearSchedule, ranges: Ranges, dependence: Vector) -> list[int]:
    """Steps from each tile to the one that depends on it."""
    tiles = set(points(ranges))
    return [schedule.step(there) - schedule.step(tile) for tile in tiles if (there := plus(tile, dependence)) in tiles]


def check_schedules_respect_dependences(data: st.DataObject) -> None:
    ranges, dependences, mapping = drawn_tile_space(data)
    n = len(ranges)
    along = tuple(int(k == mapping) for k in range(n))
    blocking = linear.linear_schedule(linear.blocking_vector(n), ranges, dependences, mapping)
    overlapped = linear.linear_schedule(linear.overlapped_vector(n, mapping), ranges, dependences, mapping)
    linear.check_blocking(blocking, dependences, mapping)
    linear.check_overlapped(overlapped, dependences, mapping)
    for dependence in [*dependences, along]:
        crosses = any(x for k, x in enumerate(dependence) if k != mapping)
        assert min(advances(blocking, ranges, dependence), default=1) >= 1
        assert min(advances(overlapped, ranges, dependence), default=2) >= (2 if crosses else 1)
    for schedule in (blocking, overlapped):
        steps = {schedule.step(tile) for tile in points(ranges)}
        assert min(steps) == 0
        assert max(steps) + 1 == schedule.steps(ranges)


def check_bad_schedules_are_refused(data: st.DataObject) -> None:
    ranges, _, mapping = drawn_tile_space(data)
    n = len(ranges)
    anyhow = st.tuples(*[st.integers(-2, 3)] * n)
    vector = data.draw(anyhow, label="Pi")
    dependences = data.draw(st.lists(anyhow.filter(any), max_size=3), label="D^S")
    mapped = data.draw(st.none() | st.just(mapping), label="mapped")
    try:
        schedule = linear.linear_schedule(vector, ranges, dependences, mapped)
        linear.check_blocking(schedule, dependences, mapped)
        if mapped is not None:
            linear.check_overlapped(schedule, dependences, mapped)
    except RefusedError:
        return
    for dependence in dependences:
        crosses = mapped is not None and any(x for k, x in enumerate(dependence) if k != mapped)
        assert min(advances(schedule, ranges, dependence), default=2) >= (2 if crosses else 1)


EXAMPLES: dict[Callable[[st.DataObject], None], int] = {
    check_every_point_lies_in_one_tile: 60,
    check_full_and_partial_tiles: 60,
    check_tile_dependences: 100,
    check_communication_is_counted: 100,
    check_rays_and_normals: 100,
    check_normals_of_any_cone: 150,
    check_shapes_are_not_beaten: 60,
    check_shapes_with_a_given_row_are_not_beaten: 60,
    check_sides_within_bounds_are_not_beaten: 200,
    check_whole_sides: 150,
    check_schedules_respect_dependences: 100,
    check_bad_schedules_are_refused: 150,
}
named = pytest.mark.parametrize("check", EXAMPLES, ids=lambda check: check.__name__.removeprefix("check_"))


@named
def test_small_examples(check: Callable[[st.DataObject], None]) -> None:
    search(check, wanted(EXAMPLES[check] // 6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
@named
def test_small_examples_at_length(check: Callable[[st.DataObject], None]) -> None:
    search(check, wanted(50 * EXAMPLES[check]), first_seed())
