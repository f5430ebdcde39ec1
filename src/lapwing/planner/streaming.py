"""Out of core: which loop to stream along, how many sweeps to do in a pass, and how high slabs are. Pure.

P3's model, with what differs here: a pass does T sweeps, each some steps behind the one before (time skewing); slabs of
several arrays are read and written together; and where computing takes longer than the disk, computing counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence, inside_sweep
from lapwing.machine.machine import Disk
from lapwing.planner.along_time import AlongTime
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.cuts import Cut, communication_weights, fits, partition_of
from lapwing.planner.plan import Plan, Streaming
from lapwing.schedule.disk_ring import DiskPipeline, disk_timeline
from lapwing.tiling.faces import loop_offsets, reach_of, sweep_skew
from lapwing.tiling.partition import Partition, factorisations
from lapwing.tiling.slabs import streams_along
from lapwing.units import duration, rate, size

RINGS = (1, 2, 3)  # slabs on their way beside those that are computed on: none, one, or one in and one out
REQUEST_BYTES = 1 << 20  # what slabs are cut into
QUEUE_DEPTH = 8  # requests in flight: enough for a disk to be busy all the time (docs/performance/out-of-core.md)
TYPICAL_BYTES_A_SECOND = 1e9  # of a disk that was not measured
TYPICAL_LATENCY = 1e-3  # seconds, of a request with no other in flight
MOST_PASS_SWEEPS = 512  # each has channels of its own
MOST_STEPS = 50_000  # of all ranks: the exact timeline of more takes more than half a second
FLAT = 1.01  # heights whose time is within this factor of the best are as good: the lowest is taken,
FLAT_DISK = 1.05  # of those whose disk time is also within this one, for a disk may be slower than it was measured
WORTHWHILE = 1.02  # one more sweep in a pass has to pay
DISK_BLOCK = 512  # bytes: what begins at a multiple of it is moved without a copy
_ROW_UNIT = 1024  # bytes that padding adds to a row at most


@dataclass(frozen=True)
class StreamingWishes:
    """What is asked of a run out of core. memory: bytes of all ranks of a node together; None is no limit.

    pass_sweeps: how many sweeps share a pass; None leaves it to the planner. ring: one of RINGS.
    """

    memory: int | None = None
    pass_sweeps: int | None = None
    ring: int = 3


@dataclass(frozen=True)
class DiskRates:
    """Seconds per byte of all ranks of a node together, and the seconds until a request alone is done."""

    seconds_per_byte: float
    latency: float

    @staticmethod
    def of(disk: Disk | None) -> DiskRates:
        """As measured, or typical."""
        if disk is None:
            return DiskRates(1 / TYPICAL_BYTES_A_SECOND, TYPICAL_LATENCY)
        return DiskRates(disk.both(REQUEST_BYTES) / REQUEST_BYTES, disk.read_alone(REQUEST_BYTES))


def streaming_plan(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    ranks: int,
    ranks_a_node: int,
    wishes: Wishes,
    streaming: StreamingWishes,
    on_disk: Mapping[str, tuple[int, ...]],
    disk: DiskRates,
    seconds_per_point: float,
) -> Plan:
    """A plan for a nest some of whose arrays are on disk. on_disk: the shapes of their chunks, by name.

    Blocks are cut where chunks are, as far as that goes. Arrays that are only read may be kept whole.

    Raises RefusedError where no loop can be streamed along, and where the memory is too small, as make_plan does otherwise.
    """
    _check(streaming)
    if bound.domain.is_empty:
        return make_plan(bound, dependences, ranks, Wishes(wishes.engine, wishes.tile))
    backwards = _backwards(bound, dependences)
    mapping, names = _stream(bound, on_disk, backwards)
    whole = {**_written_apart(bound, names), **backwards}
    grid = _grid(bound, dependences, ranks, wishes, mapping, whole)
    partition = _aligned(bound, partition_of(bound, grid), {name: on_disk[name] for name in names})
    cut = Cut(mapping, grid)
    # Of any height: slabs are chosen below. Plans of low tiles list a message for every step, which takes seconds.
    highest = max(high - low for low, high in bound.domain.box)
    first = make_plan(bound, dependences, ranks, Wishes(wishes.engine, highest, cut=cut), partition, skews=False)
    sweeps = AlongTime(bound, tuple(dependences)).sweeps
    node = min(ranks_a_node, first.ranks)
    problem = _Problem(bound, first, names, whole, node, streaming, disk, seconds_per_point, sweeps)
    chosen = problem.choose(wishes.tile)
    plan = make_plan(bound, dependences, ranks, Wishes(wishes.engine, chosen.tile, cut=cut), partition, skews=False)
    return problem.finished(plan, chosen)


def _check(wishes: StreamingWishes) -> None:
    if wishes.ring not in RINGS:
        raise RefusedError(f"ring {wishes.ring!r}: expected one of {', '.join(map(str, RINGS))}.")
    if wishes.pass_sweeps is not None and not 1 <= wishes.pass_sweeps <= MOST_PASS_SWEEPS:
        raise RefusedError(f"{wishes.pass_sweeps!r} sweeps a pass: expected from 1 to {MOST_PASS_SWEEPS}.")
    if wishes.memory is not None and wishes.memory < 1:
        raise RefusedError(f"memory {wishes.memory!r}: expected a number of bytes.")


def _backwards(bound: BoundNest, dependences: Sequence[Dependence]) -> dict[int, str]:
    """The space loops along which a dependence inside a sweep points backwards, each with the reason not to cut it.

    Slabs come one after the other along the loop that is streamed along, and within a slab each rank keeps to the order of the
    nest. So dependences have to point forwards along that loop and along those that are cut, no others: nothing is skewed.
    """
    found: dict[int, str] = {}
    for dependence in inside_sweep(dependences, bound.nest.sweep_depth):
        for loop, distance in enumerate(dependence.vector[bound.nest.sweep_depth :]):
            if distance < 0:
                text = f"the {dependence.kind} dependence {list(dependence.vector)} points backwards along it"
                found.setdefault(loop, text)
    return found


def _stream(bound: BoundNest, on_disk: Collection[str], backwards: Mapping[int, str]) -> tuple[int, tuple[str, ...]]:
    """The loop to stream along, and the arrays that stream."""
    wanted = [name for name in on_disk if name in bound.nest.written]
    reasons: list[str] = []
    for mapping, loop in enumerate(bound.nest.space_loops):
        if mapping in backwards:
            reasons.append(f"along {loop.name}, {backwards[mapping]}")
            continue
        bad = next((name for name in wanted if not streams_along(bound, name, mapping)), None)
        if bad is None and any(streams_along(bound, name, mapping) for name in on_disk):
            return mapping, tuple(name for name in on_disk if streams_along(bound, name, mapping))
        reasons.append(f"along {loop.name}, {bad or 'any array'} is indexed otherwise")
    raise RefusedError(
        f"{bound.nest.where(bound.nest.line)}: {bound.nest.name}: no loop can be streamed along: {'; '.join(reasons)}. Out of "
        "core needs a loop along the first axis, and only the first, of the arrays on disk, with all dependences pointing "
        "forwards: u[i, j] in a loop over i. Transpose the arrays, or load them: lw.load."
    )


def _written_apart(bound: BoundNest, names: Collection[str]) -> dict[int, str]:
    """The space loops along which statements write elements of one array at different offsets, each with the reason not to cut.

    The last value of an element may come from any of the statements, at the edges of the domain. Blocks along such a loop
    would leave it with a rank that does not write the element to the disk.
    """
    found: dict[int, str] = {}
    for name in names:
        offsets = {loop_offsets(bound, store.target) for store in bound.nest.stores if store.target.array == name}
        for loop in range(len(bound.nest.space_loops)):
            if len({one[bound.nest.sweep_depth + loop] for one in offsets}) > 1:
                found.setdefault(loop, f"statements write elements of {name} at different places along it")
    return found


def _grid(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    ranks: int,
    wishes: Wishes,
    mapping: int,
    whole: Mapping[int, str],
) -> tuple[int, ...]:
    """The grid over all space loops; the one that is streamed along stays whole, and so do those that ``whole`` names, each with
    the reason."""
    extents = tuple(high - low for low, high in bound.domain.box[bound.nest.sweep_depth :])
    if wishes.grid is not None:
        given = tuple(wishes.grid)
        grid = given if len(given) == len(extents) else (*given[:mapping], 1, *given[mapping:])
        loop = bound.nest.space_loops[mapping].name
        if len(grid) != len(extents) or grid[mapping] != 1 or math.prod(grid) != ranks or not fits(grid, extents):
            raise RefusedError(
                f"grid {'x'.join(map(str, given))}: out of core expected {ranks} ranks over the loops other than {loop}, which "
                "is streamed along, each with a row or more."
            )
        if cut := [k for k in whole if grid[k] > 1]:
            loop = bound.nest.space_loops[cut[0]].name
            raise RefusedError(
                f"grid {'x'.join(map(str, given))}: out of core expected one rank along {loop}: {whole[cut[0]]}."
            )
        return grid
    weights = communication_weights(bound, dependences)
    for number in range(ranks, 0, -1):
        over_others = ((*g[:mapping], 1, *g[mapping:]) for g in factorisations(number, len(extents) - 1))
        fitting = [g for g in over_others if fits(g, extents) and all(g[k] == 1 for k in whole)]
        if fitting:
            # Outer loops are cut first: runs on file stay long.
            return min(
                fitting, key=lambda g: (sum(w * p / e for w, p, e in zip(weights, g, extents, strict=True)), g[::-1])
            )
    raise AssertionError("one rank always fits")


def _aligned(bound: BoundNest, partition: Partition, chunks: Mapping[str, tuple[int, ...]]) -> Partition:
    """The partition with cuts moved to where chunks of written arrays begin, or else to whole blocks of the disk."""
    cuts = list(partition.cuts)
    for store in bound.nest.stores:
        array = store.target.array
        if array not in chunks:
            continue
        for axis, (affine, name) in enumerate(zip(store.target.affine, bound.nest.axis_loops[array], strict=True)):
            loop = next((k for k, one in enumerate(bound.nest.space_loops) if one.name == name), None)
            if affine is None or loop is None or axis == 0:
                continue
            block = DISK_BLOCK // bound.array(array).itemsize if axis == len(store.target.affine) - 1 else 1
            units = [chunks[array][axis], block] if chunks[array][axis] < bound.array(array).shape[axis] else [block]
            moved = next((m for unit in units if (m := _moved(partition.cuts[loop], unit, affine.constant))), None)
            cuts[loop] = moved or cuts[loop]
    return replace(partition, cuts=tuple(cuts))


def _moved(cuts: tuple[int, ...], unit: int, offset: int) -> tuple[int, ...] | None:
    """Inner cuts, which are at multiples of a unit once the offset is added; None where some block would be empty, or twice as
    wide as it was."""
    inner = [round((cut + offset) / unit) * unit - offset for cut in cuts[1:-1]]
    moved = (cuts[0], *inner, cuts[-1])
    widths = [high - low for low, high in itertools.pairwise(moved)]
    before = [high - low for low, high in itertools.pairwise(cuts)]
    return moved if min(widths) > 0 and max(widths) < 2 * max(before) else None


@dataclass(frozen=True)
class _Choice:
    tile: int
    pass_sweeps: int
    seconds: float
    memory: int


@dataclass(frozen=True)
class _Problem:
    """What slabs are chosen for. Times are those of one rank; the disk is shared by those of a node."""

    bound: BoundNest
    plan: Plan
    names: tuple[str, ...]
    whole: Mapping[int, str]
    ranks_a_node: int
    wishes: StreamingWishes
    disk: DiskRates
    seconds_per_point: float
    sweeps: int

    def choose(self, tile: int | None) -> _Choice:
        best: _Choice | None = None
        most = 1 if self.plan.engine == "blocking" else min(self.sweeps, MOST_PASS_SWEEPS)
        numbers = [self.wishes.pass_sweeps] if self.wishes.pass_sweeps else range(1, most + 1)
        for pass_sweeps in dict.fromkeys(min(number, most) for number in numbers):
            choice = self._best_tile(pass_sweeps, tile)
            if choice is not None and (best is None or choice.seconds * WORTHWHILE < best.seconds):
                best = choice
        if best is None:
            raise self._too_small(tile)
        return best

    def finished(self, plan: Plan, chosen: _Choice) -> Plan:
        passes = -(-self.sweeps // chosen.pass_sweeps)
        disk, computing = self._disk_seconds(chosen.tile), self._computing_seconds(chosen.pass_sweeps)
        longer = "the disk" if disk > computing else "computing"
        whole = [
            f"{self.bound.nest.space_loops[k].name} is not cut: {reason}"
            for k, reason in self.whole.items()
            if k != self.mapping
        ]
        reasons = (
            *whole,
            f"{plan.mapping_loop} is streamed along: the first axis of {', '.join(self.names)}",
            f"{chosen.pass_sweeps} of {self.sweeps} sweeps a pass: the disk takes {duration(disk)} for a pass at "
            f"{rate(1 / self.disk.seconds_per_byte)}, computing {duration(computing)} at "
            f"{duration(self.seconds_per_point)} a point; {longer} counts",
        )
        pipeline = self._pipeline(plan, chosen)
        fits = pipeline.ranks * pipeline.total_steps <= MOST_STEPS
        streaming = Streaming(
            self.names,
            self.sweeps,
            chosen.pass_sweeps,
            passes,
            self.wishes.ring,
            chosen.memory,
            self.wishes.memory,
            disk_timeline(pipeline).makespan if fits else chosen.seconds,
            self._opening_sweeps,
            pipeline if fits else None,
        )
        return replace(plan, streaming=streaming, joined=1, reasons=(*reasons, *plan.reasons))

    def _pipeline(self, plan: Plan, chosen: _Choice) -> DiskPipeline:
        """What the exact timeline is of: steps that are alike."""
        slabs = -(-self.rows // chosen.tile)
        read = sum(self.bound.array(name).shape[0] * self._widths(name)[0] for name in self.names)
        between = self._between(chosen.tile) / self.ranks_a_node  # the others' slabs come in between
        return DiskPipeline(
            grid=plan.partition.grid,
            slabs=slabs,
            sweeps=self.sweeps,
            pass_sweeps=chosen.pass_sweeps,
            opening=self._opening_sweeps,
            skew=self.skew(chosen.tile),
            ahead=-(-self._reach // chosen.tile),
            slots=self._slots(chosen.tile, chosen.pass_sweeps),
            compute=self._computing_seconds(1) / slabs,
            read=between + read / slabs * self.disk.seconds_per_byte,
            write=between + (self._volume - read) / slabs * self.disk.seconds_per_byte,
            ranks_a_node=self.ranks_a_node,
        )

    @cached_property
    def mapping(self) -> int:
        assert self.plan.mapping is not None
        return self.plan.mapping

    @cached_property
    def rows(self) -> int:
        return self.plan.extents[self.mapping]

    @cached_property
    def points(self) -> int:
        """Of a sweep, on one rank."""
        return math.prod(self.plan.partition.widest)

    @cached_property
    def _reach(self) -> int:
        low, high = reach_of(self.bound)[self.mapping]
        return max(-low, high)

    def skew(self, tile: int) -> int:
        return sweep_skew(self._reach, tile, self.plan.ranks)

    @cached_property
    def _opening_sweeps(self) -> int:
        """One, where ranks have elements of each other and sweeps can share a pass."""
        return int(self.plan.ranks > 1 and self.plan.engine != "blocking")

    def _slots(self, tile: int, pass_sweeps: int) -> int:
        """Slabs in memory: those that are touched, and those on their way."""
        touched = 1 + -(-2 * self._reach // tile)
        return touched + self.skew(tile) * (self._opening_sweeps + pass_sweeps - 1) + self.wishes.ring - 1

    def _widths(self, name: str) -> tuple[int, int]:
        """Bytes of a row of an array on a rank: those it owns, and those with its neighbours' that it touches; at most."""
        array, nest = self.bound.array(name), self.bound.nest
        access = next(a for a in self.bound.accesses if a.array == name)
        own = wide = array.itemsize
        reach = reach_of(self.bound)
        for axis in range(1, len(array.shape)):
            affine = self.bound.axis(access, axis)
            loops = [] if affine is None else [k for k, s in enumerate(nest.space_loops) if s.name in affine.names]
            if len(loops) != 1:
                own, wide = own * array.shape[axis], wide * array.shape[axis]
                continue
            (loop,) = loops
            edges = array.shape[axis] - self.plan.extents[loop]
            width = min(array.shape[axis], self.plan.partition.widest[loop] + max(0, edges))
            cut = self.plan.partition.grid[loop] > 1
            own *= width
            wide *= min(array.shape[axis], width + (reach[loop][1] - reach[loop][0] if cut else 0))
        return own, wide

    @cached_property
    def _row_bytes(self) -> int:
        """Of all streamed arrays together, padding included."""
        return sum(self._widths(name)[1] + _ROW_UNIT for name in self.names)

    @cached_property
    def _fixed_bytes(self) -> int:
        """What a rank has in memory whatever the slabs are: frontiers, with the messages that bring them and take them."""
        total = 0
        for name in self.names:
            own, wide = self._widths(name)
            total += 3 * self.bound.array(name).shape[0] * (wide - own)
        for array in self.bound.arrays:
            if array.name not in self.names:
                total += array.itemsize * math.prod(array.shape)
        return total

    def _memory(self, tile: int, pass_sweeps: int) -> int:
        """Bytes on one rank: BF + TF + RF and the slabs (P3, eq. 1 and 3)."""
        edges = sum(self.bound.array(name).shape[0] for name in self.names) // max(1, len(self.names)) - self.rows
        rows = min(self._slots(tile, pass_sweeps) * tile + max(0, edges), self.rows + max(0, edges)) + 8
        return self._fixed_bytes + rows * self._row_bytes

    @cached_property
    def _volume(self) -> int:
        """Bytes that a rank reads and writes in a pass."""
        written = [name for name in self.names if name in self.bound.nest.written]
        return sum(
            self.bound.array(name).shape[0] * self._widths(name)[0] for names in (self.names, written) for name in names
        )

    def _disk_seconds(self, tile: int) -> float:
        """A pass: all slabs read, and those of written arrays written (P3, eq. 10, with the disk shared).

        Between one slab and the next the disk has less to do, for about as long as a request takes.
        """
        ways = 2 * -(-self.rows // tile)
        return ways * self._between(tile) + self._volume * self.disk.seconds_per_byte * self.ranks_a_node

    def _between(self, tile: int) -> float:
        request = min(REQUEST_BYTES, self._volume / (2 * -(-self.rows // tile)))
        return self.disk.latency / QUEUE_DEPTH + request * self.disk.seconds_per_byte

    def _computing_seconds(self, pass_sweeps: int) -> float:
        """A pass on one rank."""
        return pass_sweeps * self.points * self.seconds_per_point

    def _seconds(self, tile: int, pass_sweeps: int) -> float:
        """T_total (P3, eq. 14), a pass in place of a sweep; filling and emptying the ring and the pipeline comes on top."""
        passes = -(-self.sweeps // pass_sweeps)
        share = min(1.0, tile / self.rows)
        disk, computing = self._disk_seconds(tile), self._computing_seconds(pass_sweeps)
        stages = (self.plan.ranks - 1) + self.skew(tile) * (pass_sweeps - 1)
        fill = share * (disk + stages * computing / pass_sweeps)
        if self.wishes.ring == 1:
            return passes * (disk + computing) + fill
        return passes * max(disk, computing) + fill

    def _best_tile(self, pass_sweeps: int, wished: int | None) -> _Choice | None:
        if wished is not None:
            tiles = [min(wished, self.rows)]
        else:
            tiles = sorted({max(1, round(self.rows / 1.25**k)) for k in range(80) if 1.25**k <= 2 * self.rows})
            # As many rows as tiles work on together, where there are enough.
            tiles = sorted({t if t < 16 or t == self.rows else t // 16 * 16 for t in tiles})
        limit = None if self.wishes.memory is None else self.wishes.memory // self.ranks_a_node
        fitting = [t for t in tiles if limit is None or self._memory(t, pass_sweeps) <= limit]
        if not fitting:
            return None
        timed = {t: self._seconds(t, pass_sweeps) for t in fitting}
        flat = [t for t, seconds in timed.items() if seconds <= FLAT * min(timed.values())]
        least = min(map(self._disk_seconds, flat))
        tile = next(t for t in flat if self._disk_seconds(t) <= FLAT_DISK * least)
        return _Choice(tile, pass_sweeps, timed[tile], self._memory(tile, pass_sweeps))

    def _too_small(self, tile: int | None) -> RefusedError:
        least = self.ranks_a_node * self._memory(tile or 1, self.wishes.pass_sweeps or 1)
        assert self.wishes.memory is not None
        what = f"slabs of {tile} rows" if tile else "slabs of one row"
        ranks = f"{self.ranks_a_node} rank{'s' if self.ranks_a_node > 1 else ''}"
        return RefusedError(
            f"memory of {size(self.wishes.memory)} for {ranks} of a node: expected {size(least)} or more, the "
            f"frontiers and {what}. Give more memory, or more nodes."
        )
