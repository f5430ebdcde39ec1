"""Dependences between iterations: flow, anti and output distance vectors, found and checked with isl.

Vectors are in normalised coordinates (every loop ascends). Flow dependences are value-based: from the last write of an
element to the read that sees it. Anti and output dependences are those inside one sweep; across sweeps every rank works
on its own copy of its neighbours' elements, so overwriting them early can do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import islpy as isl

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
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


def find_dependences(nest: ir.LoopNest) -> tuple[Dependence, ...]:
    """All dependences that constrain the order of iterations, flow first, in the order of the reads in the text.

    Raises RefusedError where a distance inside a sweep is not constant.
    """
    analysis = _Analysis(nest)
    found: dict[Dependence, None] = {}
    reads = [
        (k, access)
        for k, statement in enumerate(nest.body)
        for access in ir.statement_reads(statement)
        if access.array in nest.written
    ]
    for k, read in reads:
        found.update(dict.fromkeys(analysis.flow(k, read)))
    for k, read in reads:
        found.update(dict.fromkeys(analysis.overwritten("anti", k, read)))
    for k, statement in enumerate(nest.body):
        if isinstance(statement, ir.Store):
            found.update(dict.fromkeys(analysis.overwritten("output", k, statement.target)))
    analysis.refusals.raise_if_any()
    return tuple(found)


def distance_vectors(dependences: Iterable[Dependence]) -> tuple[Vector, ...]:
    """The distinct vectors, in order of first appearance: the columns of the dependence matrix D."""
    return tuple(dict.fromkeys(d.vector for d in dependences))


def inside_sweep(dependences: Sequence[Dependence], sweep_depth: int) -> tuple[Dependence, ...]:
    """Dependences between iterations of one sweep: zero along every sweep loop."""
    return tuple(d for d in dependences if not any(d.vector[:sweep_depth]))


class _Analysis:
    """Relations of one nest, written in isl's own notation."""

    def __init__(self, nest: ir.LoopNest) -> None:
        self.nest = nest
        self.refusals = Refusals(nest.file)
        # isl gets names of its own: the user's may be anything Python allows.
        self.symbols = {name: f"p{k}" for k, (name, _) in enumerate(nest.symbols)}
        self.indices = {name: f"x{k}" for k, name in enumerate(nest.loop_names)}
        self.steps = {loop.name: loop.step for loop in nest.loops}
        self.stores = [(k, s.target) for k, s in enumerate(nest.body) if isinstance(s, ir.Store)]

    def flow(self, k: int, read: ir.Access) -> Iterable[Dependence]:
        sources = isl.UnionMap(self._prefix() + "{ }")
        schedule = isl.UnionMap(self._schedule(k))
        for m, write in self.stores:
            if write.array == read.array:
                sources = sources.union(isl.UnionMap(self._relation(m, write)))
            schedule = schedule.union(isl.UnionMap(self._schedule(m)))
        access = isl.UnionAccessInfo.from_sink(isl.UnionMap(self._relation(k, read)))
        flow = access.set_must_source(sources).set_schedule_map(schedule).compute_flow()
        by_statement = {f"S{m}": write for m, write in self.stores}
        for dependence in _maps(flow.get_must_dependence()):
            write = by_statement[dependence.get_tuple_name(isl.dim_type.in_)]
            for vector in self._distances(dependence, "flow", write, read):
                if any(vector):
                    yield self._dependence("flow", vector, write, read)

    def overwritten(self, kind: str, k: int, access: ir.Access) -> Iterable[Dependence]:
        """Writes, later in the same sweep, of the element that ``access`` touches."""
        for m, write in self.stores:
            if write.array != access.array:
                continue
            first, second = isl.Map(self._relation(k, access)), isl.Map(self._relation(m, write))
            pairs = first.apply_range(second.reverse())
            for axis in range(self.nest.sweep_depth):
                pairs = pairs.equate(isl.dim_type.in_, axis, isl.dim_type.out, axis)
            for vector in self._distances(pairs, kind, access, write):
                if vector > (0,) * len(vector):
                    yield self._dependence(kind, vector, access, write)

    def _distances(self, pairs: isl.Map, kind: str, source: ir.Access, target: ir.Access) -> list[Vector]:
        """Constant distance vectors; those carried by a sweep loop may vary, and one per piece stands for them."""
        untupled = pairs.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
        deltas = untupled.deltas()
        deltas = deltas.project_out(isl.dim_type.param, 0, deltas.dim(isl.dim_type.param))
        inside = deltas
        for axis in range(self.nest.sweep_depth):
            inside = inside.fix_val(isl.dim_type.set, axis, isl.Val.zero(isl.DEFAULT_CONTEXT))
        if not inside.is_empty() and not inside.is_singleton():
            self.refusals.note(
                target.line,
                f"the {kind} dependence from {source.text} to {target.text} has no constant distance",
                "expected indices that are the loop indices plus constants, in the same order everywhere",
            )
            return []
        # Apart before pieces are joined: one piece may hold distances inside a sweep and between sweeps.
        carried = deltas.subtract(inside).coalesce()
        return [_point(piece) for part in (inside, carried) for piece in part.get_basic_sets()]

    def _dependence(self, kind: str, vector: Vector, source: ir.Access, target: ir.Access) -> Dependence:
        return Dependence(kind, vector, source.array, source.text, source.line, target.text, target.line)

    # -- text for isl --------------------------------------------------------------------------------------------------

    def _prefix(self) -> str:
        return f"[{', '.join(self.symbols.values())}] -> "

    def _instance(self, k: int) -> str:
        return f"S{k}[{', '.join(self.indices.values())}]"

    def _relation(self, k: int, access: ir.Access) -> str:
        subscripts = []
        for affine in access.affine:
            assert affine is not None  # the front end accepts nothing else on written arrays
            subscripts.append(self._affine(affine))
        element = f"A[{', '.join(subscripts)}]"
        return f"{self._prefix()}{{ {self._instance(k)} -> {element} : {self._bounds()} }}"

    def _schedule(self, k: int) -> str:
        return f"{self._prefix()}{{ {self._instance(k)} -> [{', '.join([*self.indices.values(), str(k)])}] }}"

    def _bounds(self) -> str:
        conditions = []
        for loop in self.nest.loops:
            x = self.indices[loop.name]
            low, high = self._affine(loop.start), self._affine(loop.stop)
            if loop.step == 1:
                conditions.append(f"{low} <= {x} < {high}")
            else:
                conditions.append(f"{high} < -{x} <= {low}")
        return " and ".join(conditions)

    def _affine(self, affine: Affine) -> str:
        text = str(affine.constant)
        for name, coefficient in affine.terms:
            factor = coefficient * self.steps.get(name, 1)
            text += f" + {factor}*{self.indices.get(name) or self.symbols[name]}"
        return f"({text})"


def _maps(union: isl.UnionMap) -> list[isl.Map]:
    found: list[isl.Map] = []
    union.foreach_map(found.append)
    return found


def _point(piece: isl.BasicSet) -> Vector:
    points = isl.Set.from_basic_set(piece)
    # Two sweep loops of unknown length are any distance apart, and there is no least one.
    point = (points.lexmin() if points.is_bounded() else points).sample_point()
    count = point.get_space().dim(isl.dim_type.set)
    return tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(count))
