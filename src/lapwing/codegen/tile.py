"""The tile in C: compute over a box, faces packed and unpacked.

The innermost loop is cut short and carried outside the next one, so that several rows, each a chain of dependent
operations, are in the core's window at once:

    for i:                          for i in blocks of ROWS:
        for j:              →           for j in blocks of CUT:
            body                            for i in the block: for j in the block: body

That is legal wherever rectangular tiles are (every dependence inside a sweep has no negative component).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lapwing.codegen.expression import C_TYPES
from lapwing.codegen.module import ModuleWriter, indented
from lapwing.loopnest.binding import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.tiling.faces import Face
from lapwing.tiling.legality import carried_by

ROWS = 64
CUT = 16


def tile_source(bound: BoundNest, faces: Sequence[Face], dependences: Sequence[Dependence]) -> str:
    """C text of a tile module, with the functions of ``lw_module`` in lapwing.h."""
    return _TileWriter(bound, faces, dependences).source()


class _TileWriter(ModuleWriter):
    def __init__(self, bound: BoundNest, faces: Sequence[Face], dependences: Sequence[Dependence]) -> None:
        super().__init__(bound)
        self.faces = faces
        self.chained = carried_by(dependences, self.nest.sweep_depth, len(self.nest.loops) - 1)

    def source(self) -> str:
        lines = [
            *self.heading("One tile."),
            "",
            *self._compute(),
            "",
            *self._copies(),
            *self._face_function("pack", "const lw_tile *tile", "void *out", "out"),
            "",
            *self._face_function("unpack", "lw_tile *tile", "const void *in", "in"),
        ]
        return "\n".join(lines) + "\n"

    # -- compute -----------------------------------------------------------------------------------------------------

    def _compute(self) -> Iterator[str]:
        loops = self._loops()
        body = "\n".join(loops)
        yield "void lw_tile_compute(lw_tile *tile, const lw_box *box) {"
        yield from indented(list(self.declarations(body)))
        yield from indented(loops)
        yield from indented(list(self.write_back()))
        yield "}"

    def _loops(self) -> list[str]:
        nest = self.nest
        innermost = len(nest.loops) - 1
        cut = self.chained and innermost > nest.sweep_depth
        lines: list[str] = []
        depth = 0

        def emit(*texts: str) -> None:
            lines.extend("    " * depth + text for text in texts)

        def open_loop(k: int, low: str, high: str) -> None:
            nonlocal depth
            name = nest.loops[k].name
            x = self.coordinate(name)
            emit(f"for (int64_t {x} = {low}; {x} < {high}; ++{x}) {{")
            depth += 1
            if nest.loops[k].step == -1:
                emit(f"const int64_t {self.index(name)} = -{x};")

        for k in range(nest.sweep_depth):
            name = nest.loops[k].name
            sign = "" if nest.loops[k].step == 1 else "-"
            if self._is_used(name):
                emit(f"const int64_t {self.index(name)} = {sign}box->lo[{k}];")
        plain_until = innermost - 1 if cut else innermost
        for k in range(nest.sweep_depth, plain_until):
            open_loop(k, *self._clamped(k, f"box->lo[{k}]", f"box->hi[{k}]"))
        if cut:
            rows, columns = (f"{self.names.get(('block', k), nest.loops[k].name + '_block')}" for k in (innermost - 1, innermost))
            for name, k, size in ((rows, innermost - 1, ROWS), (columns, innermost, CUT)):
                emit(f"for (int64_t {name} = box->lo[{k}]; {name} < box->hi[{k}]; {name} += {size}) {{")
                depth += 1
            for name, k, size in ((rows, innermost - 1, ROWS), (columns, innermost, CUT)):
                open_loop(k, *self._clamped(k, name, f"lw_min_i64({name} + {size}, box->hi[{k}])"))
        else:
            if not self.chained:
                emit("#pragma GCC ivdep")  # no dependence is carried by this loop
            open_loop(innermost, *self._clamped(innermost, f"box->lo[{innermost}]", f"box->hi[{innermost}]"))
        emit(*self.statements(), *self.unused_locals())
        while depth:
            depth -= 1
            emit("}")
        return lines

    def _clamped(self, k: int, low: str, high: str) -> tuple[str, str]:
        """The box's range of a loop, cut by the loop's own bounds where those depend on outer indices."""
        loop = self.nest.loops[k]
        own_low, own_high = self.bounds(loop)
        if loop.start.names & set(self.nest.loop_names):
            low = f"lw_max_i64({low}, {own_low})"
        if loop.stop.names & set(self.nest.loop_names):
            high = f"lw_min_i64({high}, {own_high})"
        return low, high

    def _is_used(self, loop: str) -> bool:
        text = "\n".join(self.statements())
        bounds = " ".join(b for other in self.nest.loops for b in self.bounds(other))
        return self.index(loop) in text or self.index(loop) in bounds

    # -- copies ------------------------------------------------------------------------------------------------------

    def _copies(self) -> Iterator[str]:
        """Per written array, a dense copy of a box of elements out of the array and back into it, row by row."""
        for array in (a for a in self.bound.arrays if a.name in self.nest.written):
            for verb, const, c_type_out in (("out", "const ", ""), ("in", "", "const ")):
                name, c_type = self.array(array.name), C_TYPES[array.dtype]
                yield f"static void copy_{verb}_{name}(const lw_array *array, const lw_box *box, {c_type_out}{c_type} *dense) {{"
                yield f"    {const}{c_type} *const {name} = array->base;"
                axes = len(array.shape)
                offset = " + ".join(
                    [f"x{k} * array->stride[{k}]" for k in range(axes - 1)] + [f"x{axes - 1}"]
                )
                for k in range(axes):
                    yield "    " * (k + 1) + f"for (int64_t x{k} = box->lo[{k}]; x{k} < box->hi[{k}]; ++x{k}) {{"
                element = f"{name}[{offset}]"
                move = f"*dense++ = {element};" if verb == "out" else f"{element} = *dense++;"
                yield "    " * (axes + 1) + move
                for k in range(axes, 0, -1):
                    yield "    " * k + "}"
                yield "}"
                yield ""

    def _face_function(self, verb: str, tile: str, buffer: str, pointer: str) -> Iterator[str]:
        yield f"void lw_tile_{verb}({tile}, int32_t face, const lw_box *box, {buffer}) {{"
        yield "    lw_box elements;"
        yield "    switch (face) {"
        for number, face in enumerate(self.faces):
            position = [a.name for a in self.bound.arrays].index(face.array)
            yield f"        case {number}: /* {face.text} */"
            for axis, (low, high) in enumerate(self._element_ranges(face)):
                yield f"            elements.lo[{axis}] = {low};"
                yield f"            elements.hi[{axis}] = {high};"
            direction = "out" if verb == "pack" else "in"
            yield f"            copy_{direction}_{self.array(face.array)}(&tile->arrays[{position}], &elements, {pointer});"
            yield "            break;"
        yield "    }"
        yield "}"

    def _element_ranges(self, face: Face) -> Iterator[tuple[str, str]]:
        """Per axis, the elements a box of iterations writes."""
        target = next(s.target for s in self.nest.stores if (s.target.array, s.target.text) == (face.array, face.text))
        for affine in target.affine:
            assert affine is not None
            (name, _), *_ = affine.terms
            k = self.nest.loop_names.index(name)
            c = affine.constant
            if self.nest.loops[k].step == 1:
                yield _plus(f"box->lo[{k}]", c), _plus(f"box->hi[{k}]", c)
            else:
                yield _plus(f"1 - box->hi[{k}]", c), _plus(f"1 - box->lo[{k}]", c)


def _plus(text: str, constant: int) -> str:
    if constant == 0:
        return text
    return f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"
