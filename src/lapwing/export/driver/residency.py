"""Which ranks have the elements of an array as they are now, between the calls of an exported program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from lapwing.tiling.boxes import Box, coalesced, common, without

Boxes = tuple[Box, ...]


@dataclass(frozen=True)
class Move:
    """Elements that one rank sends to another."""

    source: int
    target: int
    box: Box


@dataclass(frozen=True)
class Residency:
    """origin: what elements hold that have not been written since the array was made: all ranks know it of all that they keep.
    changed: the others, as boxes. valid: of those, the ones that each rank has as they are now."""

    origin: Any
    changed: Boxes
    valid: tuple[Boxes, ...]

    @staticmethod
    def new(origin: Any, ranks: int) -> Residency:
        return Residency(origin, (), ((),) * ranks)

    def moves(self, needed: Sequence[Boxes]) -> tuple[Move, ...]:
        """What must be sent so that every rank has the elements that it needs. needed: boxes, a rank each."""
        return _moves(self.changed, self.valid, tuple(needed))

    def moved(self, moves: Sequence[Move]) -> Residency:
        """After these."""
        if not moves:
            return self
        valid = [
            coalesced([*own, *(move.box for move in moves if move.target == rank)])
            for rank, own in enumerate(self.valid)
        ]
        return replace(self, valid=tuple(_ordered(boxes) for boxes in valid))

    def written(self, rounds: Sequence[Sequence[Boxes]]) -> Residency:
        """After ranks have written elements. rounds: one after the other, of every rank's boxes; the last write counts."""
        changed, valid = self.changed, self.valid
        for boxes in rounds:
            changed, valid = _written(changed, valid, tuple(map(tuple, boxes)))
        return replace(self, changed=changed, valid=valid)

    def holder(self, box: Box) -> int:
        """A rank that has elements of a box as they are now: that of the first of them, by number."""
        for rank, boxes in enumerate(self.valid):
            if common([box], boxes):
                return rank
        return 0

    def owned(self) -> tuple[Boxes, ...]:
        """The changed elements, each on one rank that has it."""
        found: list[Boxes] = []
        left = list(self.changed)
        for boxes in self.valid:
            found.append(_ordered(coalesced(common(left, boxes))))
            left = without(left, boxes)
        assert not left
        return tuple(found)


@lru_cache(maxsize=4096)
def _moves(changed: Boxes, valid: tuple[Boxes, ...], needed: tuple[Boxes, ...]) -> tuple[Move, ...]:
    found: list[Move] = []
    for target, boxes in enumerate(needed):
        missing = without(common(coalesced(boxes), changed), valid[target])
        for source, there in enumerate(valid):
            if not missing:
                break
            found += (Move(source, target, box) for box in coalesced(common(missing, there)))
            missing = without(missing, there)
        assert not missing
    return tuple(found)


@lru_cache(maxsize=4096)
def _written(changed: Boxes, valid: tuple[Boxes, ...], boxes: tuple[Boxes, ...]) -> tuple[Boxes, tuple[Boxes, ...]]:
    everything = [box for own in boxes for box in own]
    after = []
    for rank, (had, own) in enumerate(zip(valid, boxes, strict=True)):
        others = [box for other, theirs in enumerate(boxes) if other != rank for box in theirs]
        after.append(_ordered(coalesced([*without(had, others), *own])))
    return _ordered(coalesced([*changed, *everything])), tuple(after)


def _ordered(boxes: Iterable[Box]) -> Boxes:
    return tuple(sorted(boxes))
