"""Dependences between iterations: flow, anti and output distance vectors, found and checked with isl.

Vectors are in normalised coordinates (every loop ascends). Flow dependences are value-based: from the last write of an
element to the read that sees it. Anti and output dependences are those inside one sweep; across sweeps every rank works
on its own copy of its neighbours' elements, so overwriting them early can do no harm.

Along axes that no loop is cut along, the *local* ones, all elements are taken for one; but not along those where all indices are
remainders over loops, as levels in time are, ``t % 2`` and ``(t + 1) % 2``: with quotients that exist they are affine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lapwing.affine.affine import Affine
from lapwing.affine.integer_sets import (  # fmt: skip
    Map,
    Set,
    Space,
    alike_along,
    disjuncts,
    distances,
    first_point,
    flow,
    some_point,
    without_sources,
    zero_along,
)
from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.guards import is_quotient, occurrences, quasi_affine
from lapwing.loopnest.pieces import Around, Piece, definitions_in, interior
from lapwing.loopnest.refusals import Refusals

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Dependence:
    """Iteration x + vector depends on iteration x, because of an element of ``array``.

    ``source`` and ``target`` are the two accesses as they stand in the file, with their lines.
    """

    kind: str  # flow, anti or output
    vector: Vector
    array: str
    source: str
    source_line: int
    target: str
    target_line: int

    def __str__(self) -> str:
        return (
            f"{self.kind} {list(self.vector)}: {self.source} (line {self.source_line}) "
            f"→ {self.target} (line {self.target_line})"
        )


def find_dependences(nest: ir.LoopNest, around: Around | None = None) -> tuple[Dependence, ...]:
    """All dependences that constrain the order of iterations, flow first, in the order of the reads in the text.

    around: how reads go around axes, in one call; what they read beyond an axis' end is left out otherwise.
    Raises RefusedError where a distance inside a sweep is not constant.
    """
    apart = _levels(nest)
    if apart:
        with suppress(RefusedError):  # of single elements distances may vary that those of whole axes do not have
            return _found_in(_Analysis(nest, around, apart))
    return _found_in(_Analysis(nest, around))


def _found_in(analysis: _Analysis) -> tuple[Dependence, ...]:
    nest = analysis.nest
    found: dict[Dependence, None] = {}
    local = frozenset(name for name, loops in nest.axis_loops.items() if None in loops)
    accesses = [(k, access) for k, access in ir.body_reads(nest.body, local) if access.array in nest.written]
    reads = [(k, read) for k, access in accesses for read in analysis.pieces_of(access)]
    for k, read in reads:
        found.update(dict.fromkeys(analysis.flow(k, read)))
    for _, read in reads:
        found.update(dict.fromkeys(analysis.overwritten("anti", read)))
    for _, write in analysis.stores:
        found.update(dict.fromkeys(analysis.overwritten("output", write)))
    analysis.refusals.raise_if_any()
    return tuple(found)


def distance_vectors(dependences: Iterable[Dependence]) -> tuple[Vector, ...]:
    """The distinct vectors, in order of first appearance: the columns of the dependence matrix D."""
    return tuple(dict.fromkeys(d.vector for d in dependences))


def inside_sweep(dependences: Sequence[Dependence], sweep_depth: int) -> tuple[Dependence, ...]:
    """Dependences between iterations of one sweep: zero along every sweep loop."""
    return tuple(d for d in dependences if not any(d.vector[:sweep_depth]))


def _levels(nest: ir.LoopNest) -> dict[str, tuple[int, ...]]:
    """The local axes, by array, along which the analysis may tell elements apart.

    Not of arrays that are written at several offsets: ranks send what is along a local axis as a whole, and the order in which it
    is stored counts where others store elements of the same. Not where an index may count from the end.
    """
    names = {*nest.loop_names}
    found: dict[str, tuple[int, ...]] = {}
    for array in nest.written:
        loops = nest.axis_loops[array]
        accesses = [o.access for o in occurrences(nest) if o.access.array == array]
        cut = [axis for axis, loop in enumerate(loops) if loop is not None]
        if len({tuple(s.target.affine[axis] for axis in cut) for s in nest.stores if s.target.array == array}) > 1:
            continue
        axes = tuple(
            axis
            for axis, loop in enumerate(loops)
            if loop is None and all(_is_level(access.subscripts[axis], names) for access in accesses)
        )
        if axes:
            found[array] = axes
    return found


def _is_level(node: ir.Expression, names: Collection[str]) -> bool:
    """Whether an index is a sum of numbers and remainders over loop indices, none of them negative."""
    match node:
        case ir.Constant(value=value):
            return type(value) is int and value >= 0
        case ir.Binary(operator="+", left=left, right=right):
            return _is_level(left, names) and _is_level(right, names)
        case ir.Binary(
            operator="-",
            left=ir.Constant(value=int() as most),
            right=ir.Binary(operator="%", right=ir.Constant(value=int() as divisor)) as remainder,
        ):
            return most + 1 >= divisor and _is_level(remainder, names)
        case ir.Binary(operator="%" | "&") if (form := quasi_affine(node)) is not None:
            return all(name in names or is_quotient(name) for name in form[0].names)
    return False


class _Analysis:
    """Accesses of one nest as maps from iterations, in normalised coordinates, to elements.

    levels: the local axes, by array, along which elements are told apart.
    """

    def __init__(
        self, nest: ir.LoopNest, around: Around | None = None, levels: Mapping[str, tuple[int, ...]] | None = None
    ) -> None:
        self.nest = nest
        self.levels = levels or {}
        self.around = around
        self.values = around.integers if around is not None else {}
        self.within: dict[int, tuple[Affine, ...]] = {}  # what is >= 0 where a piece of a read holds, by its identity
        self.kept: list[ir.Access] = []  # so that identities stay those of one piece each
        self.refusals = Refusals(nest.file)
        self.stores = [(k, s.target) for k, s in enumerate(ir.all_statements(nest.body)) if isinstance(s, ir.Store)]
        self.symbols = [name for name, _ in nest.symbols if name not in self.values]
        self.space = Space(self.symbols, nest.loop_names)
        self.mirrored = {loop.name: -Affine.of(loop.name) for loop in nest.loops if loop.step < 0}
        self.sides = [side for loop in nest.loops for side in self._sides(loop)]
        self.points = self.space.where_nonnegative(self.sides)
        self.guards = self._guards()

    def _guards(self) -> dict[int, tuple[Affine, ...]]:
        """What is >= 0 where an access is evaluated, by its identity: over quotients, and names that are integers in any call.

        Not of arrays that are written at several offsets: what a rank leaves as it is it sends all the same, and the order in
        which it is stored again counts where others store the element as well.
        """
        integers = {*self.nest.loop_names}.union(*(loop.bound_names | loop.integers for loop in self.nest.loops))
        offsets = {
            name: {write.affine for _, write in self.stores if write.array == name} for name in self.nest.written
        }
        found: dict[int, tuple[Affine, ...]] = {}
        for occurrence in occurrences(self.nest):
            guards = tuple(
                guard.substitute(self.values).substitute(self.mirrored)
                for guard in occurrence.guards
                if isinstance(guard, Affine) and all(name in integers or is_quotient(name) for name in guard.names)
            )
            if len(offsets.get(occurrence.access.array, ())) != 1:
                guards = ()
            key = id(occurrence.access)
            found[key] = guards if found.get(key, guards) == guards else ()
        return found

    def _sides(self, loop: ir.Loop) -> list[Affine]:
        """What is >= 0 within the bounds of a loop."""
        x = Affine.of(loop.name)
        sides = [(x - start) * loop.step for start in loop.starts]
        sides += [(stop - x) * loop.step - 1 for stop in loop.stops]
        return [side.substitute(self.values).substitute(self.mirrored) for side in sides]

    def pieces_of(self, access: ir.Access) -> list[ir.Access]:
        """A read as one for every combination of the pieces of its indices, of which at most one is done in each iteration."""
        loops = self.nest.axis_loops[access.array]
        known = self.around.pieces if self.around is not None else {}
        if not any(
            (access, axis) in known or (loop and access.affine[axis] is None) for axis, loop in enumerate(loops)
        ):
            return [access]
        definitions = definitions_in(self.nest)
        choices = [
            known.get((access, axis)) or (Piece(interior(access, axis, definitions) or Affine()),)
            for axis in range(len(loops))
        ]
        found = []
        for pieces in itertools.product(*choices):
            found.append(replace(access, affine=tuple(piece.index for piece in pieces)))
            guards = [guard for piece in pieces for guard in piece.guards]
            self.within[id(found[-1])] = tuple(g.substitute(self.values).substitute(self.mirrored) for g in guards)
            self.guards[id(found[-1])] = self.guards.get(id(access), ())
        self.kept += found
        return found

    def flow(self, k: int, read: ir.Access) -> Iterable[Dependence]:
        writes = {m: write for m, write in self.stores if write.array == read.array}
        if not any(self.guards[id(access)] for access in (read, *writes.values())):
            for m, pairs in self._last_writes(k, read, writes):
                for vector in self._distances(pairs, "flow", writes[m], read):
                    if any(vector):
                        yield self._dependence("flow", vector, writes[m], read)
            return
        # Inside a sweep stores are done under their guards. What a sweep leaves as it is counts as stored again in it (see
        # ir.body_reads), at no certain place: the next one has it from there, or a later iteration of the same one from the sweep
        # before.
        inside = {
            (m, vector)
            for m, pairs in self._last_writes(k, read, writes, self._under_guards)
            for vector in self._distances(alike_along(pairs, self.nest.sweep_depth), "flow", writes[m], read)
        }
        for m, vector in sorted(inside):
            if any(vector):
                yield self._dependence("flow", vector, writes[m], read)
        depth = self.nest.sweep_depth
        for m, pairs in self._last_writes(k, read, writes) if depth else ():
            within, carried = self._by_sweeps(distances(pairs))
            left = [vector for vector in within if (m, vector) not in inside]
            for vector in (*carried, *((*v[: depth - 1], v[depth - 1] + 1, *v[depth:]) for v in left)):
                yield self._dependence("flow", vector, writes[m], read)

    def _last_writes(
        self,
        k: int,
        read: ir.Access,
        writes: Mapping[int, ir.Access],
        elements: Callable[[ir.Access], Map] | None = None,
    ) -> list[tuple[int, Map]]:
        elements = elements or self._elements
        return flow((k, elements(read)), [(m, elements(write)) for m, write in writes.items()])

    def overwritten(self, kind: str, access: ir.Access) -> Iterable[Dependence]:
        """Writes, later in the same sweep, of the element that ``access`` touches."""
        for _, write in self.stores:
            if write.array != access.array:
                continue
            same_element = self._under_guards(access).apply_range(self._under_guards(write).reverse())
            pairs = alike_along(same_element, self.nest.sweep_depth)
            for vector in self._distances(pairs, kind, access, write):
                if vector > (0,) * len(vector):
                    yield self._dependence(kind, vector, access, write)

    def _distances(self, pairs: Map, kind: str, source: ir.Access, target: ir.Access) -> list[Vector]:
        """Constant distance vectors; those carried by a sweep loop may vary, and one per piece stands for them."""
        between = distances(pairs)
        inside = zero_along(between, self.nest.sweep_depth)
        if not inside.is_empty() and not inside.is_singleton():
            self.refusals.note(
                target.line,
                f"the {kind} dependence from {source.text} to {target.text} has no constant distance",
                "expected indices that are the loop indices plus constants, in the same order everywhere",
                tiled_only=True,
            )
            return []
        return [vector for part in self._by_sweeps(between) for vector in part]

    def _by_sweeps(self, between: Set) -> tuple[list[Vector], list[Vector]]:
        """Distances inside a sweep and between sweeps, one for every piece."""
        inside = zero_along(between, self.nest.sweep_depth)
        # Apart before pieces are joined: one piece may hold distances inside a sweep and between sweeps.
        carried = between.subtract(inside).coalesce()
        # Two sweep loops of unknown length are any distance apart, and there is no least one.
        first, second = (
            [first_point(piece) if piece.is_bounded() else some_point(piece) for piece in disjuncts(part)]
            for part in (inside, carried)
        )
        return first, second

    def _dependence(self, kind: str, vector: Vector, source: ir.Access, target: ir.Access) -> Dependence:
        return Dependence(kind, vector, source.array, source.text, source.line, target.text, target.line)

    def _elements(self, access: ir.Access, guards: tuple[Affine, ...] = ()) -> Map:
        """From every iteration to the element that it touches there, if it does."""
        elements, known = self._subscripts(access)
        within = (*self.within.get(id(access), ()), *guards, *known)
        quotients = sorted({name for form in within for name in form.names if is_quotient(name)})
        if not quotients:
            points = self.space.where_nonnegative([*self.sides, *within]) if within else self.points
            return self.space.map(points, elements)
        space = Space(self.symbols, [*self.nest.loop_names, *quotients])
        pairs = space.map(space.where_nonnegative([*self.sides, *within]), elements)
        return without_sources(pairs, len(self.nest.loop_names))

    def _under_guards(self, access: ir.Access) -> Map:
        """The same of the iterations that evaluate the access, as far as its guards say."""
        return self._elements(access, self.guards[id(access)])

    def _subscripts(self, access: ir.Access) -> tuple[list[Affine], tuple[Affine, ...]]:
        """The coordinates of the element, and what is >= 0 of the quotients among them. Along other local axes than levels all
        elements are taken for one."""
        subscripts: list[Affine] = []
        known: list[Affine] = []
        for axis, loop in enumerate(self.nest.axis_loops[access.array]):
            affine = access.affine[axis]
            if loop is None:
                if axis not in self.levels.get(access.array, ()):
                    continue
                form = quasi_affine(access.subscripts[axis])
                assert form is not None
                affine, guards = form
                known += [guard.substitute(self.mirrored) for guard in guards if isinstance(guard, Affine)]
            assert affine is not None
            subscripts.append(affine.substitute(self.values).substitute(self.mirrored))
        return subscripts, tuple(known)
