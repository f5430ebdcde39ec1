"""How long points wait for one another, against a simulation of a core that has everything but operands at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lapwing as lw
from lapwing.affine.affine import Affine
from lapwing.loopnest.binding import typed as t
from lapwing.roofline.recurrences import recurrence

CYCLES = {"+": 4, "*": 3, "/": 14}


def cycles(node: t.Typed) -> int:
    return CYCLES[node.operator] if isinstance(node, t.Operation) else 0


def element(array: int, behind: int = 0, step: int = 1) -> t.Load:
    return t.Load("float64", f"a{array}", (t.AffineSubscript(Affine.of("j") + -behind * step),))


def body(*stores: tuple[t.Load, t.Typed]) -> t.TypedBody:
    return t.TypedBody(tuple(t.TypedStore(1, "", target, value) for target, value in stores), (), ())


def operation(operator: str, *operands: t.Typed) -> t.Operation:
    return t.Operation("float64", operator, operands)


# What a statement computes its value from: operators in Polish notation over elements of arrays, so many points ago.
LEAVES = st.tuples(st.integers(0, 3), st.integers(1, 3))
TREES = st.recursive(LEAVES, lambda trees: st.tuples(st.sampled_from(sorted(CYCLES)), trees, trees), max_leaves=5)


def made(tree: tuple[object, ...], step: int) -> t.Typed:
    if isinstance(tree[0], int):
        return element(tree[0], int(str(tree[1])), step)
    return operation(str(tree[0]), *(made(part, step) for part in tree[1:] if isinstance(part, tuple)))


def simulated(typed: t.TypedBody, step: int, points: int) -> float:
    """Cycles a point in the long run, where every operation begins when its operands are there."""
    done: dict[tuple[str, int], int] = {}
    stored = {s.target.array for s in typed.statements if isinstance(s, t.TypedStore)}

    def ready(node: t.Typed, at: int) -> int:
        if isinstance(node, t.Load):
            (subscript,) = node.subscripts
            assert isinstance(subscript, t.AffineSubscript)
            return done.get((node.array, at + step * subscript.affine.constant), 0) if node.array in stored else 0
        return cycles(node) + max(ready(child, at) for child in t.children(node))

    for at in range(points):
        for s in typed.statements:
            assert isinstance(s, t.TypedStore)
            done[s.target.array, at] = ready(s.value, at)
    return max(done.values()) / points


@given(st.lists(TREES, min_size=1, max_size=4), st.sampled_from([1, -1]))
@settings(deadline=None)
def test_points_wait_as_long_as_in_a_simulation(trees: list[tuple[object, ...]], step: int) -> None:
    """But for the first points, before the longest cycle decides, and for what comes after the last turn of it."""
    typed = body(*((element(k), made(tree, step)) for k, tree in enumerate(trees)))
    found, points = recurrence(typed, "j", step, cycles), 400
    all_operations = sum(cycles(node) for s in typed.simple for node in t.walk(s.value))
    assert simulated(typed, step, points) == pytest.approx(found, abs=(all_operations + 12 * found) / points)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (operation("+", element(0, 1), element(1)), 4),
        (operation("*", operation("+", element(0, 1), element(1)), element(1)), 7),
        (operation("+", element(0, 2), element(1)), 2),
        (operation("+", element(0, 3), operation("/", element(0, 1), element(1))), 18),
        (operation("+", element(1, 1), element(1)), 0),
        (operation("+", element(0, -1), element(1)), 0),
    ],
)
def test_a_point_waits_for_what_is_behind_it(value: t.Typed, expected: float) -> None:
    assert recurrence(body((element(0), value)), "j", 1, cycles) == expected


def test_a_path_that_leads_nowhere_is_no_recurrence() -> None:
    """Nobody waits for the second array, however long it takes."""
    long = operation("/", operation("/", element(0, 1), element(2)), element(2))
    found = recurrence(
        body((element(0), operation("+", element(0, 1), element(2))), (element(1), long)), "j", 1, cycles
    )
    assert found == 4


@lw.nest
def two_gaps(e, h):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            x = h[i, j - 1] * 0.5
            e[i, j] = e[i, j - 1] + x
            h[i, j] = e[i, j] * h[i - 1, j]


@lw.nest
def under_a_condition(u, v):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            if v[i, j] > 0.5:
                u[i, j] = u[i, j - 1] * 0.5


def test_recurrences_of_nests() -> None:
    values: Mapping[str, np.ndarray] = {"e": np.ones((5, 6)), "h": np.ones((5, 6))}
    typed = two_gaps.bind(values).body
    # From h by x to e, and by e to h: a product, a sum and a product.
    assert recurrence(typed, "j", 1, cycles) == 3 + 4 + 3
    assert recurrence(typed, "i", 1, cycles) == 3
    assert recurrence(typed, "j", -1, cycles) == 0
    conditional = under_a_condition.bind({"u": np.ones((5, 6)), "v": np.ones((5, 6))}).body
    assert recurrence(conditional, "j", 1, cycles) == 0
