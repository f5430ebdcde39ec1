"""Accesses of single elements put together: the same elements, fewer accesses."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Range, Section, Subscript
from lapwing.overlap.analysis.effects.coalescing import in_boxes
from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.expressions import Storage, Symbol, Type

ARRAY = Symbol("procedure p::a", "a", Storage.LOCAL, Type("real", 8, "double precision"))
I = Affine.of("i")  # noqa: E741


def access(subscripts: tuple[Subscript, ...] | None, writes: bool = False, must: bool = True) -> Access:
    return Access(ARRAY, None if subscripts is None else Section(subscripts), writes, must, False, frozenset())


def elements(found: Access) -> set[tuple[int | str, ...]]:
    assert found.section is not None
    axes: list[list[int | str]] = []
    for subscript in found.section.subscripts:
        if isinstance(subscript, Range):
            assert subscript.lower is not None
            assert subscript.upper is not None
            axes.append(list(range(subscript.lower.constant, subscript.upper.constant + 1)))
        else:
            assert subscript is not None
            axes.append([str(subscript) if subscript.terms else subscript.constant])
    return set(itertools.product(*axes))


subscript = st.one_of(st.integers(-2, 3).map(Affine), st.just(I), st.just(I + 1))
accesses = st.builds(access, st.tuples(subscript, subscript, subscript), st.booleans(), st.booleans())


@given(st.lists(accesses, max_size=40))
def test_the_same_elements_are_accessed_in_the_same_way(given: list[Access]) -> None:
    given = [*dict.fromkeys(given)]
    found = in_boxes(given)
    for writes, must in itertools.product((False, True), repeat=2):
        before = [elements(a) for a in given if (a.writes, a.must) == (writes, must)]
        after = [elements(a) for a in found if (a.writes, a.must) == (writes, must)]
        assert set().union(*after) == set().union(*before)
        assert sum(map(len, after)) == len(set().union(*after))


def test_a_block_is_one_access() -> None:
    block = [access((Affine(m), Affine(n), I)) for m in range(1, 6) for n in range(1, 6)]
    (found,) = in_boxes(block)
    one_to_five = Range(Affine(1), Affine(5))
    assert found.section == Section((one_to_five, one_to_five, I))
    assert found.must


def test_what_has_no_section_or_no_number_stays() -> None:
    whole, unknown = access(None), access((None, I, Affine(1)))
    assert list(in_boxes([whole, unknown, whole])) == [whole, unknown, whole]
