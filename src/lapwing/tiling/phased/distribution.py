"""One distribution for all phases of a program: which loops and axes run along each other, and where ranks cut them.

The rank that owns an element writes it, in every phase (owner computes). So a loop and the axis of an array that a phase
writes with it are cut at the same places, apart from the constant the index adds: *aligned*. Coordinates that all of them
share are indices plus a shift. Axes that no write aligns are aligned by reads, where nothing speaks against it, so that as
little as possible has to be sent.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.loopnest.pieces import Piece
from lapwing.tiling.boxes import Box
from lapwing.tiling.faces import Face, faces_at_places
from lapwing.tiling.partition import Range, coordinates_in, in_direction

_Loop = tuple[int, int]  # of a phase, among its space loops
_Axis = tuple[str, int]  # of an array
_Node = _Loop | _Axis


@dataclass(frozen=True)
class Dimension:
    """Loops and axes that run along each other, at most one of each phase and array; what may be cut among ranks.

    loops: by phase, which space loop and its shift; axes: by array, which axis and its shift: coordinate = index + shift.
    ``span`` holds the coordinates of all iterations. homes: by phase without a loop along it, the coordinate of all it writes;
    None where elements would be written by several ranks if it were cut.
    """

    loops: dict[int, tuple[int, int]]
    axes: dict[str, tuple[int, int]]
    span: Range
    homes: dict[int, int] | None

    @property
    def extent(self) -> int:
        return self.span[1] - self.span[0]


def dimensions(phased: PhasedNest) -> tuple[Dimension, ...]:
    """The dimensions of a program, in the order of its loops; none that writes put out of line."""
    alignment = _Alignment()
    for phase, bound in enumerate(phased.phases):
        for store in bound.nest.stores:
            for loop, axis, offset in _uniform_axes(bound, store.target):
                # Iteration i writes element i + offset, whose coordinate is that of the iteration.
                alignment.join((phase, loop), (store.target.array, axis), offset)
    for phase, bound in enumerate(phased.phases):
        reads = [access for access in bound.accesses if access.array in phased.written]
        nearest = sorted(
            (abs(offset), position, loop, (access.array, axis), offset)
            for position, access in enumerate(reads)
            for loop, axis, offset in _uniform_axes(bound, access)
        )
        for _, _, loop, node, offset in nearest:
            alignment.join_if_free((phase, loop), node, offset)
    faces = [faces_at_places(bound) for bound in phased.phases]
    found = []
    for group in alignment.groups:
        loops = {node[0]: (node[1], shift) for node, shift in group.shifts.items() if isinstance(node[0], int)}
        axes = {node[0]: (node[1], shift) for node, shift in group.shifts.items() if isinstance(node[0], str)}
        if loops:
            spans = [_span(phased.phases[phase], loop, shift) for phase, (loop, shift) in loops.items()]
            span = min(low for low, _ in spans), max(high for _, high in spans)
            found.append(Dimension(loops, axes, span, _homes(phased, faces, loops, axes, span)))
    return tuple(sorted(found, key=lambda dimension: min((loop, p) for p, (loop, _) in dimension.loops.items())))


def _homes(
    phased: PhasedNest,
    faces: Sequence[Sequence[Face]],
    loops: Mapping[int, tuple[int, int]],
    axes: Mapping[str, tuple[int, int]],
    span: Range,
) -> dict[int, int] | None:
    """By phase without a loop along a dimension the coordinate in its span that is nearest to all it writes; None where there is
    none, or where a phase that has a loop writes beside it."""
    low, high = span
    homes: dict[int, int] = {}
    for phase, bound in enumerate(phased.phases):
        for face in faces[phase]:
            axis, shift = axes.get(face.array, (None, 0))
            if phase in loops:
                if axis is None or bound.loops_of_axes(face.array)[axis] != bound.nest.sweep_depth + loops[phase][0]:
                    return None
                continue
            place = None if axis is None else dict(face.places).get(axis)
            if axis is not None and place is None:
                return None
            coordinate = low if place is None else place.evaluate(bound.symbols) + shift
            home = min(max(coordinate, low), max(low, high - 1))
            if homes.setdefault(phase, home) != home:
                return None
    return homes


def _span(bound: BoundNest, loop: int, shift: int) -> Range:
    low, high = _indices(bound, loop)
    return low + shift, high + shift


def _indices(bound: BoundNest, loop: int) -> Range:
    """The values of the user's index of a space loop."""
    k = bound.nest.sweep_depth + loop
    return in_direction(bound.domain.box[k], bound.nest.loops[k].step)


