"""The calls of an exported program: of nests and phased nests over ranks, and of what one rank does by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lapwing.codegen.tile import tile_source
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.choose import make_plan
from lapwing.planner.phased import PhasedPlan
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.layout import written_boxes
from lapwing.runtime.arrays.shear import shear_of
from lapwing.runtime.arrays.storage import Storage, storage_of
from lapwing.runtime.binding.program import RankProgram, phased_program, rank_program
from lapwing.tiling.boxes import Box, coalesced, common, volume
from lapwing.tiling.faces import Faces, faces_of
from lapwing.tiling.skewing import skewed_nest

Boxes = tuple[Box, ...]


@dataclass(eq=False)
class NestCall:
    """A nest on the ranks of its plan."""

    bound: BoundNest
    plan: Plan

    @property
    def name(self) -> str:
        return self.bound.nest.name

    @property
    def bounds(self) -> tuple[BoundNest, ...]:
        return (self.bound,)

    @cached_property
    def in_plan(self) -> BoundNest:
        """The nest in the coordinates in which it is cut."""
        return skewed_nest(self.bound, self.plan.skew)

    @cached_property
    def _faces(self) -> Faces:
        return self.plan.faces(self.in_plan)

    def tables(self, rank: int) -> RankProgram:
        return rank_program(self._faces, rank, self.plan.ranks, fusion=self.plan.fusion)

    @property
    def sources(self) -> tuple[str, ...]:
        """The text of the tile of every phase."""
        return (tile_source(self.in_plan, faces_of(self.in_plan), self.plan.inner.form, stores_all=True),)

    def storage(self, name: str, rank: int) -> Storage | None:
        """Where the tile finds an array that does not lie in order, but sheared; None for others."""
        store = storage_of(self.in_plan, name, self._faces.block(rank))
        return store if store.shear is not None else None

    def needs(self, name: str, rank: int) -> Boxes:
        store = storage_of(self.in_plan, name, self._faces.block(rank))
        if store.shear is None:
            return _some([store.box])
        return _some([box for box, _ in store.shear.pieces(store.box, self._everything(name))])

    def room(self, name: str, rank: int) -> Boxes:
        """The elements of which tiles and messages may touch the memory, although nobody reads what is there."""
        return self.needs(name, rank)

    def writes(self, name: str, rank: int) -> tuple[Boxes, ...]:
        """The elements that a rank writes: rounds, of which the last one counts."""
        if name not in self.bound.nest.written:
            return ()
        rounds = written_boxes(self.in_plan, name, self.plan.partition.block(rank))
        if self.in_plan.skew is None:
            return tuple(_some([box]) for box in rounds)
        (sheared,) = rounds  # one offset only, so every element has one writer
        pieces = shear_of(self.in_plan, name).pieces(sheared, self._everything(name))
        return (_some([box for box, _ in pieces]),)

    def _everything(self, name: str) -> Box:
        return tuple((0, n) for n in self.bound.array(name).shape)


@dataclass(eq=False)
class PhasesCall:
    """Several nests through one pipeline."""

    plan: PhasedPlan
    _known: dict[str, list[Box]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def bounds(self) -> tuple[BoundNest, ...]:
        return self.plan.distribution.phased.phases

    def tables(self, rank: int) -> RankProgram:
        return phased_program(self.plan.faces, rank, self.plan.fusion)

    @property
    def sources(self) -> tuple[str, ...]:
        phases = zip(self.bounds, self.plan.forms, strict=True)
        return tuple(tile_source(bound, self.plan.faces.faces(k), form) for k, (bound, form) in enumerate(phases))

    def storage(self, name: str, rank: int) -> Storage | None:
        return None

    def needs(self, name: str, rank: int) -> Boxes:
        return _some(self.plan.faces.needed_parts(name, rank))

    def room(self, name: str, rank: int) -> Boxes:
        return _some([self.plan.faces.needed_box(name, rank)])

    def writes(self, name: str, rank: int) -> tuple[Boxes, ...]:
        if name not in self.plan.distribution.phased.written:
            return ()
        # In the end the owner of an element has it, whichever rank has done the phase that wrote it.
        return (tuple(common(self._written(name), [self.plan.distribution.owned(name, rank)])),)

    def _written(self, name: str) -> list[Box]:
        """The elements that some rank writes."""
        if name not in self._known:
            ranks = range(self.plan.ranks)
            self._known[name] = coalesced(box for rank in ranks for box in self.plan.faces.written_boxes(name, rank))
        return self._known[name]


@dataclass(eq=False)
class LocalCall:
    """A sequential region: what one rank, or each for itself, does in the order of the text."""

    bound: BoundNest
    touched: Mapping[str, Box] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.bound.nest.name

    @property
    def bounds(self) -> tuple[BoundNest, ...]:
        return (self.bound,)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        form = make_plan(self.bound, self.bound.analysis.dependences, 1).inner.form
        return (tile_source(self.bound, faces_of(self.bound), form, stores_all=True),)

    def box(self, name: str) -> Box:
        """The elements of an array that it may touch."""
        whole = tuple((0, n) for n in self.bound.array(name).shape)
        return self.touched.get(name, whole)


Call = NestCall | PhasesCall


def arrays_of(call: Call | LocalCall) -> tuple[str, ...]:
    return tuple(dict.fromkeys(a.name for bound in call.bounds for a in bound.arrays))


def _some(boxes: Sequence[Box]) -> Boxes:
    return tuple(box for box in boxes if volume(box))
