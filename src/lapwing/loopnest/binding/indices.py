"""Whether every index lies inside its array: proved for affine ones, over the loops and conditions that they stand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.binding.guards import Guards, NotZero, Occurrence, occurrences
from lapwing.loopnest.domain import Domain, NormalLoop
from lapwing.loopnest.refusals import Refusals

Place = tuple[ir.Access, int]  # an index: its access and axis


@dataclass
class Indices:
    """``wraps``: those that count from the end, with the axis's size. ``looked_up``: those that are affine and checked as they
    are used: they count from the start in one place and from the end in another, or are not known to be inside."""

    wraps: dict[Place, int] = field(default_factory=dict)
    looked_up: set[Place] = field(default_factory=set)


def normal_loop(name: str, step: int, start: Affine, stop: Affine) -> NormalLoop:
    """A loop in normalised coordinates, with bounds over outer ones. Of steps beyond 1 the places between are in it as well."""
    return NormalLoop(name, 1, start, stop) if step > 0 else NormalLoop(name, -1, -start, -stop)


def check_indices(
    nest: ir.LoopNest,
    shapes: Mapping[str, Sequence[int]],
    integers: Mapping[str, int],
    parameters: Mapping[str, Any],
    domain: Domain,
    refusals: Refusals,
) -> Indices:
    """Check every affine index against its array; what leaves it is noted in refusals.

    shapes: of arrays that were not refused. integers: those of the parameters that are; of parameters that were refused nothing
    is said. domain: of the nest's own loops.
    """
    check = _Check(nest, shapes, integers, parameters, refusals, {(): domain})
    for occurrence in occurrences(nest):
        check.look_at(occurrence)
    return check.result()


@dataclass
class _Check:
    """See check_indices. domains: inside of inner loops, the outermost first."""

    nest: ir.LoopNest
    shapes: Mapping[str, Sequence[int]]
    integers: Mapping[str, int]
    parameters: Mapping[str, Any]
    refusals: Refusals
    domains: dict[tuple[ir.For, ...], Domain]
    from_start: set[Place] = field(default_factory=set)
    indices: Indices = field(default_factory=Indices)

    @cached_property
    def stored(self) -> set[int]:
        """The accesses that are stored to, by identity."""
        return {id(store.target) for store in self.nest.stores}

    def look_at(self, occurrence: Occurrence) -> None:
        access = occurrence.access
        shape = self.shapes.get(access.array)
        if shape is None:
            return
        if len(access.subscripts) != len(shape):
            self.refusals.note(
                access.line,
                f"{access.text} has {len(access.subscripts)} indices but {access.array} has {len(shape)} axes "
                f"(shape {tuple(shape)})",
                "index every axis",
            )
            return
        domain = self._inside(occurrence.loops)
        if domain.is_empty:
            return
        for axis, affine in enumerate(access.affine):
            if affine is not None:
                self._look_at_axis(occurrence, axis, affine, domain)

    def _inside(self, loops: tuple[ir.For, ...]) -> Domain:
        """The domain with the inner loops whose bounds are affine."""
        if loops not in self.domains:
            outer, loop = self._inside(loops[:-1]), loops[-1]
            start, stop = (None if b is None else b.substitute(self.integers) for b in loop.affine)
            names = {known.name for known in outer.loops}
            if start is not None and stop is not None and start.names | stop.names <= names and loop.index not in names:
                bounds = outer.normalised(start), outer.normalised(stop)
                outer = Domain((*outer.loops, normal_loop(loop.index, loop.step, *bounds)))
            self.domains[loops] = outer
        return self.domains[loops]

    def _look_at_axis(self, occurrence: Occurrence, axis: int, affine: Affine, domain: Domain) -> None:
        access, extent = occurrence.access, self.shapes[occurrence.access.array][axis]
        names = {loop.name for loop in domain.loops}
        fixed = domain.normalised(affine.substitute(self.integers))
        guards = self._bounds_from(occurrence.guards, domain, names)
        if unknown := fixed.names - names:
            if unknown <= set(self.parameters):
                self.refusals.note(
                    access.line,
                    f"index {axis + 1} of {access.text} is not an integer",
                    "pass an int, or write int(…) around it before the loops",
                )
            elif unknown <= {loop.index for loop in occurrence.loops}:
                self.indices.looked_up.add((access, axis))
            return
        if guards and id(access) in self.stored and not self._is_whole(access.array, axis):
            self._check_written_box(access, axis, domain.range_of(fixed))
        reached = domain.range_of(fixed, guards)
        if reached is None:
            return
        if reached[0] >= 0 and reached[1] < extent:
            self.from_start.add((access, axis))
        elif -extent <= reached[0] and reached[1] < 0 and self._is_whole(access.array, axis):
            self.indices.wraps[access, axis] = extent
        elif self.nest.is_sequential or (
            -extent <= reached[0] and reached[1] < extent and self._is_whole(access.array, axis)
        ):
            self.indices.looked_up.add((access, axis))
        else:
            worst = reached[0] if reached[0] < 0 else reached[1]
            self.refusals.note(
                access.line,
                f"{access.text}: index {axis + 1} reaches {worst}, but {access.array} has {extent} elements along axis "
                f"{axis} (indices 0 to {extent - 1})",
                "Shorten the loop's range or enlarge the array",
                tiled_only=not occurrence.is_certain or (-extent <= reached[0] and reached[1] < extent),
            )

    def _check_written_box(self, access: ir.Access, axis: int, reached: tuple[int, int] | None) -> None:
        """What ranks store is sent and collected in boxes of all their iterations, whatever guards say.

        reached: by the index, guards apart."""
        extent = self.shapes[access.array][axis]
        if reached is not None and not (reached[0] >= 0 and reached[1] < extent):
            self.refusals.note(
                access.line,
                f"{access.text} is stored under a condition that keeps it inside {access.array}, and the loops go beyond",
                "let the loops end where the array does",
                tiled_only=True,
            )

    def _bounds_from(self, guards: Guards, domain: Domain, names: set[str]) -> list[Affine]:
        """Guards as expressions over the domain that are not negative."""
        bounds: list[Affine] = []
        holes: list[Affine] = []
        for guard in guards:
            affine = (guard.affine if isinstance(guard, NotZero) else guard).substitute(self.integers)
            if affine.names <= names:
                (holes if isinstance(guard, NotZero) else bounds).append(domain.normalised(affine))
        for hole in holes:
            reached = domain.range_of(hole, bounds)
            if reached is not None and reached[0] == 0:
                bounds.append(hole - Affine(1))
            elif reached is not None and reached[1] == 0:
                bounds.append(-hole - Affine(1))
        return bounds

    def _is_whole(self, array: str, axis: int) -> bool:
        """Whether every rank has all that there is along an axis, so that an index may count from its end."""
        return array not in self.nest.written or self.nest.axis_loops[array][axis] is None

    def result(self) -> Indices:
        indices = self.indices
        indices.looked_up |= {place for place in indices.wraps if place in self.from_start}
        for place in indices.looked_up:
            indices.wraps.pop(place, None)
        return indices
