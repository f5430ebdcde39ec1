"""Sections of arrays: rows of flat arrays, elements that arrays name, and whether two of them may intersect."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from lapwing.affine.intersection import may_intersect
from lapwing.affine.sections import Linear, Lookup, Product, Range, Section

# ---- flat arrays ------------------------------------------------------------------------------------------------------

ROWS, COLUMNS = Linear.term("m"), Linear.term("n")
ONE = Linear.number(1)


def number(value: int) -> Linear:
    return Linear.number(value)


def between(name: str, low: Linear, high: Linear) -> tuple[tuple[tuple[tuple[Linear, str], ...], ...], ...]:
    own = Linear.term(name)
    return (((own.plus(low, -1), ">="),),), (((high.plus(own, -1), ">="),),)


def element(row: Linear, place: Linear, length: Linear, *ranges: tuple[str, Linear, Linear]) -> Section:
    """The elements row · length + place, while the variables run over their ranges."""
    subscript = Linear.term("p").plus(place)
    conditions = tuple(condition for r in ranges for condition in between(*r))
    bound = ("p", *(name for name, _, _ in ranges))
    return Section((subscript,), bound, conditions, (Product("p", (Linear.term("r"), length)),)).substitute({"r": row})


def run(start_row: Linear, place: Linear, length: Linear, count: Linear) -> Section:
    """``count`` elements from there on."""
    start = Linear.term("q").plus(place)
    section = Section(
        (Range(start, start.plus(count).plus(ONE, -1)),), ("q",), (), (Product("q", (Linear.term("r"), length)),)
    )
    return section.substitute({"r": start_row})


def test_rows_are_apart() -> None:
    i, j, length = Linear.term("i"), Linear.term("j"), COLUMNS.plus(number(2))
    inner = (("i", number(2), ROWS.plus(ONE, -1)), ("j", ONE, COLUMNS))
    for halo in (run(number(0), ONE, length, COLUMNS), run(ROWS.plus(ONE), ONE, length, COLUMNS)):
        for row, place in ((i, j), (i.plus(ONE, -1), j), (i.plus(ONE), j), (i, j.plus(ONE, -1)), (i, j.plus(ONE))):
            assert not may_intersect(element(row, place, length, *inner), halo)
    assert may_intersect(
        element(i.plus(ONE, -1), j, length, ("i", ONE, ROWS), ("j", ONE, COLUMNS)), run(number(0), ONE, length, COLUMNS)
    )


def test_a_place_may_lie_in_another_row() -> None:
    """Where columns run beyond the row, nothing is certain."""
    i, j = Linear.term("i"), Linear.term("j")
    inner = (("i", number(2), ROWS.plus(ONE, -1)), ("j", ONE, COLUMNS.plus(ONE)))
    assert may_intersect(element(i, j, COLUMNS, *inner), element(ROWS, number(0), COLUMNS))


def elements(section: Section, m: int, n: int) -> set[int]:
    """Those of a section with these values, by trying all that is bound."""
    reach = range(-2, 9)
    names = [name for name in section.bound if all(o.term != name for o in section.origins)]
    found = set()
    for chosen in itertools.product(reach, repeat=len(names)):
        values = {"m": m, "n": n, **dict(zip(names, chosen, strict=True))}
        for origin in section.origins:
            assert isinstance(origin, Product)
            one, other = (worth(factor, values) for factor in origin.factors)
            values[origin.term] = one * other
        if all(worth(linear, values) >= 0 for c in section.conditions for part in c for linear, _ in part):
            (subscript,) = section.subscripts
            if isinstance(subscript, Linear):
                found.add(worth(subscript, values))
            else:
                assert isinstance(subscript, Range)
                assert subscript.lower is not None
                assert subscript.upper is not None
                found |= set(range(worth(subscript.lower, values), worth(subscript.upper, values) + 1))
    return found


def worth(linear: Linear, values: dict[str, int]) -> int:
    return linear.constant + sum(factor * values[name] for name, factor in linear.terms)


def random_section(random: Random) -> Section:
    i, j = Linear.term("i"), Linear.term("j")
    length = COLUMNS.plus(number(random.randint(-1, 2)))
    rows = random.choice((number(0), ONE, ROWS, ROWS.plus(ONE)))
    if random.random() < 0.4:
        return run(rows, number(random.randint(-1, 2)), length, random.choice((COLUMNS, length, number(2), ROWS)))
    row = random.choice((i, i.plus(ONE), i.plus(ONE, -1), rows))
    place = random.choice((j, j.plus(ONE), j.plus(ONE, -1), number(0), ONE, COLUMNS))
    ranges = (
        ("i", number(random.randint(0, 2)), ROWS.plus(number(random.randint(-1, 1)))),
        ("j", number(random.randint(0, 1)), COLUMNS.plus(number(random.randint(-1, 1)))),
    )
    return element(row, place, length, *ranges)


@pytest.mark.parametrize("seed", range(150))
def test_what_does_not_meet_has_no_element_in_common(seed: int) -> None:
    random = Random(seed)
    one, other = random_section(random), random_section(random)
    if not may_intersect(one, other):
        for m, n in itertools.product(range(-1, 5), repeat=2):
            assert elements(one, m, n).isdisjoint(elements(other, m, n)), (m, n)


def test_most_of_it_is_not_empty() -> None:
    """What was found to be apart is worth nothing if there is nothing of it."""
    pairs = [(random_section(r), random_section(r)) for r in map(Random, range(150))]
    apart = [(a, b) for a, b in pairs if not may_intersect(a, b)]
    assert sum(bool(elements(a, 4, 4)) and bool(elements(b, 4, 4)) for a, b in apart) > 10


# ---- what arrays hold ---------------------------------------------------------------------------------------------------


def beyond(array: str, more: int, cell: str = "x9001", end: str = "x9002") -> Section:
    """Elements (end + more, cell), of some cell, where the end is what the array holds for it."""
    held = Lookup(end, array, (Linear.term(cell),))
    return Section((Linear.term(end).plus(Linear.number(more)), Linear.term(cell)), (cell, end), (), (held,))


@pytest.mark.parametrize(("one", "other", "meet"), [("ends", "ends", False), ("ends", "begins", True)])
def test_equal_subscripts_are_equal_elements(one: str, other: str, meet: bool) -> None:
    assert may_intersect(beyond(one, 1), beyond(other, 0, "x9003", "x9004")) is meet
    assert may_intersect(beyond(one, 1), beyond(other, 1, "x9003", "x9004"))


def test_what_is_bound_in_both_may_be_worth_another() -> None:
    """A row, and the row before shifted by one: of two turns of one loop."""
    bound = (((Linear.term("x9001"), ">="),),)
    here = Section((Linear.term("v1"), Linear.term("x9001")), ("x9001",), (bound,))
    shifted = Linear.term("x9001").plus(Linear.number(1))
    there = Section((Linear.term("v2").plus(Linear.number(-1)), shifted), ("x9001",), (bound,))
    later = (((Linear.term("v2").plus(Linear.term("v1"), -1).plus(Linear.number(-1)), ">="),),)
    assert may_intersect(here, there, later)


def test_an_array_that_changed_holds_anything() -> None:
    assert may_intersect(beyond("ends", 1).without_lookups({"ends"}), beyond("ends", 0, "x9003", "x9004"))


def test_terms_that_are_chosen_have_their_values() -> None:
    row = Section((Linear.term("low"),))
    assert may_intersect(row, Section((Linear.number(3),)), chosen=(("low", 3),))
    assert not may_intersect(row, Section((Linear.number(3),)), chosen=(("low", 4),))
