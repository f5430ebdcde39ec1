"""Plans with another inner form of the tile than the one taken by rule, and other vectors than the processor has."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

import lapwing as lw
from lapwing.codegen.lanes import points
from lapwing.codegen.rows import outer_loops
from lapwing.codegen.temporal import steps, vector_body
from lapwing.codegen.tile import forms_of, wavefronts
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.planner.inner import joined_sweeps
from lapwing.planner.plan import Plan
from lapwing.runtime.execute import tile_library
from lapwing.tiling import sweep_lanes, transposed
from lapwing.tiling.inner import InnerForm, legal_forms
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

# What keeps a compiler from vectors of more bytes.
WITHOUT_WIDER = {64: (), 32: ("-mno-avx512f",), 16: ("-mno-avx512f", "-mno-avx2")}


def in_form(plan: Plan, bound: BoundNest, form: InnerForm) -> Plan:
    """The plan with a form, and as many sweeps at once as that can do; bound: as the user wrote the nest."""
    joined = joined_sweeps(skewed_nest(bound, plan.skew), form, plan.partition, plan.mapping, plan.tile)
    return replace(plan, inner=replace(plan.inner, form=form), joined=1 if plan.streaming else joined)


def in_any_form(plan: Plan, bound: BoundNest, nest: lw.Nest) -> Plan:
    """The plan with a form that hangs on the nest's text alone, so that all its runs share a tile."""
    forms = forms_of(skewed_nest(bound, plan.skew), skewed_dependences(nest.dependences, plan.skew))
    number = zlib.crc32(repr(nest.loops.body).encode())
    return in_form(plan, bound, forms[number % len(forms)])


def forms_with_vectors(width: int, bound: BoundNest, dependences: Sequence[Dependence]) -> tuple[InnerForm, ...]:
    """The legal forms where vectors have so many bytes: those with buffers have other lanes then."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transposed, "vector_bytes", lambda: width)
        forms = legal_forms(bound, dependences)
    return (
        *forms,
        *(new for form in forms for new in wavefronts(bound, form)),
    )


@contextmanager
def vectors_of(width: int) -> Iterator[None]:
    """Whatever the processor has, vectors of so many bytes; none of no bytes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(points, "vector_bytes", lambda: width)
        patched.setattr(steps, "has_fast_gathers", lambda: width == 64)
        for module in (outer_loops, vector_body, sweep_lanes):
            patched.setattr(module, "vector_bytes", lambda: width or 16)
        tile_library.cache_clear()
        try:
            yield
        finally:
            tile_library.cache_clear()
