"""What the compiled tile of a nest takes on this machine: seconds of its steps, and of packing and unpacking its faces.

The tile is the very module that runs, on a local array of a block's true shape and strides. Consecutive tiles are
computed, so that data come from where they would in a run: from memory where the block is larger than the caches.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.calibrate.calls import COMPUTE, PACK, UNPACK, Call, CallTimer
from lapwing.calibrate.statistics import median_quantity, typical
from lapwing.codegen.tile import tile_source
from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.machine.caches import outer_cache_bytes
from lapwing.machine.machine import Kernel, KernelSample, Quantity
from lapwing.planner.geometry import Geometry
from lapwing.planner.inner import choice_by_rule
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.parts import fill
from lapwing.runtime.arrays.storage import LocalArray, allocate, attach, copied_as_it_lies, needed_box, storage_of
from lapwing.runtime.arrays.transfer import slices
from lapwing.runtime.binding import native
from lapwing.runtime.tuning import allowed_cpus
from lapwing.runtime.workspace import Workspace
from lapwing.tiling.faces import Faces, Message, faces_of, loop_offsets
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.partition import Partition, Range, in_direction

Candidate = tuple[tuple[int, ...], int | None, int]  # extents of a block, mapping loop (None: time), tile height
Box = tuple[Range, ...]

_FEWEST_PASSES, _MOST_PASSES = 3, 25
_MOST_STEPS = 400  # a pass: Python takes its time for each
_COPIED_BYTES = 16 << 20  # of an array, to learn what copying all of it takes
_FILL_BYTES_PER_SECOND = 1e9  # about what touching new pages takes
_LARGEST_SHARE = 0.25  # of the memory that is free


@dataclass(frozen=True)
class FaceCost:
    """The message of one step to the next rank along space loop ``axis`` (``direction`` 1), or to the former one (−1).

    ``pack`` and ``unpack`` are seconds; unpacking is that of the message that comes from the other side.
    """

    axis: int
    direction: int
    bytes: int
    parts: int
    pack: Quantity
    unpack: Quantity


@dataclass(frozen=True)
class Probe:
    """What was measured for one candidate: ``step`` are seconds inside compute(), a step being ``tile`` sweeps of the
    block where time is pipelined. ``points``, ``run`` and ``working_set_bytes`` are as in KernelSample."""

    block: tuple[int, ...]
    mapping: int | None
    tile: int
    points: int
    run: int
    working_set_bytes: int
    step: Quantity
    faces: tuple[FaceCost, ...] = field(repr=False)

    @property
    def seconds_per_point(self) -> float:
        return self.step.value / self.points


def kernel_key(bound: BoundNest, dependences: Sequence[Dependence], form: InnerForm | None = None) -> str:
    """The digest of the tile's source: the same nest with the same types, and arrays that are dead
    after it. form: None is the one taken by rule."""
    source = tile_source(bound, faces_of(bound), form or choice_by_rule(bound, dependences).form)
    known = "\0".join([source, *sorted(bound.dead)])
    return hashlib.sha256(known.encode()).hexdigest()[:20]


def probe(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    candidates: Sequence[Candidate],
    budget_seconds: float,
    *,
    arguments: Mapping[str, Any] | None = None,
    slice_seconds: float = 0.0,
    all_faces: bool = True,
    announce: native.Announce = None,
    form: InnerForm | None = None,
    joined: Sequence[int] = (),
) -> list[Probe]:
    """Measure candidates on this process, in turns, within about the budget (building the tile apart).

    Blocks larger than the domain are cut to it. A block that would not fit in memory, or whose pages the budget does not
    allow to touch, is shortened, though not below twice the outer cache.
    arguments: arrays to take the elements from; others are made up. slice_seconds: cut steps as engines that poll do.
    all_faces: pack and unpack along every loop but the mapping; else along those only that blocks do not cover, as in a run.
    form: of the tile; None is the one taken by rule. joined: how many sweeps of every candidate are done at once; each by itself
    where this is not given.
    Memory bandwidth is shared: for the figures of a full node, call it on all its ranks at once.
    Raises BuildError; RefusedError for a nest without iterations or a candidate that is none.
    """
    _check_not_empty(bound)
    form = form or choice_by_rule(bound, dependences).form
    library = native.build_tile(tile_source(bound, faces_of(bound), form), announce, f"the tile of {bound.nest.name}")
    found: dict[int, Probe] = {}
    groups: dict[tuple[tuple[int, ...], int | None], list[int]] = {}
    for position, (block, mapping, tile) in enumerate(candidates):
        _check_candidate(bound, block, mapping, tile)
        groups.setdefault((_cut_to_domain(bound, block), mapping), []).append(position)
    for (block, _), positions in groups.items():
        wanted = [candidates[p] for p in positions]
        libraries = [library] * len(wanted)
        sweeps = [joined[p] for p in positions] if joined else None
        bench = _Bench(
            bound, libraries, block, wanted, arguments or {}, budget_seconds / len(groups), all_faces, announce, sweeps
        )
        found.update(zip(positions, bench.measure(slice_seconds), strict=True))
    return [found[position] for position in range(len(candidates))]


def probe_forms(
    bound: BoundNest,
    candidate: Candidate,
    forms: Sequence[InnerForm],
    budget_seconds: float,
    *,
    most_sweeps: int = 1,
    arguments: Mapping[str, Any] | None = None,
    announce: native.Announce = None,
) -> list[Probe]:
    """Measure inner forms of one candidate on this process, in turns; otherwise as ``probe``. Forms in place have arrays with the
    strides of the arguments, all others the same padded ones. Forms that can do several sweeps at once do ``most_sweeps`` or
    fewer."""
    _check_not_empty(bound)
    block, mapping, tile = candidate
    _check_candidate(bound, block, mapping, tile)
    sources = [tile_source(bound, faces_of(bound), form) for form in forms]
    with ThreadPoolExecutor(len(allowed_cpus())) as pool:
        libraries = list(
            pool.map(lambda source: native.build_tile(source, announce, f"the tile of {bound.nest.name}"), sources)
        )
    wanted = [candidate] * len(forms)
    block = _cut_to_domain(bound, block)
    sweeps = [min(form.sweeps, most_sweeps) for form in forms]
    in_place = [form.in_place for form in forms]
    bench = _Bench(bound, libraries, block, wanted, arguments or {}, budget_seconds, False, announce, sweeps, in_place)
    return bench.measure(0.0)


def padding_seconds(bound: BoundNest, names: Sequence[str], arguments: Mapping[str, Any]) -> float:
    """What one rank takes to copy arrays into padded memory, and those back that are written; of large ones a part is copied."""
    return sum(_copy_seconds(bound.array(name), arguments[name]) * (1 + (name in bound.nest.written)) for name in names)


def _copy_seconds(array: ArrayType, values: npt.NDArray[Any]) -> float:
    rows = max(1, min(len(values), len(values) * _COPIED_BYTES // max(1, values.nbytes)))
    part, seconds = values[:rows], []
    for _ in range(_FEWEST_PASSES):
        begin = time.perf_counter()
        allocate(array, tuple((0, extent) for extent in part.shape)).values[...] = part
        seconds.append(time.perf_counter() - begin)
    return min(seconds) * len(values) / rows


def measure_kernel(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    candidates: Sequence[Candidate],
    budget_seconds: float,
    *,
    step_overhead: Quantity | None = None,
    arguments: Mapping[str, Any] | None = None,
    announce: native.Announce = None,
) -> Kernel:
    """The nest's tile over some blocks and tile heights, as a machine description keeps it."""
    probes = probe(bound, dependences, candidates, budget_seconds, arguments=arguments, announce=announce)
    samples = tuple(kernel_sample(one) for one in probes)
    source = f"measured: {len(samples)} tile heights"
    return Kernel(
        kernel_key(bound, dependences), bound.nest.name, samples, step_overhead or Quantity(0.0, source="not measured"),
        source,
    )  # fmt: skip


