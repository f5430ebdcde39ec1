"""Accesses of written arrays are uniform: every axis is one loop index plus a constant; and which loops are then sweeps."""

from __future__ import annotations

import ast
from dataclasses import replace

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.frontend.expressions import subscripts
from lapwing.loopnest.refusals import Refusals

_READ_ELSEWHERE = "read other places from a copy passed as a second, read-only array"
_WRITE_ELSEWHERE = (
    "to write to some elements only, loop over all of them and keep the others: u[i, j] = x if condition else u[i, j]"
)


def with_sweep_depth(nest: ir.LoopNest, refusals: Refusals) -> ir.LoopNest:
    """Note accesses of written arrays that are not uniform, and find how many outer loops are sweeps."""
    depth = 0
    for name in nest.written:
        loops = _axis_loops(nest, name, refusals)
        if loops is None:
            continue
        missing = [k for k, loop in enumerate(nest.loops) if loop.name not in loops]
        if missing and missing[-1] == len(nest.loops) - 1:
            store = next(s for s in nest.stores if s.target.array == name)
            refusals.note(
                store.line,
                f"{store.target.text} is written but not indexed by the innermost loop {nest.loops[-1].name}",
                "a written array is indexed by all loops, or by all but outer sweep or time loops; "
                f"make loop {nest.loops[-1].name} the outermost, or use a reduction",
            )
        depth = max(depth, missing[-1] + 1 if missing else 0)
    return replace(nest, sweep_depth=depth)


def _axis_loops(nest: ir.LoopNest, array: str, refusals: Refusals) -> list[str] | None:
    """The loop that indexes each axis of a written array, the same in every access; None where one is not uniform."""
    axes: list[str] | None = None
    uniform = True
    writes = [(s.target, _WRITE_ELSEWHERE) for s in nest.stores]
    reads = [(a, _READ_ELSEWHERE) for _, a in ir.body_reads(nest.body)]
    for access, way_out in ((a, w) for a, w in writes + reads if a.array == array):
        found = _loops_of(access, axes, nest, refusals, way_out)
        if found is None:
            uniform = False
        elif axes is None:
            axes = found
        elif len(found) != len(axes):
            uniform = False
            refusals.note(
                access.line, f"{access.text} has {len(found)} indices, elsewhere {array} has {len(axes)}",
                "index every axis of an array",
            )  # fmt: skip
    return axes if uniform else None


def _loops_of(
    access: ir.Access, axes: list[str] | None, nest: ir.LoopNest, refusals: Refusals, way_out: str
) -> list[str] | None:
    """The loops of one access; axes: those of the access before, or None. Where it is not uniform, that is noted."""
    found: list[str] = []
    for position, affine in enumerate(access.affine):
        expected = axes[position] if axes and position < len(axes) else None
        loop = _uniform_loop(affine, nest)
        if loop is None or (expected and loop != expected) or loop in found:
            wanted = expected or "a loop index"
            refusals.note(
                access.line,
                f"{access.text} is not a uniform access: index {position + 1} is "
                f"{_subscript_text(access.text, position)}, expected {wanted} plus a constant",
                f"an array that the nest writes ({access.array}) is indexed everywhere by the same loops in the same "
                f"order, each plus a constant; {way_out}",
            )
            return None
        found.append(loop)
    return found


def _uniform_loop(affine: Affine | None, nest: ir.LoopNest) -> str | None:
    if affine is None or len(affine.terms) != 1:
        return None
    name, coefficient = affine.terms[0]
    return name if coefficient == 1 and name in nest.loop_names else None


def _subscript_text(text: str, position: int) -> str:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Subscript)
    element = subscripts(node)[1][position]
    return ast.get_source_segment(text, element) or ast.unparse(element)
