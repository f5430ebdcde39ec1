"""Bounds of tile loops over domains that are no boxes, by isl's code generator.

isl projects the inner loops' bounds out of the outer ones, so that no iteration of an outer loop is walked that has nothing
to do inside the tile. Bounds of loops that do not depend on other loops are left out: tiles lie within them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from lapwing.affine.affine import Affine
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.skew import in_skewed

_FUNCTIONS = {"max": "lw_max_i64", "min": "lw_min_i64", "floord": "lw_floordiv_i64"}


@dataclass(frozen=True)
class LoopBounds:
    """``low <= x < high`` as C text, over coordinates of outer loops."""

    low: str
    high: str


def tile_bounds(bound: BoundNest, coordinates: Mapping[str, str], scalars: Mapping[str, str]) -> list[LoopBounds]:
    """The bounds of every space loop inside ``box``.

    coordinates: the C name of every space loop's coordinate; scalars: that of every symbol.
    """
    nest, depth = bound.nest, bound.nest.sweep_depth
    # isl gets names of its own: the user's may be anything Python allows.
    known = {name: f"x{k}" if k >= depth else f"t{k}" for k, name in enumerate(nest.loop_names)}
    known |= {name: f"p{k}" for k, (name, _) in enumerate(nest.symbols)}
    conditions = [f"lo{k} <= x{k} < hi{k}" for k in range(depth, len(nest.loops))]
    conditions += [f"{_text(side, known)} >= 0" for side in _sides(bound)]
    parameters = [known[name] for name, _ in nest.symbols] + [f"t{k}" for k in range(depth)]
    parameters += [f"{end}{k}" for k in range(depth, len(nest.loops)) for end in ("lo", "hi")]
    space = ", ".join(f"x{k}" for k in range(depth, len(nest.loops)))
    points = isl.Set(f"[{', '.join(parameters)}] -> {{ S[{space}] : {' and '.join(conditions)} }}")
    order = isl.UnionMap.from_map(isl.Map.identity(points.get_space().map_from_set()).intersect_domain(points))
    build = isl.AstBuild.from_context(isl.Set("{ : }")).set_iterators(_ids(space.split(", ")))
    names = {f"x{k}": coordinates[nest.loop_names[k]] for k in range(depth, len(nest.loops))}
    names |= {f"p{k}": scalars[name] for k, (name, _) in enumerate(nest.symbols)}
    names |= {f"t{k}": f"box->lo[{k}]" for k in range(depth)}
    names |= {f"{end}{k}": f"box->{end}[{k}]" for k in range(depth, len(nest.loops)) for end in ("lo", "hi")}
    return _loops(build.node_from_schedule_map(order), names | _FUNCTIONS, space.split(", "))


def _sides(bound: BoundNest) -> list[Affine]:
    """What is >= 0 inside the domain, over its coordinates and symbols, of bounds that depend on other loops."""
    found = []
    names = bound.nest.loop_names
    for loop in bound.nest.space_loops:
        first, beyond = (loop.start, loop.stop) if loop.step == 1 else (-loop.start, -loop.stop)
        x = Affine.of(loop.name)
        for side, is_last in ((x - bound.domain.normalised(first), False), (bound.domain.normalised(beyond) - x, True)):
            side = side if bound.skew is None else in_skewed(side, names, bound.skew)
            if len(side.names & set(names)) > 1:
                found.append(side - Affine(int(is_last)))
    return found


def _text(affine: Affine, known: Mapping[str, str]) -> str:
    return str(Affine(affine.constant, tuple((known[n], c) for n, c in affine.terms)))


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
