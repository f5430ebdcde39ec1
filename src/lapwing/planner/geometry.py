"""What one cut and tile height make of a nest: points a step, and what a message between neighbours holds.

Every message of a pipeline is taken to be like the one of a step in its middle: what happens at the rim changes the
time of a run by less than a step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.domain import Domain, limits
from lapwing.tiling.faces import Faces, Part
from lapwing.tiling.partition import Partition

PAGE_BYTES = 4096
# Domains that are no boxes are measured by a lattice of about so many points.
_LATTICE = 1 << 17
_SAMPLED = 16  # ranks along every axis, where there are too many for all

Cells = npt.NDArray[np.int64]  # (cells, 2): where each begins and ends


@dataclass(frozen=True)
class Neighbour:
    """Messages between two places of the process grid that lie ``offset`` apart, in the loops' directions.

    A message made in a step is needed ``lag`` sweeps later, ``shift`` steps later in the sweep, and still so for ``held``
    more steps. ``runs`` is the number of pieces of contiguous memory its elements lie in, ``pages`` about the number of pages.
    """

    offset: tuple[int, ...]
    lag: int
    shift: int
    held: int
    bytes: int
    parts: int
    runs: int
    pages: float


@dataclass(frozen=True)
class Geometry:
    """A nest on a process grid: ``faces`` says how it is cut, ``sweeps`` how often all of it is done.

    Where the mapping loop is cut among ranks as well, a rank hands on its last step's values only, so that its whole block
    counts as one step.
    """

    faces: Faces
    sweeps: int

    @property
    def partition(self) -> Partition:
        return self.faces.partition

    @property
    def grid(self) -> tuple[int, ...]:
        return self.partition.grid

    @property
    def mapping_is_cut(self) -> bool:
        return self.faces.mapping is not None and self.grid[self.faces.mapping] > 1

    @property
    def steps(self) -> int:
        """Steps a sweep, as the pipeline sees them."""
        if self.faces.mapping is None:
            return -(-self.sweeps // self.faces.tile)
        return 1 if self.mapping_is_cut else self.faces.step_count(0)

    @property
    def rounds(self) -> int:
        """How often those steps are done one after the other: all in one round where time is pipelined."""
        return 1 if self.faces.mapping is None else -(-self.sweeps // self.faces.joined)

    @cached_property
    def points(self) -> npt.NDArray[np.float64]:
        """Iterations of every step of every rank, of sweeps that are joined all together; shape (*grid, steps), ranks in the
        loops' directions."""
        domain, edges = self.faces.bound.domain, self._edges()
        if domain.is_box:
            volume = _box_volume(edges)
        else:
            volume = _lattice_volume(domain, self.faces.bound.nest.sweep_depth, [_pairs(cuts) for cuts in edges])
        return self._by_step(volume, self.grid)

    @cached_property
    def busiest(self) -> tuple[npt.NDArray[np.float64], float]:
        """Iterations of every step of the rank with most in it, shape (1, …, 1, steps), and what ranks do in the mean as a
        share of that; of domains that are no boxes by some of the ranks. For grids of so many ranks that ``points`` would not
        fit."""
        sizes, share = self._edges(), 1.0
        ranks = [axis for axis in range(len(sizes)) if axis != self.faces.mapping or self.mapping_is_cut]
        if self.faces.bound.domain.is_box:
            for axis in ranks:
                widths = np.diff(sizes[axis])
                share *= float(widths.mean() / widths.max())
                sizes[axis] = np.array([0, widths.max()])
            volume = _box_volume(sizes)
        else:
            cells = [_some(cuts) if axis in ranks else _pairs(cuts) for axis, cuts in enumerate(sizes)]
            sampled = _lattice_volume(self.faces.bound.domain, self.faces.bound.nest.sweep_depth, cells)
            volume = sampled.max(axis=tuple(ranks), keepdims=True)
            share = float(sampled.mean() / max(volume.mean(), 1e-300))
        return self._by_step(volume, (1,) * len(self.grid)), share

    def _by_step(self, volume: npt.NDArray[np.float64], grid: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Iterations of every cell as those of every step of the ranks: shape (*grid, steps)."""
        if self.faces.mapping is None:
            heights = np.full(self.steps, float(self.faces.tile))
            heights[-1] = self.sweeps - self.faces.tile * (self.steps - 1)
            along_time: npt.NDArray[np.float64] = volume[..., None] * heights
            return along_time
        volume = volume * (self.sweeps / self.rounds)
        if self.mapping_is_cut:
            return volume[..., None]
        return np.moveaxis(volume, self.faces.mapping, -1).reshape((*grid, self.steps))

    def _edges(self) -> list[npt.NDArray[np.int64]]:
        """Per loop, in its direction, where ranks' blocks begin; along a mapping loop that is whole, where steps do."""
        edges = list(self.partition.edges)
        mapping = self.faces.mapping
        if mapping is not None and not self.mapping_is_cut:
            low, high = int(edges[mapping][0]), int(edges[mapping][-1])
            edges[mapping] = np.array([*range(low, high, self.faces.tile), high], np.int64)
        return edges

    @cached_property
    def neighbours(self) -> tuple[Neighbour, ...]:
        """What ranks in the middle of the grid send each other in a step in the middle of a sweep."""
        found = []
        for offset in itertools.product(*((-1, 0, 1) if parts > 1 else (0,) for parts in self.grid)):
            pair = self._pair(offset)
            if any(offset) and pair is not None and (neighbour := self._neighbour(offset, *pair)) is not None:
                found.append(neighbour)
        return tuple(sorted(found, key=lambda n: (n.lag, [-abs(o) for o in n.offset])))

    def _pair(self, offset: Sequence[int]) -> tuple[int, int] | None:
        """Two ranks that lie so far apart, as much in the middle of the grid as there are."""
        source, target = [], []
        for apart, parts, step in zip(offset, self.grid, self.partition.steps, strict=True):
            here = min(max((parts - 1) // 2, -apart), parts - 1 - apart)
            order = (here, here + apart)
            source.append(order[0] if step == 1 else parts - 1 - order[0])
            target.append(order[1] if step == 1 else parts - 1 - order[1])
        return self.partition.rank(source), self.partition.rank(target)

    def _neighbour(self, offset: tuple[int, ...], source: int, target: int) -> Neighbour | None:
        faces = self.faces
        lag = faces.lag(source, target)
        middle = faces.step_count(source) // 2
        if self.mapping_is_cut and faces.mapping is not None and offset[faces.mapping]:
            middle = 0 if offset[faces.mapping] < 0 else faces.step_count(source) - 1
        message = faces.message(source, target, middle)
        if message is None or (lag and self.rounds < 2):
            return None
        whole = self.mapping_is_cut or faces.mapping is None
        shift, held = (0, 0) if whole else (message.needed - message.made, message.last - message.needed)
        count = faces.batch
        if self.mapping_is_cut and faces.mapping is not None and not offset[faces.mapping]:
            count = faces.step_count(source)
        return Neighbour(
            offset,
            lag,
            shift,
            held,
            count * message.bytes,
            count * len(message.parts),
            count * sum(_runs(faces.bound, faces, part) for part in message.parts),
            count * sum(_pages(faces.bound, faces, part) for part in message.parts),
        )


def _runs(bound: BoundNest, faces: Faces, part: Part) -> int:
    """Pieces of contiguous memory: all but the array's last axis are walked."""
    face = faces.faces[part.face]
    depth = bound.nest.sweep_depth
    *_, last = bound.loops_of_axes(face.array)
    local = bound.local_volume(face.array)
    if last is None:
        local //= bound.array(face.array).shape[-1]
    sides = [high - low for low, high in part.box]
    return max(1, local * math.prod(side for k, side in enumerate(sides) if last is None or k != last - depth))


def _pages(bound: BoundNest, faces: Faces, part: Part) -> float:
    """Pages that a part's pieces lie in: one each where rows are longer than a page."""
    array = bound.array(faces.faces[part.face].array)
    row = array.shape[-1] * array.itemsize
    return max(part.bytes, _runs(bound, faces, part) * min(row, PAGE_BYTES)) / PAGE_BYTES


def _pairs(cuts: npt.NDArray[np.int64]) -> Cells:
    """The cells between edges, in order: (cells, 2)."""
    return np.stack([cuts[:-1], cuts[1:]], axis=-1)


def _some(cuts: npt.NDArray[np.int64]) -> Cells:
    """Some of the cells between edges, the first and the last among them."""
    cells = _pairs(cuts)
    return cells[np.unique(np.linspace(0, len(cells) - 1, min(len(cells), _SAMPLED)).round().astype(np.intp))]


def _box_volume(edges: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
    """Points in every cell between edges."""
    volume = np.ones((1,) * len(edges))
    for axis, cuts in enumerate(edges):
        shape = [1] * len(edges)
        shape[axis] = -1
        volume = volume * np.diff(cuts).reshape(shape)
    return volume


def _lattice_volume(domain: Domain, depth: int, cells: Sequence[Cells]) -> npt.NDArray[np.float64]:
    """Points of a domain in every cell (of every axis), by a lattice: close, not exact."""
    names = [loop.name for loop in domain.loops]
    sweep = {name: low for name, (low, _) in zip(names[:depth], domain.box[:depth], strict=True)}
    axes = list(_lattice_axes(cells))
    mesh = dict(zip(names[depth:], np.meshgrid(*(a for a, _, _ in axes), indexing="ij", sparse=True), strict=True))
    values: dict[str, npt.NDArray[np.int64] | int] = {**sweep, **mesh}
    shape = tuple(len(a) for a, _, _ in axes)
    inside = np.ones(shape, bool)
    for loop in domain.loops[depth:]:
        lower, upper = limits(loop, values)
        inside &= (values[loop.name] >= lower) & (values[loop.name] < upper)
    counted = inside.astype(np.float64)
    for axis, (_, weight, starts) in enumerate(axes):
        shape_of = [1] * counted.ndim
        shape_of[axis] = -1
        counted = np.add.reduceat(counted * weight.reshape(shape_of), starts, axis=axis)
    return counted


def _lattice_axes(
    cells: Sequence[Cells],
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.intp]]]:
    """Per axis, positions, how many points each stands for, and where each cell's begin; every cell holds at least one."""
    most = max(4, int(_LATTICE ** (1 / len(cells))))
    for along in cells:
        each = max(1, most // len(along))
        positions: list[int] = []
        weights: list[int] = []
        starts: list[int] = []
        for low, high in along.tolist():
            starts.append(len(positions))
            count = min(each, max(1, high - low))
            ends = [low + (high - low) * k // count for k in range(count + 1)]
            positions += [(a + b) // 2 for a, b in itertools.pairwise(ends)]
            weights += [b - a for a, b in itertools.pairwise(ends)]
        yield np.array(positions, np.int64), np.array(weights, np.float64), np.array(starts, np.intp)
