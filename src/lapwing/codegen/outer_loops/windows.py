"""Elements of one row that several steps of a loop look at, as a window that slides along it: every element is loaded once
(predictive commoning: O'Brien, IBM 1990)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lapwing.loopnest.binding import typed as t

LONGEST = 8  # elements of a row that are kept for later steps, and the one at hand

_Row = tuple[str, tuple[t.AffineSubscript | t.LookupSubscript, ...]]


@dataclass(frozen=True)
class Window:
    """The elements of a step: ``first`` is the one that comes first in the row, ``offsets`` how far from it the others are."""

    first: t.Load
    offsets: dict[t.Load, int] = field(hash=False)

    @property
    def behind(self) -> int:
        """How many elements earlier steps have loaded."""
        return max(self.offsets.values())

    def element(self, offset: int) -> t.Load:
        """The element of the row so far from the first one."""
        *outer, last = self.first.subscripts
        assert isinstance(last, t.AffineSubscript)
        return replace(self.first, subscripts=(*outer, replace(last, affine=last.affine + offset)))


def windows(loads: Iterable[t.Load]) -> tuple[Window, ...]:
    """Of elements in rows along which a loop goes forwards."""
    rows: dict[_Row, list[tuple[int, t.Load]]] = {}
    for load in loads:
        row, start = _place(load)
        rows.setdefault(row, []).append((start, load))
    found: list[Window] = []
    for elements in rows.values():
        own: list[tuple[int, t.Load]] = []
        for start, load in sorted(elements, key=lambda element: element[0]):
            if own and start - own[0][0] >= LONGEST:
                found.append(_window(own))
                own = []
            own.append((start, load))
        found.append(_window(own))
    return tuple(found)


def _place(load: t.Load) -> tuple[_Row, int]:
    """The row of an element, and how far it is along that."""
    *outer, last = load.subscripts
    if not isinstance(last, t.AffineSubscript):
        return (load.array, load.subscripts), 0
    start = last.affine.constant
    return (load.array, (*outer, replace(last, affine=last.affine - start))), start


def _window(elements: Sequence[tuple[int, t.Load]]) -> Window:
    first, load = elements[0]
    return Window(load, {load: start - first for start, load in elements})
