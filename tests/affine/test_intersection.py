"""Sections of arrays: rows of flat arrays, elements that arrays name, and whether two of them may intersect."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from lapwing.affine.affine import Affine
from lapwing.affine.intersection import may_intersect
from lapwing.affine.sections import Lookup, Product, Range, Section

# ---- flat arrays ------------------------------------------------------------------------------------------------------

ROWS, COLUMNS = Affine.of("m"), Affine.of("n")
ONE = Affine(1)


def between(name: str, low: Affine, high: Affine) -> tuple[tuple[tuple[tuple[Affine, str], ...], ...], ...]:
    own = Affine.of(name)
    return (((own - low, ">="),),), (((high - own, ">="),),)


def element(row: Affine, place: Affine, length: Affine, *ranges: tuple[str, Affine, Affine]) -> Section:
    """The elements row · length + place, while the variables run over their ranges."""
    subscript = Affine.of("p") + place
    conditions = tuple(condition for r in ranges for condition in between(*r))
    bound = ("p", *(name for name, _, _ in ranges))
    return Section((subscript,), bound, conditions, (Product("p", (Affine.of("r"), length)),)).substitute({"r": row})


def run(start_row: Affine, place: Affine, length: Affine, count: Affine) -> Section:
    """``count`` elements from there on."""
    start = Affine.of("q") + place
    section = Section((Range(start, start + count - 1),), ("q",), (), (Product("q", (Affine.of("r"), length)),))
    return section.substitute({"r": start_row})


def test_rows_are_apart() -> None:
    i, j, length = Affine.of("i"), Affine.of("j"), COLUMNS + 2
    inner = (("i", Affine(2), ROWS - 1), ("j", ONE, COLUMNS))
    for halo in (run(Affine(0), ONE, length, COLUMNS), run(ROWS + 1, ONE, length, COLUMNS)):
        for row, place in ((i, j), (i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            assert not may_intersect(element(row, place, length, *inner), halo)
    assert may_intersect(
        element(i - 1, j, length, ("i", ONE, ROWS), ("j", ONE, COLUMNS)), run(Affine(0), ONE, length, COLUMNS)
    )


def test_a_place_may_lie_in_another_row() -> None:
    """Where columns run beyond the row, nothing is certain."""
    i, j = Affine.of("i"), Affine.of("j")
    inner = (("i", Affine(2), ROWS - 1), ("j", ONE, COLUMNS + 1))
    assert may_intersect(element(i, j, COLUMNS, *inner), element(ROWS, Affine(0), COLUMNS))


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
        if all(worth(form, values) >= 0 for c in section.conditions for part in c for form, _ in part):
            (subscript,) = section.subscripts
            if isinstance(subscript, Affine):
                found.add(worth(subscript, values))
            else:
                assert isinstance(subscript, Range)
                assert subscript.lower is not None
                assert subscript.upper is not None
                found |= set(range(worth(subscript.lower, values), worth(subscript.upper, values) + 1))
    return found


def worth(form: Affine, values: dict[str, int]) -> int:
    return form.constant + sum(factor * values[name] for name, factor in form.terms)


def random_section(random: Random) -> Section:
    i, j = Affine.of("i"), Affine.of("j")
    length = COLUMNS + random.randint(-1, 2)
    rows = random.choice((Affine(0), ONE, ROWS, ROWS + 1))
    if random.random() < 0.4:
        return run(rows, Affine(random.randint(-1, 2)), length, random.choice((COLUMNS, length, Affine(2), ROWS)))
    row = random.choice((i, i + 1, i - 1, rows))
    place = random.choice((j, j + 1, j - 1, Affine(0), ONE, COLUMNS))
    ranges = (
        ("i", Affine(random.randint(0, 2)), ROWS + random.randint(-1, 1)),
        ("j", Affine(random.randint(0, 1)), COLUMNS + random.randint(-1, 1)),
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
    held = Lookup(end, array, (Affine.of(cell),))
    return Section((Affine.of(end) + more, Affine.of(cell)), (cell, end), (), (held,))


@pytest.mark.parametrize(("one", "other", "meet"), [("ends", "ends", False), ("ends", "begins", True)])
def test_equal_subscripts_are_equal_elements(one: str, other: str, meet: bool) -> None:
    assert may_intersect(beyond(one, 1), beyond(other, 0, "x9003", "x9004")) is meet
    assert may_intersect(beyond(one, 1), beyond(other, 1, "x9003", "x9004"))


def test_what_is_bound_in_both_may_be_worth_another() -> None:
    """A row, and the row before shifted by one: of two turns of one loop."""
    bound = (((Affine.of("x9001"), ">="),),)
    here = Section((Affine.of("v1"), Affine.of("x9001")), ("x9001",), (bound,))
    shifted = Affine.of("x9001") + 1
    there = Section((Affine.of("v2") - 1, shifted), ("x9001",), (bound,))
    later = (((Affine.of("v2") - Affine.of("v1") - 1, ">="),),)
    assert may_intersect(here, there, later)


def test_an_array_that_changed_holds_anything() -> None:
    assert may_intersect(beyond("ends", 1).without_lookups({"ends"}), beyond("ends", 0, "x9003", "x9004"))


def test_terms_that_are_chosen_have_their_values() -> None:
    row = Section((Affine.of("low"),))
    assert may_intersect(row, Section((Affine(3),)), chosen=(("low", 3),))
    assert not may_intersect(row, Section((Affine(3),)), chosen=(("low", 4),))
