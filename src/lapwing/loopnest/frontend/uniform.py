"""Which axes of written arrays are indexed uniformly, by one loop index plus a constant, and which loops are then sweeps.

Reads may go around the axis, as ``(i + 1) % n`` does: what becomes of those is decided when n is known.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.frontend.expressions import subscripts
from lapwing.loopnest.pieces import definitions_in, interior
from lapwing.loopnest.refusals import Refusals

_READ_ELSEWHERE = "read other places from a copy passed as a second, read-only array"
_WRITE_ELSEWHERE = (
    "to write to some elements only, loop over all of them and keep the others: u[i, j] = x if condition else u[i, j]"
)


def with_axis_loops(nest: ir.LoopNest, refusals: Refusals) -> ir.LoopNest:
    """Find which loop indexes each axis of the written arrays, and how many outer loops are sweeps; note where that is none."""
    depth, axis_loops = 0, {}
    for name in nest.written:
        loops = _axis_loops(nest, name, refusals)
        if loops is None:
            continue
        axis_loops[name] = loops
        missing = [k for k, loop in enumerate(nest.loops) if loop.name not in loops]
        if missing and missing[-1] == len(nest.loops) - 1:
            _refuse_innermost(nest, name, loops, refusals)
        depth = max(depth, missing[-1] + 1 if missing else 0)
    return replace(nest, sweep_depth=depth, axis_loops=axis_loops)


def _axis_loops(nest: ir.LoopNest, array: str, refusals: Refusals) -> tuple[str | None, ...] | None:
    """The loop that indexes each axis of a written array, in every access; None for axes that are indexed in other ways. None
    where accesses have different numbers of indices, which is noted."""
    accesses = [s.target for s in nest.stores if s.target.array == array]
    accesses += [a for _, a in ir.body_reads(nest.body) if a.array == array]
    first = accesses[0]
    for access in accesses:
        if len(access.affine) != len(first.affine):
            refusals.note(
                access.line,
                f"{access.text} has {len(access.affine)} indices, elsewhere {array} has {len(first.affine)}",
                "index every axis of an array",
            )
            return None
    found: list[str | None] = []
    stores = sum(s.target.array == array for s in nest.stores)
    definitions = definitions_in(nest)
    for axis in range(len(first.affine)):
        loops = {_uniform_loop(access.affine[axis], nest) for access in accesses[:stores]}
        loops |= {_uniform_loop(interior(access, axis, definitions), nest) for access in accesses[stores:]}
        loop = loops.pop() if len(loops) == 1 else None
        found.append(loop if loop not in found else None)
    return tuple(found)


def _refuse_innermost(nest: ir.LoopNest, array: str, loops: tuple[str | None, ...], refusals: Refusals) -> None:
    """The innermost loop indexes no axis: because of an access that is not uniform, or at all."""
    innermost = nest.loops[-1].name
    store = next(s for s in nest.stores if s.target.array == array)
    wanted = [affine is not None and innermost in affine.names for affine in store.target.affine]
    accesses = [(s.target, _WRITE_ELSEWHERE) for s in nest.stores if s.target.array == array]
    accesses += [(a, _READ_ELSEWHERE) for _, a in ir.body_reads(nest.body) if a.array == array]
    for axis in (axis for axis, is_wanted in enumerate(wanted) if is_wanted and loops[axis] is None):
        for access, way_out in accesses:
            if _uniform_loop(access.affine[axis], nest) != innermost or access.affine.count(access.affine[axis]) > 1:
                refusals.note(
                    access.line,
                    f"{access.text} is not a uniform access: index {axis + 1} is "
                    f"{_subscript_text(access.text, axis)}, expected {innermost} plus a constant",
                    f"an axis of a written array ({array}) that loop {innermost} is cut along is indexed everywhere by that loop "
                    f"plus a constant; {way_out}",
                )
                return
    if refusals:  # it may be indexed in what was refused
        return
    refusals.note(
        store.line,
        f"{store.target.text} is written but not indexed by the innermost loop {innermost}",
        "a written array is indexed by all loops, or by all but outer sweep or time loops; "
        f"make loop {innermost} the outermost, or use a reduction",
    )


def _uniform_loop(affine: Affine | None, nest: ir.LoopNest) -> str | None:
    if affine is None or len(affine.terms) != 1:
        return None
    name, coefficient = affine.terms[0]
    return name if coefficient == 1 and name in nest.loop_names else None


def _subscript_text(text: str, position: int) -> str:
    """Of an access as it stands in the program, or of the statement that a loop was made of."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return f"that of {text}"
    assert isinstance(node, ast.Subscript)
    element = subscripts(node)[1][position]
    return ast.get_source_segment(text, element) or ast.unparse(element)
