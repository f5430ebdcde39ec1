"""Bounds of tile loops over domains that are no boxes.

Bounds of loops that do not depend on other loops are left out: tiles lie within them.
"""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.affine.affine import Affine
from lapwing.affine.integer_sets import Space
from lapwing.affine.scanning import LoopBounds, loop_bounds
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.skew import in_skewed

_FUNCTIONS = {"max": "lw_max_i64", "min": "lw_min_i64", "floord": "lw_floordiv_i64"}


def tile_bounds(bound: BoundNest, coordinates: Mapping[str, str], scalars: Mapping[str, str]) -> list[LoopBounds]:
    """The bounds of every space loop inside ``box``.

    coordinates: the C name of every space loop's coordinate; scalars: that of every symbol.
    """
    nest, depth = bound.nest, bound.nest.sweep_depth
    # isl gets names of its own: it writes them into its text.
    known = {name: f"x{k}" if k >= depth else f"t{k}" for k, name in enumerate(nest.loop_names)}
    known |= {name: f"p{k}" for k, (name, _) in enumerate(nest.symbols)}
    axes = [f"x{k}" for k in range(depth, len(nest.loops))]
    ends = [f"{end}{k}" for k in range(depth, len(nest.loops)) for end in ("lo", "hi")]
    parameters = [known[name] for name, _ in nest.symbols] + [f"t{k}" for k in range(depth)] + ends
    nonnegative = []
    for k in range(depth, len(nest.loops)):
        x, low, high = (Affine.of(f"{kind}{k}") for kind in ("x", "lo", "hi"))
        nonnegative += [x - low, high - x - 1]
    renamed = {name: Affine.of(own) for name, own in known.items()}
    nonnegative += [side.substitute(renamed) for side in _sides(bound)]
    points = Space(parameters, axes).where_nonnegative(nonnegative)
    names = {f"x{k}": coordinates[nest.loop_names[k]] for k in range(depth, len(nest.loops))}
    names |= {f"p{k}": scalars[name] for k, (name, _) in enumerate(nest.symbols)}
    names |= {f"t{k}": f"box->lo[{k}]" for k in range(depth)}
    names |= {f"{end}{k}": f"box->{end}[{k}]" for k in range(depth, len(nest.loops)) for end in ("lo", "hi")}
    return loop_bounds(points, axes, names | _FUNCTIONS)


def _sides(bound: BoundNest) -> list[Affine]:
    """What is >= 0 inside the domain, over its coordinates and symbols, of bounds that depend on other loops."""
    found = []
    names = bound.nest.loop_names
    for loop in bound.nest.space_loops:
        x, step = Affine.of(loop.name), loop.step
        sides = [x - bound.domain.normalised(start * step) for start in loop.starts]
        sides += [bound.domain.normalised(stop * step) - x - 1 for stop in loop.stops]
        for side in sides:
            side = side if bound.skew is None else in_skewed(side, names, bound.skew)
            if len(side.names & set(names)) > 1:
                found.append(side)
    return found
