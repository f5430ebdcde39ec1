"""Boxes: half-open ranges along every axis or loop, and what they have in common or not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lapwing.tiling.partition import Range

Box = tuple[Range, ...]


@dataclass(frozen=True)
class MovingBox:
    """A box in several sweeps: in each of them its ends lie lower by ``moves`` than in the one before, those of ``first``."""

    first: Box
    moves: Box
    sweeps: int

    def at(self, sweep: int) -> Box:
        return tuple(
            (low - sweep * down, high - sweep * up)
            for (low, high), (down, up) in zip(self.first, self.moves, strict=True)
        )

    @property
    def last(self) -> Box:
        return self.at(self.sweeps - 1)

    @property
    def around(self) -> Box:
        """The smallest box that holds it in all sweeps."""
        return tuple((low, high) for (low, _), (_, high) in zip(self.last, self.first, strict=True))

    def swept(self) -> list[Box]:
        """All that it comes to in some sweep, as boxes that do not meet: in each sweep what the one before did not hold."""
        boxes = [self.at(sweep) for sweep in range(self.sweeps)]
        return [part for k, box in enumerate(boxes) for part in difference(box, boxes[k - 1 : k])]


def intersection(a: Box, b: Box) -> Box | None:
    common = tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))
    return common if all(low < high for low, high in common) else None


def difference(box: Box, others: Iterable[Box]) -> list[Box]:
    """Boxes that do not meet and hold the elements of a box that lie in none of the others."""
    left = [box] if volume(box) else []
    for other in others:
        left = [part for whole in left for part in _without(whole, other)]
    return left


def _without(box: Box, other: Box) -> Iterator[Box]:
    common = intersection(box, other)
    if common is None:
        yield box
        return
    for axis, (whole, cut) in enumerate(zip(box, common, strict=True)):
        for part in ((whole[0], cut[0]), (cut[1], whole[1])):
            if part[0] < part[1]:
                yield (*common[:axis], part, *box[axis + 1 :])


def volume(box: Box) -> int:
    return math.prod(max(0, high - low) for low, high in box)


def hull(boxes: Iterable[Box]) -> Box:
    """The smallest box around boxes, of which there is at least one."""
    return tuple((min(low for low, _ in axis), max(high for _, high in axis)) for axis in zip(*boxes, strict=True))


def without(boxes: Iterable[Box], others: Sequence[Box]) -> list[Box]:
    """The elements of some boxes that lie in none of others, as boxes."""
    return [part for box in boxes for part in difference(box, others)]


def common(boxes: Iterable[Box], others: Sequence[Box]) -> list[Box]:
    """What some boxes have in common with others."""
    return [part for box in boxes for other in others if (part := intersection(box, other)) is not None]


def coalesced(boxes: Iterable[Box]) -> list[Box]:
    """The same elements as few boxes that do not meet."""
    found: list[Box] = []
    for box in boxes:
        if volume(box):
            _add(found, box)
    apart: list[Box] = []
    for box in found:
        apart += difference(box, apart)
    return apart


def _add(found: list[Box], box: Box) -> None:
    """Add a box to others, together with those that are one box with it."""
    while (other := next((one for one in found if _joined(one, box) is not None), None)) is not None:
        found.remove(other)
        joined = _joined(other, box)
        assert joined is not None
        box = joined
    found.append(box)


def _joined(one: Box, other: Box) -> Box | None:
    """Two boxes as one, where that holds nothing else: they differ along one axis at most, or one lies in the other."""
    hull = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(one, other, strict=True))
    if hull in (one, other):
        return hull
    differing = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    touching = len(differing) == 1 and max(r[0] for r in differing[0]) <= min(r[1] for r in differing[0])
    return hull if touching else None
