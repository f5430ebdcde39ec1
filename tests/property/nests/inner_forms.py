"""Plans with any legal inner form of the tile, not just the one taken by rule."""

from __future__ import annotations

import zlib
from dataclasses import replace

import lapwing as lw
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.tiling.inner import legal_forms
from lapwing.tiling.skewing import skewed_dependences, skewed_nest


def in_any_form(plan: Plan, bound: BoundNest, nest: lw.Nest) -> Plan:
    """The plan with a form that hangs on the nest's text alone, so that all its runs share a tile."""
    forms = legal_forms(skewed_nest(bound, plan.skew), skewed_dependences(nest.dependences, plan.skew))
    number = zlib.crc32(repr(nest.loops.body).encode())
    return replace(plan, inner=replace(plan.inner, form=forms[number % len(forms)]))
