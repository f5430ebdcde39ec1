"""The tile in C: compute over a box; faces packed, unpacked, and put into a neighbour's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.codegen.lanes.coalesced import CoalescedTileWriter
from lapwing.codegen.lanes.narrow import NarrowTileWriter
from lapwing.codegen.lanes.narrow_scans import NarrowScanWriter
from lapwing.codegen.lanes.transposed import TransposedTileWriter
from lapwing.codegen.rows.tile_loops import TileWriter, is_scanned
from lapwing.codegen.rows.wavefronts import WavefrontTileWriter, is_wavefront
from lapwing.codegen.temporal.sweeps import SweepTileWriter, has_sweep_lanes
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import MOST_SWEEPS_IN_VECTORS, InnerForm, legal_forms, sweeps_to_join
from lapwing.tiling.sweep_lanes import lanes_of_sweeps


def tile_source(bound: BoundNest, faces: Sequence[Face], form: InnerForm, stores_all: bool = False) -> str:
    """C text of a tile module, with the functions of ``lw_module`` in lapwing.h. stores_all: also elements of arrays that are
    dead after the nest."""
    if stores_all:
        bound = bound.storing_all()
    if form.coalesced:
        return CoalescedTileWriter(bound, faces, form).source()
    if form.lanes_are_sweeps:
        return SweepTileWriter(bound, faces, form).source()
    if form.skewed:
        return WavefrontTileWriter(bound, faces, form).source()
    if not form.transposed:
        rows = TileWriter(bound, faces, form)
        narrow_rows = NarrowScanWriter.of(rows, faces, form)
        return rows.source() if narrow_rows is None else narrow_rows.source()
    wide = TransposedTileWriter(bound, faces, form)
    narrow = NarrowTileWriter.of(wide, faces, form)
    return wide.source() if narrow is None else narrow.source()


def forms_of(bound: BoundNest, dependences: Sequence[Dependence]) -> tuple[InnerForm, ...]:
    """The inner forms that are legal, and that there is code for. bound, dependences: in the coordinates that are cut into
    tiles."""
    found: list[InnerForm] = []
    for form in legal_forms(bound, dependences):
        if not form.scanned or is_scanned(bound, form):
            found.append(form)
        found += wavefronts(bound, form)
    # Others bring the reductions of all sweeps together.
    return tuple(form for form in found if form.lanes_are_sweeps or not bound.nest.by_sweep)


def wavefronts(bound: BoundNest, form: InnerForm) -> tuple[InnerForm, ...]:
    """The forms whose rows, or sweeps, are in vectors, beside that of the plain loops where they are a chain; none where there is
    no code for them."""
    if form != InnerForm(form.order, 1, independent=False):
        return ()
    rows, sweeps = replace(form, skewed=True), sweeps_to_join(bound)
    if len(form.order) > 1:
        found = [rows] if is_wavefront(bound, rows) else []
        joined = [replace(rows, sweeps=lanes, rows=turns) for lanes, turns in lanes_of_sweeps(bound, sweeps)]
        return (*found, *(form for form in joined if has_sweep_lanes(bound, form)))
    over_a_row = replace(rows, sweeps=MOST_SWEEPS_IN_VECTORS)
    return (over_a_row,) if sweeps > 1 and is_wavefront(bound, over_a_row) else ()


def reason_against_vectors(bound: BoundNest, form: InnerForm) -> str | None:
    """Why a form with buffers calls the loop body lane by lane, as its generator decided; None where it has vectors."""
    return (CoalescedTileWriter if form.coalesced else TransposedTileWriter)(bound, (), form).reason_against_vectors
