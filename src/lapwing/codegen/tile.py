"""The tile in C: compute over a box; faces packed, unpacked, and put into a neighbour's memory."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.codegen.coalesced import CoalescedTileWriter
from lapwing.codegen.tile_loops import TileWriter
from lapwing.codegen.transposed_loops import TransposedTileWriter
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm


def tile_source(bound: BoundNest, faces: Sequence[Face], form: InnerForm, stores_all: bool = False) -> str:
    """C text of a tile module, with the functions of ``lw_module`` in lapwing.h. stores_all: also elements of arrays that are
    dead after the nest."""
    if stores_all:
        bound = bound.storing_all()
    transposed = CoalescedTileWriter if form.coalesced else TransposedTileWriter
    writer = transposed if form.transposed else TileWriter
    return writer(bound, faces, form).source()


def reason_against_vectors(bound: BoundNest, form: InnerForm) -> str | None:
    """Why a form with buffers calls the loop body lane by lane, as its generator decided; None where it has vectors."""
    return (CoalescedTileWriter if form.coalesced else TransposedTileWriter)(bound, (), form).reason_against_vectors
