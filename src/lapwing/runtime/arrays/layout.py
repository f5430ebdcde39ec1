"""Which rank owns which elements of a distributed array."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.runtime.arrays.shear import Box
from lapwing.tiling.faces import loop_offsets
from lapwing.tiling.partition import Partition, in_direction


@dataclass(frozen=True)
class Layout:
    """Which rank owns which elements: cut points along every axis, and every rank's box."""

    cuts: tuple[tuple[int, ...], ...]
    owned: tuple[Box, ...]


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

    ranks: how many there are. Those beyond the partition's own nothing.
    """
    array = bound.array(name)
    depth = bound.nest.sweep_depth
    target = _last_writer(bound, name)
    positions: list[int | None] = []
    cuts = []
    for axis, loop in enumerate(bound.loops_of_axes(name)):
        k = -1 if loop is None else loop - depth
        positions.append(k if k >= 0 else None)
        inner: list[int] = []
        if k >= 0:
            affine = target.affine[axis]
            assert affine is not None
            inner = [c + affine.constant for c in partition.cuts[k][1:-1]]
        cuts.append((0, *inner, array.shape[axis]))
    owned = []
    for rank in range(partition.ranks):
        coordinates = partition.coordinates(rank)
        part = [coordinates[k] if k is not None else 0 for k in positions]
        owned.append(tuple((c[p], c[p + 1]) for c, p in zip(cuts, part, strict=True)))
    owned += [nothing(array)] * (ranks - partition.ranks)
    return Layout(tuple(cuts), tuple(owned))


def nothing(array: ArrayType) -> Box:
    """The box without elements, of a rank that has no part in an array."""
    return ((0, 0),) * len(array.shape)


def partition_of(bound: BoundNest, name: str, layout: Layout) -> Partition | None:
    """The partition of a nest's loops under which the array keeps its layout; None if there is none."""
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


def write_offsets(bound: BoundNest, name: str) -> int:
    """At how many different offsets a nest writes an array."""
    return len({loop_offsets(bound, s.target) for s in bound.nest.stores if s.target.array == name})


def _last_writer(bound: BoundNest, name: str) -> Any:
    targets = [s.target for s in bound.nest.stores if s.target.array == name]
    return min(targets, key=lambda target: [o for o in loop_offsets(bound, target) if o is not None])
