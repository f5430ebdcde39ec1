"""The tiles, copies and operations a calibration measures on every rank at once, because ranks of a node share memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lapwing.calibrate import nests
from lapwing.calibrate.calls import COMPUTE, Call, CallTimer
from lapwing.calibrate.statistics import median_quantity, relative_noise
from lapwing.calibrate.tile import Candidate, Probe, kernel_key, kernel_sample, probe
from lapwing.codegen.tile import tile_source
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.function import NestFunction
from lapwing.loopnest.dependences import Dependence
from lapwing.machine.machine import Copies, Kernel, KernelSample, Quantity
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.inner import choice_by_rule
from lapwing.runtime.arrays.storage import allocate, needed_box
from lapwing.runtime.binding import native
from lapwing.runtime.workspace import Workspace
from lapwing.tiling.faces import faces_of
from lapwing.trace.interference import NOISY, Moment
from lapwing.units import duration, share

_OPERATIONS_A_POINT = 8  # of the nests in nests.py


@dataclass(frozen=True)
class Subject:
    """A nest to be measured, its dependences, and the tiles to measure it with."""

    bound: BoundNest
    dependences: tuple[Dependence, ...]
    candidates: tuple[Candidate, ...]
    arguments: Mapping[str, Any] | None = None


def own_subjects() -> list[Subject]:
    """Nests that stand for many, in blocks that fit a cache and in blocks that do not."""
    heights = (64, 256, 1024)
    sqrt3d = nests.bound_to(nests.sqrt3d, a=("float32", (129, 129, 16385)))
    five = nests.bound_to(nests.gauss_seidel, u=("float64", (4098, 8194)), sweeps=2)
    seven = nests.bound_to(nests.sor3d, u=("float64", (258, 258, 1026)), sweeps=2, omega=1.5)
    return [
        Subject(sqrt3d, nests.sqrt3d.dependences, _blocks([(16, 16, 4096), (64, 128, 16384)], 2, heights)),
        Subject(five, nests.gauss_seidel.dependences, _blocks([(64, 1024), (1024, 8192)], 1, heights)),
        Subject(seven, nests.sor3d.dependences, _blocks([(16, 16, 512), (128, 256, 1024)], 2, (32, 128, 512))),
    ]


def subject_of(nest: NestFunction, arguments: Mapping[str, Any], wishes: Wishes, ranks: int) -> Subject:
    """A user's nest, with the block it would have on so many ranks and tiles around the height it would get.

    Raises RefusedError where it would not run.
    """
    bound = nest.bind(arguments)
    plan = make_plan(bound, nest.dependences, ranks, wishes)
    block = tuple(high - low for low, high in plan.partition.block(0))
    length = plan.tile if plan.mapping is None else block[plan.mapping]
    heights = sorted({max(1, min(length, round(plan.tile * factor))) for factor in (0.125, 0.25, 0.5, 1, 2, 4)})
    return Subject(bound, nest.dependences, _blocks([block], plan.mapping, heights), arguments)


def _blocks(blocks: Sequence[tuple[int, ...]], mapping: int | None, heights: Sequence[int]) -> tuple[Candidate, ...]:
    return tuple((block, mapping, height) for block in blocks for height in heights)


def probe_subject(subject: Subject, budget_seconds: float) -> list[Probe]:
    """This rank's figures. Raises BuildError; RefusedError for a nest without iterations."""
    candidates = subject.candidates
    return probe(subject.bound, subject.dependences, candidates, budget_seconds, arguments=subject.arguments)


def kernel_of(subject: Subject, everyone: Sequence[Sequence[Probe]], overhead: Quantity) -> Kernel:
    """A kernel as the slowest of all ranks at work together has it: the others wait for it."""
    samples = tuple(_slowest([of_rank[k] for of_rank in everyone]) for k in range(len(subject.candidates)))
    source = f"measured: {len(everyone)} ranks at once"
    return Kernel(kernel_key(subject.bound, subject.dependences), subject.bound.nest.name, samples, overhead, source)


def _slowest(probes: Sequence[Probe]) -> KernelSample:
    return kernel_sample(max(probes, key=lambda p: p.step.value))


# -- copies ----------------------------------------------------------------------------------------------------------


def measure_copies(budget_seconds: float) -> Copies:
    """Packing and unpacking of faces that are runs of memory, and of faces whose elements lie apart."""
    subject = nests.bound_to(nests.gauss_seidel, u=("float64", (4098, 4098)), sweeps=2)
    dependences = nests.gauss_seidel.dependences
    heights = (16, 64, 256, 1024)
    along = probe(subject, dependences, _blocks([(256, 4096)], 1, heights), budget_seconds / 2)
    across = probe(subject, dependences, _blocks([(4096, 256)], 0, heights), budget_seconds / 2)
    return fit_copies(_faces(along), _faces(across), itemsize=8)


def _faces(probes: Sequence[Probe]) -> list[tuple[int, float]]:
    """Bytes and seconds of each face: the mean of packing and unpacking."""
    return [(face.bytes, (face.pack.value + face.unpack.value) / 2) for one in probes for face in one.faces]