def _uniform_axes(bound: BoundNest, access: ir.Access) -> Iterator[tuple[int, int, int]]:
    """The axes that are indexed by a space loop plus a constant, of several pieces by the one with the least: the loop, the axis,
    the constant."""
    names = [loop.name for loop in bound.nest.space_loops]
    for axis in range(len(access.affine)):
        pieces = [piece for piece in _pieces_of(bound, access, axis) if piece is not None]
        uniform = [found for piece in pieces if (found := _uniform(piece.index)) is not None]
        nearest = min(((abs(offset), name, offset) for name, offset in uniform if name in names), default=None)
        if nearest is not None:
            yield names.index(nearest[1]), axis, nearest[2]


def _pieces_of(bound: BoundNest, access: ir.Access, axis: int) -> tuple[Piece | None, ...]:
    """An index as pieces: one where it is affine, None where it is not known."""
    if pieces := bound.pieces.get((access, axis)):
        return pieces
    index = None if (access, axis) in bound.wraps else bound.index(access, axis)
    return (None if index is None else Piece(index),)


def _uniform(index: Affine) -> tuple[str, int] | None:
    """A loop and the constant that is added to its index; None for anything else."""
    if len(index.terms) != 1 or index.terms[0][1] != 1:
        return None
    return index.terms[0][0], index.constant


@dataclass(eq=False)
class _Group:
    """Loops and axes with their shifts; out of line where two shifts of one were asked for."""

    shifts: dict[_Node, int]
    in_line: bool = True

    @property
    def is_crowded(self) -> bool:
        """Whether there are two loops of a phase or two axes of an array."""
        return len({node[0] for node in self.shifts}) < len(self.shifts)


class _Alignment:
    """Groups of loops and axes that run along each other."""

    def __init__(self) -> None:
        self._groups: dict[_Node, _Group] = {}

    @property
    def groups(self) -> list[_Group]:
        """Those in line."""
        return [group for group in dict.fromkeys(self._groups.values()) if group.in_line]

    def join(self, loop: _Node, axis: _Node, offset: int) -> None:
        """Index of the loop + offset = index of the axis, for elements that are written."""
        one, other = self._of(loop), self._of(axis)
        move = one.shifts[loop] - offset - other.shifts[axis]
        if one is other:
            one.in_line = one.in_line and not move
        else:
            self._merge(one, other, move)
            one.in_line = one.in_line and not one.is_crowded

    def join_if_free(self, loop: _Node, axis: _Node, offset: int) -> None:
        """The same for elements that are read: only where it brings no two axes of an array, or loops of a phase, together."""
        one, other = self._of(loop), self._of(axis)
        free = one is not other and one.in_line and other.in_line
        if free and not _Group({**one.shifts, **other.shifts}).is_crowded:
            self._merge(one, other, one.shifts[loop] - offset - other.shifts[axis])

    def _of(self, node: _Node) -> _Group:
        return self._groups.setdefault(node, _Group({node: 0}))

    def _merge(self, one: _Group, other: _Group, move: int) -> None:
        one.in_line = one.in_line and other.in_line
        for node, shift in other.shifts.items():
            one.shifts[node] = shift + move
            self._groups[node] = one


