"""The plain sequential loop in C: what the tiled runs are compared with on sizes too large for Python.

Nothing is tiled, cut or reordered here; with ``limit`` each loop stops after that many iterations, so that the same
code can be held against the Python function on a corner of the very same arrays.
"""

from __future__ import annotations

from lapwing.codegen.body.text import indented
from lapwing.codegen.rows.module import ModuleWriter
from lapwing.loopnest.binding.bound_nest import BoundNest


def plain_source(bound: BoundNest) -> str:
    """C text of ``lw_plain(tile, limit)``: the nest's loops in their own order over whole arrays."""
    writer = ModuleWriter(bound)
    loops: list[str] = []
    for depth, loop in enumerate(writer.nest.loops):
        x = writer.coordinate(loop.name)
        low, high = writer.bounds(loop)
        first = f"lw_first_{depth}"
        loops += indented(
            [
                f"const int64_t {first} = {low};",
                f"for (int64_t {x} = {first}; {x} < lw_min_i64({high}, {first} + limit); ++{x}) {{",
                *([f"    const int64_t {writer.index(loop.name)} = -{x};"] if loop.step == -1 else []),
            ],
            depth,
        )
    depth = len(writer.nest.loops)
    loops += indented([writer.point_call()], depth)
    for level in range(depth - 1, -1, -1):
        loops.append("    " * level + "}")
    body = "\n".join(loops)
    invariants = list(writer.invariants(body))
    lines = [
        *writer.heading("The plain loop."),
        "",
        *writer.invariant_functions(),
        *writer.point_function(),
        "",
        "void lw_plain(lw_tile *tile, int64_t limit) {",
        *indented(list(writer.declarations(body + "\n".join(invariants)))),
        *indented(invariants),
        *indented(loops),
        *indented(list(writer.write_back())),
        "}",
    ]
    return "\n".join(lines) + "\n"
