"""Which rank owns which elements of a distributed array."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.runtime.arrays.shear import Box, Shear, element_box, shear_of
from lapwing.runtime.arrays.storage import Storage
from lapwing.tiling.boxes import difference, volume
from lapwing.tiling.faces import loop_offsets
from lapwing.tiling.partition import Partition, Range, in_direction

_MOST_READ_TWICE = 2  # times the array, that all ranks together read of one that is cut


@dataclass(frozen=True)
class Layout:
    """Which rank owns which elements: cut points along every axis, and every rank's box.

    With a ``shear`` they are of sheared indices, and what lies in a box and in the array is a parallelogram.
    """

    cuts: tuple[tuple[int, ...], ...]
    owned: tuple[Box, ...]
    shear: Shear | None = None

    def part(self, rank: int) -> Storage:
        """What a rank owns."""
        return Storage(self.owned[rank], self.shear)


def rows_layout(shape: tuple[int, ...], ranks: int) -> Layout:
    """Equal numbers of rows on every rank, one more on the first few where they do not divide."""
    rows = tuple(rank * (shape[0] // ranks) + min(rank, shape[0] % ranks) for rank in range(ranks + 1))
    others = tuple((0, n) for n in shape[1:])
    return Layout((rows, *others), tuple((span, *others) for span in itertools.pairwise(rows)))


def layout_of_blocks(starts: Sequence[tuple[int, ...] | None], shapes: Sequence[tuple[int, ...]]) -> Layout:
    """The layout of an array from the first indices and shapes of the ranks' blocks.

    Raises RefusedError where the blocks are not those of a grid that cuts an array in rows, columns and so on.
    """
    if all(start is None for start in starts):
        if len({shape[1:] for shape in shapes}) > 1:
            raise RefusedError(
                f"from_local: {_shapes_text(shapes)}: blocks that lie behind each other have equal rows."
            )
        ends = tuple(itertools.accumulate((shape[0] for shape in shapes), initial=0))
        others = tuple((0, n) for n in shapes[0][1:])
        return Layout((ends, *others), tuple((span, *others) for span in itertools.pairwise(ends)))
    if any(start is None or len(start) != len(shape) for start, shape in zip(starts, shapes, strict=True)):
        raise RefusedError("from_local: give start=, an index for every axis, on all ranks or on none.")
    owned = [
        tuple((low, low + n) for low, n in zip(start or (), shape, strict=True))
        for start, shape in zip(starts, shapes, strict=True)
    ]
    cuts = tuple(tuple(sorted({0, *(end for span in spans for end in span)})) for spans in zip(*owned, strict=True))
    cells = set(itertools.product(*(itertools.pairwise(c) for c in cuts)))
    if cells != set(owned) or len(cells) != len(owned) or any(along[0] < 0 for along in cuts):
        raise RefusedError(f"from_local: blocks {_boxes_text(owned)} are not the parts of a grid, each once.")
    return Layout(cuts, tuple(owned))


def _shapes_text(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(f"{'×'.join(map(str, shape))} on rank {rank}" for rank, shape in enumerate(shapes))


def _boxes_text(boxes: Sequence[Box]) -> str:
    return ", ".join(f"[{', '.join(f'{low}:{high}' for low, high in box)}]" for box in boxes)


def owner_layout(bound: BoundNest, name: str, partition: Partition, ranks: int) -> Layout:
    """Who owns the elements of a written array under a partition: the rank that writes them, edges to the nearest.

    bound: in the partition's coordinates; of a skewed nest it is sheared elements. Of several writes to an element the last
    counts, but for what ``written_elsewhere`` says. ranks: how many there are. Those beyond the partition's own nothing.
    """
    array = bound.array(name)
    depth = bound.nest.sweep_depth
    shear = None if bound.skew is None else shear_of(bound, name)
    limits = _sheared_limits(shear, array.shape)
    offsets = loop_offsets(bound, _last_writer(bound, name))
    positions: list[int | None] = []
    cuts = []
    for loop, (first, end) in zip(bound.loops_of_axes(name), limits, strict=True):
        k = -1 if loop is None else loop - depth
        positions.append(k if k >= 0 else None)
        inner: list[int] = []
        if loop is not None and k >= 0:
            offset = offsets[loop]
            assert offset is not None
            inner = [c + bound.nest.loops[loop].step * offset for c in partition.cuts[k][1:-1]]
        cuts.append((first, *inner, end))
    owned = []
    for rank in range(partition.ranks):
        coordinates = partition.coordinates(rank)
        part = [coordinates[k] if k is not None else 0 for k in positions]
        owned.append(tuple((c[p], c[p + 1]) for c, p in zip(cuts, part, strict=True)))
    owned += [nothing(array)] * (ranks - partition.ranks)
    return Layout(tuple(cuts), tuple(owned), shear)


def _sheared_limits(shear: Shear | None, shape: tuple[int, ...]) -> Box:
    """The box of sheared indices that holds all elements of an array."""
    if shear is None:
        return tuple((0, n) for n in shape)
    ends = [[sorted((0, factor * (n - 1))) for factor, n in zip(row, shape, strict=True)] for row in shear.rows]
    return tuple((sum(low for low, _ in along), sum(high for _, high in along) + 1) for along in ends)


def layout_to_read(needed: Sequence[Box], shape: tuple[int, ...]) -> Layout | None:
    """A layout of an array under which ranks own most of what they read; None where many read the same, as of a table.

    needed: every rank's box.
    """
    everything = tuple((0, n) for n in shape)
    if sum(map(volume, needed)) > _MOST_READ_TWICE * volume(everything):
        return None
    at_work = [box for box in needed if volume(box)]
    starts = [sorted({box[axis][0] for box in at_work}) for axis in range(len(shape))]
    cuts = tuple((0, *lows[1:], n) for lows, n in zip(starts, shape, strict=True))
    owned = [
        tuple(
            (along[lows.index(low)], along[lows.index(low) + 1])
            for (low, _), lows, along in zip(box, starts, cuts, strict=True)
        )
        if volume(box)
        else ((0, 0),) * len(shape)
        for box in needed
    ]
    if sum(map(volume, owned)) != volume(everything) or len(set(filter(volume, owned))) != len(at_work):
        return rows_layout(shape, len(needed))
    return Layout(cuts, tuple(owned))


def written_elsewhere(bound: BoundNest, name: str, partition: Partition, layout: Layout) -> list[list[list[Box]]]:
    """What other ranks than its owner write last, where a nest writes at several offsets: rounds, one after the other, of every
    rank's boxes. Its domain is a box.
    """
    whole = written_boxes(bound, name, bound.domain.box[bound.nest.sweep_depth :])
    boxes = [written_boxes(bound, name, partition.block(rank)) for rank in range(partition.ranks)]
    idle: list[list[Box]] = [[] for _ in layout.owned[partition.ranks :]]
    rounds = []
    for k in range(len(whole) - 1):
        later = whole[k + 1 :]
        rounds.append([difference(own[k], [layout.owned[rank], *later]) for rank, own in enumerate(boxes)] + idle)
    return [one for one in rounds if any(one)]


def nothing(array: ArrayType) -> Box:
    """The box without elements, of a rank that has no part in an array."""
    return ((0, 0),) * len(array.shape)


def partition_of(bound: BoundNest, name: str, layout: Layout) -> Partition | None:
    """The partition of a nest's loops under which the array keeps its layout; None if there is none."""
    if layout.shear is not None:
        return None
    depth = bound.nest.sweep_depth
    target = _last_writer(bound, name)
    cuts: dict[str, tuple[int, ...]] = {}
    for affine, its_loop, axis_cuts in zip(target.affine, bound.nest.axis_loops[name], layout.cuts, strict=True):
        if its_loop is not None:
            assert affine is not None
            cuts[its_loop] = tuple(c - affine.constant for c in axis_cuts[1:-1])
    all_cuts = []
    for loop, coordinates in zip(bound.nest.space_loops, bound.domain.box[depth:], strict=True):
        first, last = in_direction(coordinates, loop.step)
        whole = (first, *cuts.get(loop.name, ()), last)
        if any(a >= b for a, b in itertools.pairwise(whole)):
            return None
        all_cuts.append(whole)
    partition = Partition(tuple(all_cuts), tuple(loop.step for loop in bound.nest.space_loops))
    return partition if owner_layout(bound, name, partition, len(layout.owned)) == layout else None


def written_boxes(bound: BoundNest, name: str, block: Sequence[Range]) -> list[Box]:
    """The elements iterations of a block write, a box per write offset, in the order in which later ones count.

    Of a skewed nest they are sheared elements.
    """
    targets = {loop_offsets(bound, s.target): s.target for s in bound.nest.stores if s.target.array == name}
    # Of several writes to an element the last iteration's counts, and that is the one with the least offset.
    ordered = sorted(targets, key=lambda o: [k for k in o if k is not None], reverse=True)
    return [element_box(bound, targets[offsets], block) for offsets in ordered]


def write_offsets(bound: BoundNest, name: str) -> int:
    """At how many different offsets a nest writes an array."""
    return len({loop_offsets(bound, s.target) for s in bound.nest.stores if s.target.array == name})


def _last_writer(bound: BoundNest, name: str) -> Any:
    targets = [s.target for s in bound.nest.stores if s.target.array == name]
    return min(targets, key=lambda target: [o for o in loop_offsets(bound, target) if o is not None])
