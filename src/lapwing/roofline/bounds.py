"""What limits a tile: a roofline (Williams, Waterman and Patterson, CACM 52, 2009) with ceilings inside the core, as in the
execution-cache-memory model (Treibig and Hager, PPAM 2009; Stengel et al., ICS 2015).

Each bound is the time that one resource of a core needs for a point, were nothing else in the way; a tile takes at least as
long as the largest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.core import Core, measured_type
from lapwing.roofline.counts import elements, kind_of, operations, traffic
from lapwing.roofline.recurrences import recurrence
from lapwing.tiling.chains import latency_cycles, shortened
from lapwing.tiling.inner import InnerForm, planes_in
from lapwing.tiling.transposed import ITEMSIZES, images_of, separate_roots

LATENCY, ARITHMETIC, DIVIDER = "latency", "arithmetic", "divisions and roots"
LOADS, STORES, MEMORY = "loads", "stores", "caches and memory"
_SIXTEEN_FLOATS = 64  # bytes of vectors whose roots are found without the divider


@dataclass(frozen=True)
class Limit:
    """``bounds``: seconds a point, by what they are of; ``measured``: what the tile takes, None where that is not known."""

    bounds: dict[str, float]
    measured: float | None = None

    @property
    def name(self) -> str:
        return max(self.bounds, key=lambda name: self.bounds[name])

    @property
    def bound(self) -> float:
        return self.bounds[self.name]

    @property
    def reached(self) -> float | None:
        """Which part of the speed that the bound allows."""
        return None if not self.measured else self.bound / self.measured

    def to_json(self) -> dict[str, Any]:
        return {
            "by": self.name,
            "seconds_per_point": self.bound,
            "bounds": self.bounds,
            "measured_seconds_per_point": self.measured,
            "reached": self.reached,
        }

    def __str__(self) -> str:
        others = sorted(self.bounds.items(), key=lambda item: -item[1])[1:]
        text = f"{self.name}: bound {1e9 * self.bound:.3g} ns a point"
        if self.reached is not None:
            text += f", reached {self.reached:.0%}"
        shown = [f"{name} {1e9 * seconds:.2g}" for name, seconds in others if seconds]
        return text + (f" ({', '.join(shown)})" if shown else "")


def limit_of(
    bound: BoundNest,
    form: InnerForm,
    core: Core,
    extents: Sequence[int],
    sweeps: int = 1,
    measured: float | None = None,
) -> Limit:
    """bound, extents: of the nest, and of a block, in the coordinates that are cut into tiles. sweeps: how many the tile computes
    at once."""
    loads, stores = _elements(bound, core, form, sweeps)
    bounds = {
        LATENCY: _latency(bound, form, core, extents),
        ARITHMETIC: _operations(bound, core, form, ("simple",)),
        DIVIDER: _operations(bound, core, form, ("/", "sqrt")),
        LOADS: loads,
        STORES: stores,
        MEMORY: _memory(bound, core, extents, sweeps),
    }
    return Limit(bounds, measured)


# -- inside the core -------------------------------------------------------------------------------------------------

_SCAN_CYCLES = 5  # from one vector to the next: an extremum, a sum, and a shuffle of three
_AS_MEASURED = {"-": "+", "max": "min", "unary -": "+"}


def _latency(bound: BoundNest, form: InnerForm, core: Core, extents: Sequence[int]) -> float:
    """Lanes wait for one another no longer than for themselves, and all at the same time. While the last points of a row wait,
    the core is at the next row already. In scans vectors wait for one another."""
    if form.scanned:
        size = max(ITEMSIZES.get(array.dtype, 8) for array in bound.arrays if array.name in bound.nest.written)
        return _SCAN_CYCLES * core.cycle / (core.vector_bytes // size)
    loop = bound.nest.space_loops[form.order[-1]]
    body = shortened(bound.body, loop.name, loop.step)
    seconds = recurrence(body, loop.name, loop.step, lambda node: _node_latency(node, core))
    links = recurrence(body, loop.name, loop.step, _links)
    alone = 1 - core.window / max(1.0, links * extents[form.order[-1]])
    rows = 2 * core.vector_bytes // 8 if form.skewed else form.lanes
    side_by_side = form.sweeps * form.rows if form.lanes_are_sweeps else rows
    return max(0.0, alone) * seconds / side_by_side


def _links(node: t.Typed) -> float:
    """One for an operation that takes an instruction at least."""
    return float(isinstance(node, t.Operation) and kind_of(node) is not None)


def _node_latency(node: t.Typed, core: Core) -> float:
    if isinstance(node, t.Operation) and not powers.is_power(node):
        computing = node.operands[0].dtype
        kind = f"{_AS_MEASURED.get(node.operator, node.operator)} {computing}"
        if kind in core.latency:
            return core.latency[kind]
    if isinstance(node, t.Select):
        return core.cycle
    return latency_cycles(node) * core.cycle


@dataclass(frozen=True)
class _Width:
    """How many elements one operation has: ``lanes`` where no more are side by side, one where a chain keeps them apart."""

    core: Core
    lanes: int | None

    def seconds(self, kind: str, itemsize: int) -> float:
        """For one element: narrow vectors take less time than whole ones, and as much as a scalar at least."""
        whole = self.core.vector[kind] / (self.core.vector_bytes // itemsize)
        return whole if self.lanes is None else max(whole, self.core.scalar[kind] / self.lanes)


def _width(form: InnerForm, core: Core) -> _Width:
    if form.lanes > 1:
        return _Width(core, form.lanes)
    return _Width(core, None if form.independent or form.scanned or form.skewed else 1)


def _operations(bound: BoundNest, core: Core, form: InnerForm, kinds: Sequence[str]) -> float:
    width = _width(form, core)
    return sum(
        count * width.seconds(f"{kind} {measured_type(dtype)}", np.dtype(dtype).itemsize)
        for (kind, dtype), count in _counted(bound, core, form).items()
        if kind in kinds
    )


def _counted(bound: BoundNest, core: Core, form: InnerForm) -> Counter[tuple[str, str]]:
    """Operations of a point. In buffers those that several iterations want are done once, and some without the divider."""
    planes = planes_in(bound, form)
    if planes is None:
        return operations(bound.body)
    images = images_of(bound, planes)

    def of(node: t.Typed) -> t.Typed:
        return images[node][0].value if node in images else t.mapped(node, of)

    body = replace(bound.body, statements=tuple(t.with_values(s, of) for s in bound.body.statements))
    refined = separate_roots(bound, planes) if core.vector_bytes == _SIXTEEN_FLOATS else {}
    return operations(body, by_reciprocals=True, refined=refined)


def _elements(bound: BoundNest, core: Core, form: InnerForm, sweeps: int) -> tuple[float, float]:
    """For loading and for storing. Rows of a step that are not copied into buffers are gone through element by element; what is
    copied is loaded and stored once more on the way in, and on the way out, for all sweeps."""
    loop = bound.nest.space_loops[form.order[-1]]
    found = elements(bound, loop.name, loop.step)
    width = _width(form, core) if form.lanes == 1 or form.transposed else _Width(core, 1)
    loads = sum(width.seconds("load", size) for size in found.loaded) + len(found.gathered) * core.scalar["load"]
    stores = sum(width.seconds("store", size) for size in found.stored)
    for size, times in _copied(bound, form):
        loads += times * width.seconds("load", size) / sweeps
        stores += times * width.seconds("store", size) / sweeps
    return loads, stores


def _copied(bound: BoundNest, form: InnerForm) -> Iterator[tuple[int, int]]:
    """Of every plane that is copied into buffers, the bytes of an element, and how often it is copied."""
    planes = planes_in(bound, form)
    for plane in planes.planes if planes is not None else ():
        yield ITEMSIZES[plane.dtype], plane.reads_old + (plane.written and plane.readers is None)


# -- outside of it ---------------------------------------------------------------------------------------------------


def _memory(bound: BoundNest, core: Core, extents: Sequence[int], sweeps: int) -> float:
    """Every sweep, or so many at once, goes through all that the block touches, wherever that is from one sweep to the next."""
    moved = traffic(bound, extents)
    read, update = core.seconds_per_byte(moved.touched)
    seconds = (moved.touched - moved.written) * read + moved.written * update
    return seconds / sweeps / max(1, math.prod(extents))