def fit_copies(contiguous: Sequence[tuple[int, float]], strided: Sequence[tuple[int, float]], itemsize: int) -> Copies:
    """From (bytes, seconds) of single-part faces; slopes are medians of slopes between pairs (Theil and Sen)."""
    per_byte = _slope(contiguous)
    per_strided_byte = _slope(strided)
    start = [seconds - per_byte.value * size for size, seconds in contiguous]
    source = "measured: faces of 5-point tiles"
    per_part = median_quantity([max(0.0, s) for s in start], source)
    return Copies(
        replace(per_byte, source=source),
        Quantity(
            per_strided_byte.value * itemsize, (per_strided_byte.low or 0) * itemsize,
            (per_strided_byte.high or 0) * itemsize, source,
        ),
        per_part,
    )  # fmt: skip


def _slope(points: Sequence[tuple[int, float]]) -> Quantity:
    slopes = [
        max(0.0, (t2 - t1) / (b2 - b1)) for k, (b1, t1) in enumerate(points) for b2, t2 in points[k + 1 :] if b2 != b1
    ]
    return median_quantity(slopes)


# -- single operations -----------------------------------------------------------------------------------------------


def measure_operations(budget_seconds: float) -> dict[str, Quantity]:
    """Seconds of single operations as compiled loops do them, vectorised where the compiler can: for nests never measured."""
    arrays = {"u": ("float64", (64, 512)), "v": ("float64", (64, 512))}
    kinds: dict[str, tuple[NestFunction, dict[str, Any]]] = {
        "load": (nests.copied, {}),
        "add": (nests.added, {"c": 1e-9}),
        "mul": (nests.multiplied, {"c": 1 + 1e-9}),
        "div": (nests.divided, {"c": 1 + 1e-9}),
        "sqrt": (nests.rooted, {}),
    }
    seconds = {}
    for kind, (nest, scalars) in kinds.items():
        bound = nests.bound_to(nest, **arrays, **scalars)
        (one,) = probe(bound, nest.dependences, [((64, 512), 0, 64)], budget_seconds / len(kinds))
        seconds[kind] = Quantity(
            one.step.value / one.points, (one.step.low or 0) / one.points, (one.step.high or 0) / one.points
        )
    return fit_operations(seconds)


def fit_operations(seconds_per_point: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """From seconds per point of a copy ("load") and of loops with eight operations of a kind more."""
    source = "measured: loops of eight, in cache"
    copy = seconds_per_point["load"]
    found = {
        kind: Quantity(
            max(0.0, total.value - copy.value) / _OPERATIONS_A_POINT,
            max(0.0, (total.low or 0) - (copy.high or 0)) / _OPERATIONS_A_POINT,
            max(0.0, (total.high or 0) - (copy.low or 0)) / _OPERATIONS_A_POINT,
            source,
        )
        for kind, total in seconds_per_point.items()
        if kind != "load"
    }
    half = Quantity(copy.value / 2, (copy.low or 0) / 2, (copy.high or 0) / 2, "measured: half a copy, in cache")
    # Comparisons, selections and whole numbers take about what an addition takes.
    return {**found, "load": half, "store": half, "other": replace(found["add"], source="taken to be as an addition")}


# -- noise -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise:
    """How much the same computation varied. ``spread``: half the middle half, relative to the median; ``lost``: the share of
    the time in which something else ran, as CPU time tells and as the mean over the median does, which also shows what a
    machine below this one takes; ``longest``: the longest over the median."""

    spread: float
    lost: float
    longest: float
    count: int
    seconds: float

    @property
    def value(self) -> float:
        return max(self.spread, self.lost)

    @property
    def warning(self) -> str | None:
        """What to say where the machine is too noisy for its figures to be trusted."""
        if self.value <= NOISY:
            return None
        return (
            f"this machine is noisy: of {self.count} equal computations of {duration(self.seconds)} half varied by "
            f"±{share(self.spread)}, {share(self.lost)} of the CPU time was lost to something else, and the longest took "
            f"{self.longest:.1f} times as long. Figures may be off by as much; stop other programs and calibrate again."
        )


def measure_noise(budget_seconds: float) -> Noise:
    """One computation, again and again."""
    bound = nests.bound_to(nests.gauss_seidel, u=("float64", (258, 1026)), sweeps=1)
    form = choice_by_rule(bound, nests.gauss_seidel.dependences).form
    library = native.build_tile(tile_source(bound, faces_of(bound), form), None)
    block = bound.domain.box
    arrays = {a.name: allocate(a, needed_box(bound, a.name, block[1:])) for a in bound.arrays}
    arrays["u"].values[...] = 1.0
    timer = CallTimer(bound, Workspace(bound, library, arrays), None)
    call = [Call(COMPUTE, block)]
    first = min(float(timer.seconds(call)[0]) for _ in range(5))
    count = max(10, int(budget_seconds / first))
    begin = Moment.now()
    seconds = timer.seconds(call * count)
    elapsed, lost = begin.lost_since()
    return noise_of(seconds, lost / elapsed)


def noise_of(seconds: Any, cpu_lost: float = 0.0) -> Noise:
    """From the seconds of computations that should take the same time, and the share of the CPU time that was lost."""
    middle, mean = float(np.median(seconds)), float(np.mean(seconds))
    lost = max(cpu_lost, 1 - middle / mean)
    return Noise(relative_noise(seconds), lost, float(np.max(seconds)) / middle, len(seconds), middle)