def kernel_sample(probe: Probe) -> KernelSample:
    # A step along time is so many sweeps of the block: points are those of one sweep, which is what comes and goes.
    sweeps = probe.tile if probe.mapping is None else 1
    low, high = (None if end is None else end / probe.points for end in (probe.step.low, probe.step.high))
    return KernelSample(probe.points // sweeps, probe.run, probe.working_set_bytes, probe.seconds_per_point, low, high)


class _Bench:
    """Candidates of one block and mapping loop: its arrays, and the calls of every candidate's steps.

    libraries: the tile of every candidate. sweeps: how many each computes at once. in_place: whether its arrays lie as the
    arguments do.
    """

    def __init__(
        self,
        bound: BoundNest,
        libraries: Sequence[Any],
        block: tuple[int, ...],
        candidates: Sequence[Candidate],
        arguments: Mapping[str, Any],
        budget_seconds: float,
        all_faces: bool,
        announce: native.Announce,
        sweeps: Sequence[int] | None = None,
        in_place: Sequence[bool] | None = None,
    ) -> None:
        self.bound, self.budget_seconds = bound, budget_seconds
        extents = _shortened(bound, block, candidates[0][1], budget_seconds)
        cuts = _middle(bound, extents)
        sweeps, in_place = sweeps or [1] * len(candidates), in_place or [False] * len(candidates)
        arrays = {
            as_given: {a.name: _filled(bound, a.name, _block(bound, cuts), arguments, as_given) for a in bound.arrays}
            for as_given in set(in_place)
        }
        self.walks = [
            _Walk(bound, block, cuts, mapping, tile, arrays[as_given], all_faces, most)
            for (_, mapping, tile), most, as_given in zip(candidates, sweeps, in_place, strict=True)
        ]
        self.timers = [
            CallTimer(bound, Workspace(bound, library, arrays[as_given]), announce)
            for library, as_given in zip(libraries, in_place, strict=True)
        ]

    def measure(self, slice_seconds: float) -> list[Probe]:
        """Passes of all candidates in turns: of the whole block, or of parts that follow each other round the block."""
        share = self.budget_seconds / len(self.walks)
        slices = [walk.slice_seconds(slice_seconds) for walk in self.walks]
        lengths = []
        for walk, timer, slice_seconds in zip(self.walks, self.timers, slices, strict=True):
            # Warms up, and says how many steps the budget allows in a pass.
            begin = time.perf_counter()
            timer.seconds(walk.next_calls(1), slice_seconds)
            step = max(time.perf_counter() - begin, 1e-7)
            lengths.append(max(1, min(len(walk.steps), _MOST_STEPS, int(share / (_FEWEST_PASSES + 1) / step))))
        deadline = time.perf_counter() + self.budget_seconds
        for number in range(_MOST_PASSES + 1):
            if number > _FEWEST_PASSES and time.perf_counter() > deadline:
                break
            for walk, timer, length, slice_seconds in zip(self.walks, self.timers, lengths, slices, strict=True):
                walk.note(timer.seconds(walk.next_calls(length), slice_seconds), keep=number > 0)
        return [walk.probe() for walk in self.walks]


class _Walk:
    """One candidate's steps round its block, and what they took."""

    def __init__(
        self,
        bound: BoundNest,
        block: tuple[int, ...],
        cuts: Sequence[Range],
        mapping: int | None,
        tile: int,
        arrays: Mapping[str, LocalArray],
        all_faces: bool,
        sweeps: int = 1,
    ) -> None:
        self.bound, self.block, self.mapping = bound, block, mapping
        whole = [high - low for low, high in bound.domain.box[bound.nest.sweep_depth :]]
        self._axes = [k for k, extent in enumerate(block) if k != mapping and (all_faces or extent < whole[k])]
        self.tile = tile if mapping is None else max(1, min(tile, block[mapping]))
        self._sweep = tuple((x, x + 1) for x in next(bound.domain.points(bound.nest.sweep_depth)))
        own = Faces(bound, _partition(bound, cuts), mapping, self.tile)
        steps = own.steps(0)
        # A lower tile at the end is no step like the others.
        self.steps = [s for s in steps if _volume(s) == _volume(steps[0])]
        self._points = _points_of_steps(own)[: len(self.steps)]
        self._sweeps = sweeps
        if sweeps > 1:
            ((first, _),) = self._sweep
            self._sweep = ((first, first + sweeps),)
        self._cuts, self._arrays = cuts, arrays
        self._copies: dict[int, list[_Copy]] = {}  # by step, as they are needed
        self._at = 0
        self._passes: list[float] = []  # seconds a point
        self._faces: dict[tuple[int, int], dict[int, list[float]]] = {}
        self._noting: list[tuple[tuple[int, int], int]] = []
        self._walked: list[int] = []

    def slice_seconds(self, wanted: float) -> float:
        """How long slices are; 0 where sweeps are joined, for such steps are not cut."""
        return wanted if self._sweeps == 1 else 0.0

    def _copies_of(self, step: int) -> list[_Copy]:
        if step not in self._copies:
            found = _copies(self.bound, self._cuts, self._axes, self.mapping, self.tile, step, self._arrays)
            self._copies[step] = list(found)
        return self._copies[step]

    @property
    def _mean_points(self) -> float:
        return max(1.0, float(np.mean(self._points)))

    def next_calls(self, steps: int) -> list[Call]:
        """The calls of the steps that come next, round the block: unpack, compute, pack."""
        calls: list[Call] = []
        self._noting = []
        self._walked = [(self._at + k) % len(self.steps) for k in range(steps)]
        for _ in range(steps):
            copies = self._copies_of(self._at)
            for kind in (UNPACK, COMPUTE, PACK):
                if kind == COMPUTE:
                    calls.append(Call(COMPUTE, (*self._sweep, *self.steps[self._at])))
                    self._noting.append(((-1, 0), COMPUTE))
                for copy in (c for c in copies if c.kind == kind):
                    for part in copy.message.parts:
                        calls.append(Call(kind, (*self._sweep, *part.box), part.face, part.bytes))
                        self._noting.append(((copy.axis, copy.direction), kind))
            self._at = (self._at + 1) % len(self.steps)
        return calls

    def note(self, seconds: Any, keep: bool) -> None:
        if not keep:
            return
        steps = sum(kind == COMPUTE for _, kind in self._noting)
        of_label: dict[tuple[tuple[int, int], int], list[float]] = {}
        for label, spent in zip(self._noting, seconds.tolist(), strict=True):
            of_label.setdefault(label, []).append(spent)
        for (place, kind), calls in of_label.items():
            # Steps of one height are alike where the domain is a box: what takes much longer was interrupted.
            mean = typical(calls) if self.bound.domain.is_box else sum(calls) / len(calls)
            if kind == COMPUTE:
                points = self._sweeps * float(np.mean(self._points[self._walked]))
                self._passes.append(mean / max(1.0, points))
            else:
                self._faces.setdefault(place, {}).setdefault(kind, []).append(mean * len(calls) / steps)

    def probe(self) -> Probe:
        sweeps = self.tile if self.mapping is None else 1
        step, points = self.steps[0], max(1, round(self._mean_points * sweeps))
        return Probe(
            block=self.block,
            mapping=self.mapping,
            tile=self.tile,
            points=points,
            run=step[-1][1] - step[-1][0],
            working_set_bytes=_touched_bytes(self.bound, _block(self.bound, _middle(self.bound, self.block))),
            step=_scaled(median_quantity(self._passes, "measured: compiled tile"), points),
            faces=tuple(self._face_cost(place, of_kind, sweeps) for place, of_kind in sorted(self._faces.items())),
        )

    def _face_cost(self, place: tuple[int, int], of_kind: Mapping[int, list[float]], sweeps: int) -> FaceCost:
        axis, direction = place
        messages = [c.message for copies in self._copies.values() for c in copies if (c.axis, c.direction) == place]
        pack, unpack = (
            _scaled(
                median_quantity(of_kind.get(kind) or of_kind[PACK + UNPACK - kind], "measured: face of the tile"),
                sweeps,
            )
            for kind in (PACK, UNPACK)
        )
        return FaceCost(axis, direction, messages[0].bytes * sweeps, len(messages[0].parts), pack, unpack)


@dataclass(frozen=True)
class _Copy:
    kind: int
    axis: int
    direction: int
    message: Message


def _copies(
    bound: BoundNest,
    cuts: Sequence[Range],
    axes: Sequence[int],
    mapping: int | None,
    tile: int,
    step: int,
    arrays: Mapping[str, LocalArray],
) -> Iterator[_Copy]:
    """What a step packs for, and unpacks from, a rank of the same block on either side along some loops."""
    for axis in axes:
        (low, high), loop = cuts[axis], bound.nest.space_loops[axis]
        extent = high - low
        for side in (1, -1):
            # In the user's indices the neighbour lies at higher or lower ones; in the loop's direction, after or before.
            both = (low, high, high + extent) if side == 1 else (low - extent, low, high)
            own, other = (0, 1) if side == 1 else (1, 0)
            partition = _partition(bound, [both if k == axis else cut for k, cut in enumerate(cuts)])
            faces = Faces(bound, partition, mapping, tile)
            for kind, source, target, towards in (
                (PACK, own, other, side * loop.step),
                (UNPACK, other, own, -side * loop.step),
            ):
                message = faces.message(source, target, step)
                if message is not None and _lies_in(bound, message, arrays):
                    yield _Copy(kind, axis, towards, message)


def _lies_in(bound: BoundNest, message: Message, arrays: Mapping[str, LocalArray]) -> bool:
    """Whether all elements of a message are there: at the edge of an array, accesses under guards reach beyond it."""
    if bound.skew is not None:
        return True  # copied are points of the domain alone, and what messages carry is stored (needed_box)
    return all(
        all(
            low >= first and high <= last for (low, high), (first, last) in zip(elements, arrays[name].box, strict=True)
        )
        for name, elements in (_elements(bound, part.face, part.box) for part in message.parts)
    )


def _elements(bound: BoundNest, face: int, box: Box) -> tuple[str, Box]:
    """The array of a face and the elements it wrote in a box of iterations, as the generated module has them."""
    wanted = faces_of(bound)[face]
    target = next(
        s.target
        for s in bound.nest.stores
        if s.target.array == wanted.array and loop_offsets(bound, s.target) == wanted.offsets
    )
    elements = []
    for affine, k, extent in zip(
        target.affine, bound.loops_of_axes(wanted.array), bound.array(wanted.array).shape, strict=True
    ):
        if k is None:
            elements.append((0, extent))
            continue
        assert affine is not None
        first, last = in_direction(box[k - bound.nest.sweep_depth], bound.nest.loops[k].step)
        elements.append((first + affine.constant, last + affine.constant))
    return wanted.array, tuple(elements)


def _check_not_empty(bound: BoundNest) -> None:
    if bound.domain.is_empty:
        raise RefusedError(f"{bound.nest.name}: a loop has no iterations, so there is no tile to measure.")


def _check_candidate(bound: BoundNest, block: Sequence[int], mapping: int | None, tile: int) -> None:
    loops = len(bound.nest.space_loops)
    if len(block) != loops or min(block) < 1 or tile < 1 or not (mapping is None or 0 <= mapping < loops):
        raise RefusedError(
            f"{bound.nest.name}: block {tuple(block)} with mapping {mapping} and tile {tile}: expected {loops} extents, a "
            f"mapping loop below {loops} or None, and a tile height, all at least 1."
        )


def _cut_to_domain(bound: BoundNest, block: Sequence[int]) -> tuple[int, ...]:
    ranges = bound.domain.box[bound.nest.sweep_depth :]
    return tuple(min(extent, high - low) for extent, (low, high) in zip(block, ranges, strict=True))


def _shortened(bound: BoundNest, block: tuple[int, ...], mapping: int | None, budget_seconds: float) -> tuple[int, ...]:
    """The block, shortened to what the budget and the memory allow: along the mapping loop, or the outermost for time.

    What is left is larger than the caches, and a point of it takes as long.
    """
    total = _touched_bytes(bound, _block(bound, _middle(bound, block)))
    room = max(2.2 * outer_cache_bytes(), 0.3 * budget_seconds * _FILL_BYTES_PER_SECOND)
    room = min(room, _LARGEST_SHARE * _free_bytes())
    if total <= room:
        return block
    axis = 0 if mapping is None else mapping
    extent = max(1, math.ceil(block[axis] * room / total))
    return (*block[:axis], min(block[axis], extent), *block[axis + 1 :])


def _middle(bound: BoundNest, extents: Sequence[int]) -> list[Range]:
    """A block in the middle of the domain, in the user's indices: there the rows of a triangle are neither long nor short."""
    cuts = []
    loops, ranges = bound.nest.space_loops, bound.domain.box[bound.nest.sweep_depth :]
    for extent, (low, high), loop in zip(extents, ranges, loops, strict=True):
        begin = low + (high - low - extent) // 2
        cuts.append(in_direction((begin, begin + extent), loop.step))
    return cuts


def _partition(bound: BoundNest, cuts: Sequence[Sequence[int]]) -> Partition:
    """Blocks between cut points in the user's indices."""
    return Partition(tuple(tuple(c) for c in cuts), tuple(loop.step for loop in bound.nest.space_loops))


def _block(bound: BoundNest, cuts: Sequence[Range]) -> Box:
    """Cuts in the user's indices as a box of iterations."""
    return tuple(in_direction(cut, loop.step) for cut, loop in zip(cuts, bound.nest.space_loops, strict=True))


def _filled(
    bound: BoundNest, name: str, block: Box, arguments: Mapping[str, Any], as_given: bool = False
) -> LocalArray:
    """Elements of an array for a block, taken from the arguments or made up; as_given: with the strides of the argument."""
    array, given = bound.array(name), arguments.get(name)
    if as_given and isinstance(given, np.ndarray) and attach(array, given) is not None:
        return copied_as_it_lies(array, given, needed_box(bound, name, block))
    storage = storage_of(bound, name, block)
    local = allocate(array, storage.box, shear=storage.shear)
    if isinstance(given, np.ndarray) and given.shape == array.shape and storage.shear is None:
        local.values[...] = given[slices(local.box)]
    elif isinstance(given, DistributedArray) and given.initial is not None:
        fill(local, given.initial)
    elif np.dtype(array.dtype).kind in "fc":
        local.values[...] = 1.0  # sums and means of ones never become numbers that are slow
        local.values[..., ::3] = 1.5
    else:
        local.values[...] = 0
        local.values[..., ::3] = 1  # valid positions in any table that has two
    return local


def _touched_bytes(bound: BoundNest, block: Box) -> int:
    return sum(_volume(storage_of(bound, a.name, block).box) * a.itemsize for a in bound.arrays)


def _points_of_steps(faces: Faces) -> npt.NDArray[np.float64]:
    """How many iterations there are in every step of the only rank; of one sweep where time is pipelined."""
    if faces.mapping is None:
        faces = replace(faces, tile=1)
    return Geometry(faces, 1).points.reshape(-1)


def _volume(box: Box) -> int:
    return math.prod(high - low for low, high in box)


def _scaled(quantity: Quantity, factor: float) -> Quantity:
    low, high = (None if end is None else end * factor for end in (quantity.low, quantity.high))
    return Quantity(quantity.value * factor, low, high, quantity.source)


def _free_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 4 << 30
