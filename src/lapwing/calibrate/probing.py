"""Short probes of the real tile, for plans: what was measured before on this machine is not measured again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from lapwing.calibrate import remembered
from lapwing.calibrate.tile import Probe, kernel_key, probe
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.planner.plan import SLICE_SECONDS
from lapwing.planner.rates import CopySeconds, Sample, Shape
from lapwing.runtime.binding import native
from lapwing.tiling.inner import InnerForm


@dataclass(frozen=True)
class Prober:
    """Measures tiles of one nest; call it with shapes and a budget in seconds, and it gives all it knows.

    together: so many at the same time, as the ranks of a node will be at work, because they share its memory. form: of
    the tile; None is the one taken by rule.
    """

    bound: BoundNest
    dependences: tuple[Dependence, ...]
    together: int
    arguments: Mapping[str, Any] | None = None
    announce: native.Announce = None
    form: InnerForm | None = None
    _remembered: dict[Shape, Sample] = field(default_factory=dict)

    def __call__(self, shapes: Sequence[Shape], budget_seconds: float, again: bool = False) -> dict[Shape, Sample]:
        """again: measure also what is known, and take the mean. Raises BuildError where there is no compiler."""
        if not self._remembered:
            self._remembered.update(self._read())
        wanted = [shape for shape in shapes if again or shape not in self._remembered]
        if wanted:
            for shape, sample in self._measure(wanted, budget_seconds).items():
                known = self._remembered.get(shape)
                self._remembered[shape] = sample if known is None else _mean(known, sample)
            self._write()
        return dict(self._remembered)

    def _measure(self, shapes: Sequence[Shape], budget_seconds: float) -> dict[Shape, Sample]:
        def alone(_: int) -> list[Probe]:
            return probe(
                self.bound,
                self.dependences,
                [(s.block, s.mapping, s.tile) for s in shapes],
                budget_seconds,
                arguments=self.arguments,
                slice_seconds=SLICE_SECONDS,
                all_faces=False,
                announce=self.announce,
                form=self.form,
                joined=[s.joined for s in shapes],
            )

        # The time is spent in C, with Python's lock released.
        with ThreadPoolExecutor(self.together) as pool:
            found = list(pool.map(alone, range(self.together)))
        return {shape: _sample([one[k] for one in found]) for k, shape in enumerate(shapes)}

    @cached_property
    def _path(self) -> Path:
        return remembered.path_of(f"{kernel_key(self.bound, self.dependences, self.form)}-{self.together}")

    def _read(self) -> dict[Shape, Sample]:
        loops = len(self.bound.nest.space_loops)
        try:
            return {shape: _sample_of(entry) for shape, entry in remembered.read(self._path, loops)}
        except (ValueError, KeyError, TypeError):  # a cache: whatever is wrong with it, measure again
            return {}

    def _write(self) -> None:
        entries = [
            (
                shape,
                {
                    "seconds_per_point": sample.seconds_per_point,
                    "copies": [[*place, *seconds] for place, seconds in sample.copies.items()],
                },
            )
            for shape, sample in self._remembered.items()
        ]
        remembered.write(self._path, entries)


def _sample(probes: Sequence[Probe]) -> Sample:
    """The mean of those that were at work together: what disturbs one of them now disturbs another one later."""
    found: dict[tuple[int, int], list[CopySeconds]] = {}
    for one in probes:  # which do not all come by all faces, where steps differ
        for face in one.faces:
            if face.bytes:
                seconds = CopySeconds(face.pack.value / face.bytes, face.unpack.value / face.bytes)
                found.setdefault((face.axis, face.direction), []).append(seconds)
    copies = {
        place: CopySeconds(mean(s.pack for s in seconds), mean(s.unpack for s in seconds))
        for place, seconds in found.items()
    }
    return Sample(mean(one.seconds_per_point for one in probes), copies)


def _mean(one: Sample, other: Sample) -> Sample:
    return Sample((one.seconds_per_point + other.seconds_per_point) / 2, other.copies)


def _sample_of(entry: remembered.Entry) -> Sample:
    seconds = remembered.seconds
    copies = {(axis, to): CopySeconds(seconds(pack), seconds(unpack)) for axis, to, pack, unpack in entry["copies"]}
    return Sample(seconds(entry["seconds_per_point"]), copies)
