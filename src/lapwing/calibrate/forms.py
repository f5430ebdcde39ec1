"""Inner forms of a nest's tile, measured against each other; what was measured on this machine is remembered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from lapwing.calibrate import remembered
from lapwing.calibrate.tile import Probe, kernel_key, padding_seconds, probe_forms
from lapwing.codegen.temporal.sweeps import may_move_ends
from lapwing.codegen.tile import forms_of
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.planner.inner import evenly
from lapwing.planner.rates import Shape
from lapwing.runtime.arrays.storage import crowded_arrays
from lapwing.runtime.binding import native
from lapwing.tiling.faces import shifts_of
from lapwing.tiling.inner import InnerForm, sweeps_to_join
from lapwing.tiling.sweep_lanes import operations_of, sweep_lanes

# Loop bodies with more operations take three to ten seconds to compile with buffers, and half as long again to run as with their
# sweeps as lanes (docs/performance/kernels.md).
_MOST_IN_BUFFERS = 16

Seconds = Mapping[InnerForm, float]  # per point


@dataclass(frozen=True)
class Compared:
    """What was measured of blocks of one shape: of every form, seconds a point of its tile; ``padding``: seconds for copying
    crowded arrays into padded memory and back, once in a run."""

    tiles: Seconds
    padding: float = 0.0


@dataclass(frozen=True)
class FormProber:
    """Compares the legal inner forms of one nest, in the coordinates that are cut into tiles. Seconds are those of a run for
    each of its points.

    together: so many processes at the same time, as the ranks of a node will be at work, because they share its memory. joins:
    whether several sweeps are done at once where the form can. is_alone: whether one rank does all of the nest; it may then be
    better off with crowded arrays as they are than with a padded copy.
    """

    bound: BoundNest
    dependences: tuple[Dependence, ...]
    together: int
    joins: bool = False
    is_alone: bool = False
    arguments: Mapping[str, Any] | None = None
    announce: native.Announce = None
    _remembered: dict[Shape, Compared] = field(default_factory=dict)

    @cached_property
    def forms(self) -> tuple[InnerForm, ...]:
        forms = forms_of(self.bound, self.dependences)
        if not self.is_alone:
            may_join = may_move_ends(self.bound)
            forms = tuple(f for f in forms if f.sweeps == 1 or not f.skewed or (f.lanes_are_sweeps and may_join))
        elif any(form.lanes_are_sweeps for form in forms) and operations_of(self.bound) > _MOST_IN_BUFFERS:
            forms = tuple(form for form in forms if not form.transposed)
        return (*forms, *(replace(form, in_place=True) for form in forms if self._crowded and form.pads))

    @cached_property
    def _crowded(self) -> tuple[str, ...]:
        return crowded_arrays(self.bound.arrays, self.arguments or {}) if self.is_alone else ()

    def known(self, shape: Shape) -> Seconds:
        """What was measured for blocks of this shape; nothing where none were."""
        self._recall()
        return next((self._of_run(c) for known, c in self._remembered.items() if _alike(known, shape)), {})

    def nearest(self, shape: Shape) -> Seconds:
        """What was measured for blocks most like these; nothing where there were none."""
        self._recall()
        if not self._remembered:
            return {}
        return self._of_run(self._remembered[min(self._remembered, key=lambda known: _distance(known, shape))])

    def _of_run(self, compared: Compared) -> Seconds:
        padding = compared.padding / max(1, self.bound.domain.box_volume)
        return {form: took + padding * form.pads for form, took in compared.tiles.items()}

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
        seconds = {
            form: mean(one[k].seconds_per_point for one in found) * self._share_of_part(form, shape)
            for k, form in enumerate(self.forms)
        }
        padding = (
            padding_seconds(self.bound, self._crowded, self.arguments) if self._crowded and self.arguments else 0.0
        )
        self._recall()
        self._remembered[shape] = Compared(seconds, padding)
        self._write()
        return self._of_run(self._remembered[shape])

    def _share_of_part(self, form: InnerForm, shape: Shape) -> float:
        """What a point of a run takes, of what a point of a tile takes, where sweeps are lanes: these begin and end one after the
        other in every tile, and in every step of ranks twice, for its ends move; and a turn may be of fewer sweeps."""
        lanes = sweep_lanes(self.bound, form.rows) if form.lanes_are_sweeps else None
        if lanes is None or shape.mapping is None:
            return 1.0
        sweeps, k = min(form.sweeps, self._sweeps), shape.mapping
        iterations, moves = (shape.block[k], 0) if self.is_alone else (shape.tile, shifts_of(self.bound)[k])
        of_tile = lanes.share_at_work(k, shape.tile, form.sweeps)
        of_run = lanes.share_at_work(k, iterations, form.sweeps, moves)
        return of_tile / of_run * sweeps / evenly(sweeps_to_join(self.bound), sweeps)

    @cached_property
    def _sweeps(self) -> int:
        """The most sweeps that are done at once."""
        most = max(form.sweeps for form in self.forms) if self.joins else 1
        return min(most, sweeps_to_join(self.bound))

    @cached_property
    def _path(self) -> Path:
        joined = f"-{self._sweeps}-sweeps" if self._sweeps > 1 else ""
        crowded = "-crowded" if self._crowded else ""
        return remembered.path_of(f"{kernel_key(self.bound, self.dependences)}-{self.together}{joined}{crowded}-forms")

    def _recall(self) -> None:
        if self._remembered:
            return
        loops = len(self.bound.nest.space_loops)
        try:
            found = ((shape, self._compared(entry)) for shape, entry in remembered.read(self._path, loops))
            self._remembered.update((shape, known) for shape, known in found if len(known.tiles) == len(self.forms))
        except (ValueError, TypeError):  # a cache: whatever is wrong with it, measure again
            self._remembered.clear()

    def _compared(self, entry: remembered.Entry) -> Compared:
        """Of the forms that this version of Lapwing has."""
        by_name = {_name(form): form for form in self.forms}
        of_name = {(tuple(order), *name): remembered.seconds(took) for (order, *name), took in entry.get("forms", [])}
        tiles = {by_name[name]: took for name, took in of_name.items() if name in by_name}
        return Compared(tiles, remembered.seconds(entry.get("padding", 0.0)))

    def _write(self) -> None:
        entries = [
            (shape, {"forms": [[_name(form), took] for form, took in known.tiles.items()], "padding": known.padding})
            for shape, known in self._remembered.items()
        ]
        remembered.write(self._path, entries)


def _name(form: InnerForm) -> tuple[Any, ...]:
    """What a form is known by where it is remembered."""
    return form.order, form.lanes, form.sweeps, form.coalesced, form.in_place, form.scanned, form.skewed, form.rows


def _alike(one: Shape, other: Shape) -> bool:
    return (one.block, one.mapping) == (other.block, other.mapping)


def _distance(one: Shape, other: Shape) -> float:
    return _apart(one.block, other.block) + (one.mapping != other.mapping)


def _apart(one: Sequence[int], other: Sequence[int]) -> float:
    return sum(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))
