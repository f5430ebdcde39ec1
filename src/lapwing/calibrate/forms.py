"""Inner forms of a nest's tile, measured against each other; what was measured on this machine is remembered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from lapwing.calibrate import remembered
from lapwing.calibrate.tile import Probe, kernel_key, probe_forms
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.planner.rates import Shape
from lapwing.runtime.binding import native
from lapwing.tiling.inner import InnerForm, legal_forms, sweeps_to_join

Seconds = Mapping[InnerForm, float]  # per point


@dataclass(frozen=True)
class FormProber:
    """Compares the legal inner forms of one nest, in the coordinates that are cut into tiles.

    together: so many processes at the same time, as the ranks of a node will be at work, because they share its memory. joins:
    whether several sweeps are done at once where the form can.
    """

    bound: BoundNest
    dependences: tuple[Dependence, ...]
    together: int
    joins: bool = False
    arguments: Mapping[str, Any] | None = None
    announce: native.Announce = None
    _remembered: dict[Shape, Seconds] = field(default_factory=dict)

    @cached_property
    def forms(self) -> tuple[InnerForm, ...]:
        return legal_forms(self.bound, self.dependences)

    def known(self, shape: Shape) -> Seconds:
        """What was measured for blocks of this shape; nothing where none were."""
        self._recall()
        return next((s for known, s in self._remembered.items() if _alike(known, shape)), {})

    def nearest(self, shape: Shape) -> Seconds:
        """What was measured for blocks most like these; nothing where there were none."""
        self._recall()
        if not self._remembered:
            return {}
        return self._remembered[min(self._remembered, key=lambda known: _distance(known, shape))]

    def measure(self, shape: Shape, budget_seconds: float) -> Seconds:
        """Measure tiles of this shape, building them apart. Raises BuildError where there is no compiler."""
        candidate = (shape.block, shape.mapping, shape.tile)

        def alone(_: int) -> list[Probe]:
            return probe_forms(
                self.bound,
                candidate,
                self.forms,
                budget_seconds,
                most_sweeps=self._sweeps,
                arguments=self.arguments,
                announce=self.announce,
            )

        # The time is spent in C, with Python's lock released.
        with ThreadPoolExecutor(self.together) as pool:
            found = list(pool.map(alone, range(self.together)))
        seconds = {form: mean(one[k].seconds_per_point for one in found) for k, form in enumerate(self.forms)}
        self._recall()
        self._remembered[shape] = seconds
        self._write()
        return seconds

    @cached_property
    def _sweeps(self) -> int:
        """The most sweeps that are done at once."""
        most = max(form.sweeps for form in self.forms) if self.joins else 1
        return min(most, sweeps_to_join(self.bound))

    @cached_property
    def _path(self) -> Path:
        joined = f"-{self._sweeps}-sweeps" if self._sweeps > 1 else ""
        return remembered.path_of(f"{kernel_key(self.bound, self.dependences)}-{self.together}{joined}-forms")

    def _recall(self) -> None:
        if self._remembered:
            return
        loops = len(self.bound.nest.space_loops)
        try:
            found = ((shape, self._seconds(entry)) for shape, entry in remembered.read(self._path, loops))
            self._remembered.update((shape, seconds) for shape, seconds in found if len(seconds) == len(self.forms))
        except (ValueError, TypeError):  # a cache: whatever is wrong with it, measure again
            self._remembered.clear()

    def _seconds(self, entry: remembered.Entry) -> Seconds:
        """Of the forms that this version of Lapwing has."""
        by_name = {(form.order, form.lanes, form.coalesced): form for form in self.forms}
        of_name = {
            (tuple(order), lanes, coalesced): remembered.seconds(took)
            for order, lanes, coalesced, took in entry.get("forms", [])
        }
        return {by_name[name]: took for name, took in of_name.items() if name in by_name}

    def _write(self) -> None:
        entries = [
            (shape, {"forms": [[form.order, form.lanes, form.coalesced, took] for form, took in seconds.items()]})
            for shape, seconds in self._remembered.items()
        ]
        remembered.write(self._path, entries)


def _alike(one: Shape, other: Shape) -> bool:
    return (one.block, one.mapping) == (other.block, other.mapping)


def _distance(one: Shape, other: Shape) -> float:
    return _apart(one.block, other.block) + (one.mapping != other.mapping)


def _apart(one: Sequence[int], other: Sequence[int]) -> float:
    return sum(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))