@dataclass(frozen=True)
class Distribution:
    """Blocks of a process grid: ``cuts`` holds, for every one of ``cut`` dimensions, the coordinates between ranks, the ends
    of its span included. Ranks are numbered row by row. A phase without a loop along a dimension is done by the rank there that
    has its home."""

    phased: PhasedNest
    cut: tuple[Dimension, ...]
    cuts: tuple[tuple[int, ...], ...]
    _blocks: dict[tuple[int, int], Box | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(len(cuts) - 1 for cuts in self.cuts)

    @property
    def ranks(self) -> int:
        return math.prod(self.grid)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        return coordinates_in(self.grid, rank)

    def order(self, phase: int, rank: int) -> tuple[int, ...]:
        """Where the rank's block of a phase stands along each dimension, in the direction of the phase's loops."""
        loops = self.phased.phases[phase].nest.space_loops
        steps = [loops[d.loops[phase][0]].step if phase in d.loops else 1 for d in self.cut]
        return tuple(c * step for c, step in zip(self.coordinates(rank), steps, strict=True))

    def block(self, phase: int, rank: int) -> Box | None:
        """The rank's iterations of a phase, one range a space loop in normalised coordinates; None where it has none."""
        if (phase, rank) not in self._blocks:
            self._blocks[phase, rank] = self._block(phase, rank)
        return self._blocks[phase, rank]

    def _block(self, phase: int, rank: int) -> Box | None:
        bound = self.phased.phases[phase]
        ranges = list(bound.domain.box[bound.nest.sweep_depth :])
        for dimension, cuts, coordinate in zip(self.cut, self.cuts, self.coordinates(rank), strict=True):
            if phase not in dimension.loops:
                home = (dimension.homes or {}).get(phase, cuts[0])
                if coordinate != min(max(bisect_right(cuts, home) - 1, 0), len(cuts) - 2):
                    return None
                continue
            loop, shift = dimension.loops[phase]
            own = in_direction(
                (cuts[coordinate] - shift, cuts[coordinate + 1] - shift), bound.nest.space_loops[loop].step
            )
            low, high = max(own[0], ranges[loop][0]), min(own[1], ranges[loop][1])
            if low >= high:
                return None
            ranges[loop] = (low, high)
        return tuple(ranges)

    def owned(self, name: str, rank: int) -> Box:
        """The elements of an array that are a rank's: those it writes, edges to the nearest rank."""
        ranges = [(0, extent) for extent in self.phased.array(name).shape]
        for dimension, coordinate in zip(self.cut, self.coordinates(rank), strict=True):
            if name in dimension.axes:
                axis = dimension.axes[name][0]
                cuts = self.axis_cuts(name, axis)
                ranges[axis] = (cuts[coordinate], cuts[coordinate + 1])
            elif coordinate:
                return ((0, 0),) * len(ranges)
        return tuple(ranges)

    def axis_cuts(self, name: str, axis: int) -> tuple[int, ...]:
        """Where an axis of an array is cut, its ends included."""
        extent = self.phased.array(name).shape[axis]
        for dimension, cuts in zip(self.cut, self.cuts, strict=True):
            if name in dimension.axes and dimension.axes[name][0] == axis:
                shift = dimension.axes[name][1]
                return (0, *(min(max(c - shift, 0), extent) for c in cuts[1:-1]), extent)
        return (0, extent)

    @cached_property
    def cut_loops(self) -> tuple[tuple[int, ...], ...]:
        """Per phase, the space loops that are cut into several parts."""
        return tuple(
            tuple(d.loops[p][0] for d, parts in zip(self.cut, self.grid, strict=True) if parts > 1 and p in d.loops)
            for p in range(len(self.phased.phases))
        )

    def dimension_of(self, phase: int, loop: int) -> int | None:
        """The dimension a space loop runs along, among those that are cut in several parts."""
        for k, (dimension, parts) in enumerate(zip(self.cut, self.grid, strict=True)):
            if parts > 1 and phase in dimension.loops and dimension.loops[phase][0] == loop:
                return k
        return None


@dataclass(frozen=True)
class Reach:
    """How far ``back`` and ``forth`` from an iteration the elements lie that it touches; ``around``: also beyond an end of the
    dimension, counted on from its other end."""

    back: int = 0
    forth: int = 0
    around: bool = False


def reach(phased: PhasedNest, dimension: Dimension, phase: int, names: Sequence[str]) -> Reach | None:
    """How far from an iteration of a phase along a dimension lie the elements it touches of some arrays; None where that is
    anywhere."""
    if phase not in dimension.loops:
        touched = any(access.array in names for access in phased.phases[phase].accesses)
        return None if touched else Reach()
    found, around = list[int](), False
    for access in (access for access in phased.phases[phase].accesses if access.array in names):
        for touch in touches(phased, dimension, phase, access):
            if touch is None:
                return None
            around |= touch.is_far
            for moved in touch.apart:
                far = touch.is_far and 2 * abs(moved) > dimension.extent
                found.append(moved if not far else moved + (dimension.extent if moved < 0 else -dimension.extent))
    return Reach(max(0, -min(found, default=0)), max(0, max(found, default=0)), around)


@dataclass(frozen=True)
class Touch:
    """Iterations with some coordinates touch elements that lie so far ``apart`` from them, at least and at most. is_far: beyond
    an end of the dimension, counted on from its other end."""

    coordinates: Range
    apart: tuple[int, int]
    is_far: bool


def touches(phased: PhasedNest, dimension: Dimension, phase: int, access: ir.Access) -> Iterator[Touch | None]:
    """What an access of a phase touches along a dimension, piece by piece, from where its home is where it has no loop along it;
    None where that is anywhere."""
    bound = phased.phases[phase]
    if access.array not in dimension.axes:
        yield None
        return
    axis, axis_shift = dimension.axes[access.array]
    pieces = _pieces_of(bound, access, axis)
    for piece in pieces:
        apart = None if piece is None else _apart_from(bound, piece, dimension, phase)
        if piece is None or apart is None:
            yield None
            continue
        least, most = apart[0] + axis_shift, apart[1] + axis_shift
        is_far = len(pieces) > 1 and 2 * max(abs(least), abs(most)) > dimension.extent
        yield Touch(_coordinates(bound, piece, dimension, phase), (least, most), is_far)


def _coordinates(bound: BoundNest, piece: Piece, dimension: Dimension, phase: int) -> Range:
    """Those of the iterations that an index is a piece of."""
    if phase not in dimension.loops:
        home = (dimension.homes or {}).get(phase, 0)
        return home, home + 1
    loop, shift = dimension.loops[phase]
    ranges = piece.within(bound.domain.index_ranges())
    if ranges is None:
        return 0, 0
    low, high = ranges[bound.nest.space_loops[loop].name]
    return low + shift, high + shift + 1


def _apart_from(bound: BoundNest, piece: Piece, dimension: Dimension, phase: int) -> tuple[int, int] | None:
    """The least and the greatest difference between an index and the coordinate of an iteration."""
    if phase in dimension.loops:
        loop, shift = dimension.loops[phase]
        apart = _apart(bound, piece, bound.nest.space_loops[loop].name)
        return None if apart is None else (apart[0] - shift, apart[1] - shift)
    home = (dimension.homes or {}).get(phase)
    if home is None or piece.index.terms:
        return None
    return piece.index.constant - home, piece.index.constant - home


def _apart(bound: BoundNest, piece: Piece, name: str) -> tuple[int, int] | None:
    """The least and the greatest difference between an index and that of a loop; None where that is anywhere."""
    if (uniform := _uniform(piece.index)) is not None:
        return (uniform[1], uniform[1]) if uniform[0] == name else None
    ranges = piece.within(bound.domain.index_ranges())
    if piece.index.terms or ranges is None or not any(name in guard.names for guard in piece.guards):
        return None
    low, high = ranges[name]
    return piece.index.constant - high, piece.index.constant - low
