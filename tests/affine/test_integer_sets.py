"""Isl's sets and maps of affine forms, against enumeration."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from lapwing.affine.affine import Affine, Condition
from lapwing.affine.integer_sets import (
    Space,
    alike_along,
    all_points,
    distances,
    first_point,
    flow,
    never,
    related,
    values_of,
    without_axes,
    zero_along,
)

NAMES = ("-3 % a", "2 * b'", "u.shape[0] + 1")  # any text
SIDE = range(-3, 4)
X, Y = Affine.of("i"), Affine.of("j")


def form(generator: random.Random, names: tuple[str, ...] = NAMES) -> Affine:
    return sum((Affine.of(name) * generator.randint(-2, 2) for name in names), Affine(generator.randint(-4, 4)))


def worlds(names: tuple[str, ...] = NAMES) -> Iterator[dict[str, int]]:
    return (dict(zip(names, point, strict=True)) for point in itertools.product(SIDE, repeat=len(names)))


def holds(condition: Condition, values: dict[str, int]) -> bool:
    return any(
        all(f.evaluate(values) == 0 if sign == "=" else f.evaluate(values) >= 0 for f, sign in part)
        for part in condition
    )


def test_sets_and_ranges_by_enumeration() -> None:
    generator = random.Random(2)
    space = Space((), NAMES)
    box: list[Condition] = [
        (((Affine.of(name) - SIDE[0], ">="), (-Affine.of(name) + SIDE[-1], ">=")),) for name in NAMES
    ]
    empty = 0
    for _ in range(40):
        conditions: list[Condition] = [
            tuple(
                tuple((form(generator), generator.choice(("=", ">=", ">="))) for _ in range(generator.randint(1, 2)))
                for _ in range(generator.randint(1, 2))
            )
            for _ in range(2)
        ]
        points = space.where([*box, *conditions])
        expected = [tuple(v.values()) for v in worlds() if all(holds(c, v) for c in conditions)]
        assert sorted(all_points(points)) == expected
        assert never((*box, *conditions)) == (not expected)
        empty += not expected
        if expected:
            asked = form(generator)
            values = [asked.evaluate(dict(zip(NAMES, point, strict=True))) for point in expected]
            assert space.range_of(asked, points) == (min(values), max(values))
            assert first_point(points) == min(expected)
            assert sorted(all_points(without_axes(points, 1))) == sorted({(x,) for x, _, _ in expected})
            assert sorted(all_points(zero_along(points, 2))) == [p for p in expected if p[:2] == (0, 0)]
    assert 0 < empty < 40


def test_parameters_and_their_values() -> None:
    n, m = Affine.of("n"), Affine.of("m")
    points = Space(("m", "n"), ("i",)).where_nonnegative([X - m, n - X, n * -1 + 5, m - 5])
    assert values_of(points, ["m"]).is_equal(Space(("m",), ()).where([(((m - 5, "="),),)]))


def test_distances_by_enumeration() -> None:
    """Of iterations that touch one element, for any length of the loops."""
    space = Space(("n",), ("t", "i"))
    points = space.where_nonnegative([Affine.of("t"), X, Affine.of("n") - X])
    ahead, here = space.map(points, [X + 2]), space.map(points, [X])
    pairs = alike_along(ahead.apply_range(here.reverse()), 1)
    assert all_points(distances(pairs)) == [(0, 2)]
    backwards = related(Space((), ("i", "j")).where_nonnegative([X, -X + 3, Y - X, X - Y]), 1)
    assert all_points(distances(backwards)) == [(0,)]


def test_flow_comes_from_the_last_write() -> None:
    """Statement 0 writes i, statement 1 writes i - 2, which 2 reads at i - 2 in the same iteration."""
    space = Space((), ("i",))
    points = space.where_nonnegative([X, -X + 9])
    first, second = (0, space.map(points, [X])), (1, space.map(points, [X - 2]))
    found = flow((2, space.map(points, [X - 2])), [first, second])
    assert [(number, all_points(distances(pairs))) for number, pairs in found] == [(1, [(0,)])]
    # Without it, what statement 0 wrote two iterations ago.
    found = flow((1, space.map(points, [X - 2])), [first])
    assert [(number, all_points(distances(pairs))) for number, pairs in found] == [(0, [(2,)])]
