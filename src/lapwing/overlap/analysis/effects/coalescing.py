"""Coalesces accesses to adjacent single elements into one access to all of them.

before:  d(1,1,i,j)  d(2,1,i,j)  …  d(5,5,i,j)
after:   d(1:5,1:5,i,j)

Procedures with unrolled loops access hundreds of elements; each access would be translated for every caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Range, Section, Subscript
from lapwing.overlap.ir.accesses import Access


def in_boxes(accesses: Sequence[Access]) -> Sequence[Access]:
    """The same elements, with accesses merged whose subscripts along an axis are consecutive numbers."""
    rank = max((len(a.section.subscripts) for a in accesses if a.section is not None), default=0)
    for axis in range(rank):
        accesses = _along(accesses, axis)
    return accesses


def _along(accesses: Sequence[Access], axis: int) -> Sequence[Access]:
    rows: dict[Access, dict[int, Access]] = {}  # by what the accesses of a row share
    found: list[Access] = []  # where a row starts, what its accesses share
    for access in accesses:
        number = _number(access, axis)
        if number is None:
            found.append(access)
            continue
        alike = _with_subscript(access, axis, None)
        if alike not in rows:
            rows[alike] = {}
            found.append(alike)
        rows[alike][number] = access
    if all(len(row) == 1 for row in rows.values()):
        return accesses
    return [part for access in found for part in (_runs(rows[access], axis) if access in rows else (access,))]


def _runs(row: dict[int, Access], axis: int) -> list[Access]:
    found: list[Access] = []
    numbers = sorted(row)
    first = numbers[0]
    for number, following in zip(numbers, (*numbers[1:], None), strict=True):
        if following == number + 1:
            continue
        whole = Range(Affine(first), Affine(number))
        found.append(row[first] if first == number else _with_subscript(row[first], axis, whole))
        first = following if following is not None else number
    return found


def _number(access: Access, axis: int) -> int | None:
    subscripts = () if access.section is None else access.section.subscripts
    subscript = subscripts[axis] if axis < len(subscripts) else None
    return subscript.constant if isinstance(subscript, Affine) and not subscript.terms else None


def _with_subscript(access: Access, axis: int, subscript: Subscript) -> Access:
    section = access.section
    assert section is not None
    subscripts = (*section.subscripts[:axis], subscript, *section.subscripts[axis + 1 :])
    return access.within(Section(subscripts, section.bound, section.conditions, section.origins), access.must)
