"""Whether every index lies inside its array: proved for affine ones, over the loops and conditions that they stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.domain import Domain, NormalLoop
from lapwing.loopnest.guards import Guards, NotZero, Occurrence, around_all, is_quotient, occurrences
from lapwing.loopnest.normalisation.counted_loops import Unpacking
from lapwing.loopnest.normalisation.nests.forward_substitution import Taken
from lapwing.loopnest.refusals import Refusals

Place = tuple[ir.Access, int]  # an index: its access and axis


@dataclass
class Indices:
    """``wraps``: those that count from the end, with the axis's size. ``looked_up``: those that are affine and checked as they
    are used: they count from the start in one place and from the end in another, or are not known to be inside."""

    wraps: dict[Place, int] = field(default_factory=dict)
    looked_up: set[Place] = field(default_factory=set)


def normal_loop(name: str, step: int, starts: Iterable[Affine], stops: Iterable[Affine]) -> NormalLoop:
    """A loop in normalised coordinates, with bounds over outer ones. Of steps beyond 1 the places between are in it as well."""
    sign = 1 if step > 0 else -1
    lowers, uppers = (tuple(bound * sign for bound in bounds) for bounds in (starts, stops))
    return NormalLoop(name, sign, *without_looser(lowers, uppers))


def without_looser(lowers: Sequence[Affine], uppers: Sequence[Affine]) -> tuple[tuple[Affine, ...], tuple[Affine, ...]]:
    """The bounds of a loop without those that are surely looser than others."""
    return _of_numbers(max, lowers), _of_numbers(min, uppers)


def _of_numbers(which: Callable[[Iterable[int]], int], bounds: Sequence[Affine]) -> tuple[Affine, ...]:
    """Bounds, each once, of which those that are numbers are one number."""
    numbers = [bound.constant for bound in bounds if not bound.terms]
    others = dict.fromkeys(bound for bound in bounds if bound.terms)
    return (*([Affine(which(numbers))] if numbers else []), *others)


def tightened(nest: ir.LoopNest, integers: Mapping[str, int], domain: Domain) -> Domain:
    """The domain without rows at its ends, along space loops, in which no iteration does anything."""
    guards = around_all(nest)
    if not guards or domain.is_empty:
        return domain
    bounds = bounds_from(guards, integers, domain)
    found = list(domain.loops)
    for k, loop in enumerate(domain.loops[nest.sweep_depth :], nest.sweep_depth):
        reached = domain.range_of(Affine.of(loop.name), bounds)
        low, high = (0, -1) if reached is None else reached
        lowers, uppers = (*loop.lowers, Affine(low)), (*loop.uppers, Affine(high + 1))
        found[k] = NormalLoop(loop.name, loop.step, *without_looser(lowers, uppers))
    return Domain(tuple(found))


def bounds_from(guards: Guards, integers: Mapping[str, int], domain: Domain) -> list[Affine]:
    """Guards as expressions over the domain, and quotients, that are not negative."""
    names = {loop.name for loop in domain.loops}
    bounds: list[Affine] = []
    holes: list[Affine] = []
    for guard in guards:
        affine = (guard.affine if isinstance(guard, NotZero) else guard).substitute(integers)
        unknown = affine.names - names
        if isinstance(guard, NotZero) and not unknown:
            holes.append(domain.normalised(affine))
        elif not isinstance(guard, NotZero) and all(map(is_quotient, unknown)):
            bounds.append(domain.normalised(affine))
    for hole in holes:
        reached = domain.range_of(hole, bounds)
        if reached is not None and reached[0] == 0:
            bounds.append(hole - Affine(1))
        elif reached is not None and reached[1] == 0:
            bounds.append(-hole - Affine(1))
    return bounds


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
    check = _Check(nest, shapes, integers, refusals, {(): domain}, parameters)
    for occurrence in occurrences(nest):
        check.look_at(occurrence)
    for unpacking in nest.unpackings:
        check.look_at_unpacking(unpacking)
    return check.result()


def check_text(
    nest: ir.LoopNest,
    shapes: Mapping[str, Sequence[int]],
    integers: Mapping[str, int],
    domain: Domain,
    refusals: Refusals,
) -> None:
    """Check that a nest does what the text does that it was made of, where that has fewer loops: iterations of outer loops do
    some of it whether or not there are any of those inside. What may not be so is noted in refusals.

    domain: of the loops as they are written, with iterations that do nothing.
    """
    text = _Text(nest, shapes, integers, refusals, {(): domain})
    for outer, affine in nest.assumed:
        text.look_at_assumed(outer, affine)
    for occurrence in occurrences(nest):
        access = occurrence.access
        if len(access.subscripts) == len(shapes.get(access.array, ())):
            for taken in access.taken:
                text.look_at_taken(occurrence, taken)


@dataclass
class _Domains:
    """domains: inside of inner loops, the outermost first."""

    nest: ir.LoopNest
    shapes: Mapping[str, Sequence[int]]
    integers: Mapping[str, int]
    refusals: Refusals
    domains: dict[tuple[ir.For, ...], Domain]

    def _inside(self, loops: tuple[ir.For, ...]) -> Domain:
        """The domain with the inner loops whose bounds are affine."""
        if loops not in self.domains:
            outer, loop = self._inside(loops[:-1]), loops[-1]
            start, stop = (None if b is None else b.substitute(self.integers) for b in loop.affine)
            names = {known.name for known in outer.loops}
            if start is not None and stop is not None and start.names | stop.names <= names and loop.index not in names:
                bounds, step = (outer.normalised(start), outer.normalised(stop)), loop.fixed_step
                assert step is not None, "bounds are affine only with a step that is known"
                outer = Domain((*outer.loops, normal_loop(loop.index, step, *([bound] for bound in bounds))))
            self.domains[loops] = outer
        return self.domains[loops]


class _Text(_Domains):
    """See check_text."""

    def look_at_assumed(self, outer: int, affine: Affine) -> None:
        """Refuse the nest where what was assumed is negative in some iteration of so many outer loops."""
        domain, loop = Domain(self.domains[()].loops[:outer]), self.nest.loops[outer]
        index = domain.normalised(affine.substitute(self.integers))
        if not domain.is_empty and self._least(index, domain) < 0:
            self.refusals.note(
                loop.line,
                f"loop {loop.name} may have no iteration in some of those around it",
                "what stands beside it is done all the same, loop by loop",
                tiled_only=True,
            )

    def _least(self, index: Affine, domain: Domain) -> int:
        """The smallest number that an expression is in a domain; -1 where that is not known."""
        if not index.names <= {loop.name for loop in domain.loops}:
            return -1
        reached = domain.range_of(index)
        return 0 if reached is None else reached[0]

    def look_at_taken(self, occurrence: Occurrence, taken: Taken) -> None:
        """Refuse the nest where the text may take an element, or a row, that is not there."""
        access, loops = occurrence.access, self._inside(occurrence.loops).loops
        domain = Domain(tuple(loop for loop in loops if loop.name in taken.loops or loop.name == ir.WHOLE))
        if domain.is_empty:
            return
        known = {loop.name for loop in domain.loops}
        guards = bounds_from(occurrence.guards if taken.is_guarded else (), self.integers, domain)
        for axis, (affine, extent) in enumerate(zip(access.affine, self.shapes[access.array], strict=True)):
            if taken.axes is not None and axis >= taken.axes:
                break
            index = None if affine is None else domain.normalised(affine.substitute(self.integers))
            if index is not None and taken.loops | index.names <= known:
                reached = domain.range_of(index, guards)
                if reached is None or (-extent <= reached[0] and reached[1] < extent):
                    continue
            self.refusals.note(
                access.line,
                f"index {axis + 1} of {access.text} may leave {access.array}, which has {extent} elements along axis {axis}, "
                "where it is taken and not read",
                "the plain loop raises IndexError there",
                tiled_only=True,
            )


@dataclass
class _Check(_Domains):
    """See check_indices."""

    parameters: Mapping[str, Any]
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
        if id(access) in self.stored and (occurrence.guards or occurrence.loops):
            self._check_written_box(occurrence)
        domain = self._inside(occurrence.loops)
        if domain.is_empty:
            return
        for axis, affine in enumerate(access.affine):
            if affine is not None:
                self._look_at_axis(occurrence, axis, affine, domain)

    def look_at_unpacking(self, unpacking: Unpacking) -> None:
        shape = self.shapes.get(unpacking.array, ())
        if unpacking.axis is None:
            if unpacking.array in self.shapes and len(shape) != unpacking.names:
                self.refusals.note(
                    unpacking.line,
                    f"{unpacking.names} names take the shape of {unpacking.array}, which has {len(shape)} axes",
                    "the plain loop raises ValueError: name as many as there are axes",
                )
        elif unpacking.axis < len(shape) and shape[unpacking.axis] != unpacking.names:
            self.refusals.note(
                unpacking.line,
                f"{unpacking.names} names take {shape[unpacking.axis]} elements of {unpacking.array}",
                "the plain loop raises ValueError: name as many as there are along the axis",
            )

    def _look_at_axis(self, occurrence: Occurrence, axis: int, affine: Affine, domain: Domain) -> None:
        access, extent = occurrence.access, self.shapes[occurrence.access.array][axis]
        names = {loop.name for loop in domain.loops}
        fixed = domain.normalised(affine.substitute(self.integers))
        guards = bounds_from(occurrence.guards, self.integers, domain)
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
        reached = domain.range_of(fixed, guards)
        if reached is None:
            return
        if axis in access.from_end and reached[0] < 0:
            self.refusals.note(
                access.line,
                f"{access.text}: index {axis + 1} reaches {-reached[0]} before the start of {access.array}, which has {extent} "
                f"elements along axis {axis}",
                "Shorten the loop's range or enlarge the array",
            )
            return
        if reached[0] >= 0 and reached[1] < extent:
            self.from_start.add((access, axis))
        elif -extent <= reached[0] and reached[1] < 0 and self._is_whole(access.array, axis):
            self.indices.wraps[access, axis] = extent
        elif self.nest.is_sequential or (
            -extent <= reached[0] and reached[1] < extent
            and (self._is_whole(access.array, axis) or id(access) not in self.stored)
        ):  # fmt: skip
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

    def _check_written_box(self, occurrence: Occurrence) -> None:
        """What ranks store is sent and collected in boxes of all their iterations, whatever guards and inner loops say."""
        access, domain = occurrence.access, self._inside(())
        if domain.is_empty:
            return
        names = {loop.name for loop in domain.loops}
        for axis, (affine, extent) in enumerate(zip(access.affine, self.shapes[access.array], strict=True)):
            if affine is None or self._is_whole(access.array, axis):
                continue
            index = domain.normalised(affine.substitute(self.integers))
            reached = domain.range_of(index) if index.names <= names else None
            if reached is not None and not (reached[0] >= 0 and reached[1] < extent):
                why = "under a condition that keeps" if occurrence.guards else "in inner loops that keep"
                self.refusals.note(
                    access.line,
                    f"{access.text} is stored {why} it inside {access.array}, and the loops go beyond",
                    "let the loops end where the array does",
                    tiled_only=True,
                )

    def _is_whole(self, array: str, axis: int) -> bool:
        """Whether every rank has all that there is along an axis, so that an index may count from its end."""
        return array not in self.nest.written or self.nest.axis_loops[array][axis] is None

    def result(self) -> Indices:
        indices = self.indices
        indices.looked_up |= {place for place in indices.wraps if place in self.from_start}
        for place in indices.looked_up:
            indices.wraps.pop(place, None)
        return indices
