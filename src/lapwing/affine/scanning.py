"""Loops that visit a set's points in lexicographic order, by isl's code generator.

isl projects the inner loops' bounds out of the outer ones, so that no iteration of an outer loop is walked that has nothing
to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl


@dataclass(frozen=True)
class LoopBounds:
    """``low <= x < high`` as C text, over coordinates of outer loops."""

    low: str
    high: str


def loop_bounds(points: isl.Set, axes: Sequence[str], names: Mapping[str, str]) -> list[LoopBounds]:
    """The bounds of one loop an axis, the outermost first, that visit the points of a convex set.

    axes: the names to give to axes in isl's text, as letters and digits; names: what stands for those, for parameters (named
    likewise) and for max, min and floord there in C.
    """
    order = isl.UnionMap.from_map(isl.Map.identity(points.get_space().map_from_set()).intersect_domain(points))
    build = isl.AstBuild.from_context(isl.Set("{ : }")).set_iterators(_ids(axes))
    return _loops(build.node_from_schedule_map(order), names, axes)


def _ids(names: Sequence[str]) -> isl.IdList:
    ids = isl.IdList.alloc(isl.DEFAULT_CONTEXT, len(names))
    for name in names:
        ids = ids.add(isl.Id(name))
    return ids


def _loops(node: isl.AstNode, names: Mapping[str, str], wanted: Sequence[str]) -> list[LoopBounds]:
    """The bounds of perfectly nested loops, outermost first."""
    found: dict[str, LoopBounds] = {}
    guards: dict[str, str] = {}  # of the first loop they stand around
    while (kind := isl.ast_node_type(node.get_type()).name) != "user":
        if kind == "if_":
            around = max((wanted.index(x) + 1 for x in found), default=0)
            guards[wanted[around]] = _c(node.if_get_cond(), names)
            node = node.if_get_then_node()
            continue
        assert kind == "for_", "a convex domain in its own order is one loop nest"
        low, condition = _c(node.for_get_init(), names), node.for_get_cond()
        high = _c(condition.get_op_arg(1), names)
        if isl.ast_expr_op_type(condition.get_op_type()).name == "le":
            high += " + 1"
        found[node.for_get_iterator().get_id().get_name()] = LoopBounds(low, high)
        node = node.for_get_body()
    # Where outer loops leave one value only, isl writes no loop but that value.
    values = {x: _c(node.user_get_expr().get_op_arg(k + 1), names) for k, x in enumerate(wanted)}
    loops = {x: found.get(x, LoopBounds(values[x], f"{values[x]} + 1")) for x in wanted}
    for x, guard in guards.items():
        loops[x] = LoopBounds(loops[x].low, f"({guard} ? {loops[x].high} : {loops[x].low})")
    return list(loops.values())


def _c(expression: isl.AstExpr, names: Mapping[str, str]) -> str:
    return re.sub(r"[a-z]+\d*", lambda word: names[word.group()], expression.to_C_str())
