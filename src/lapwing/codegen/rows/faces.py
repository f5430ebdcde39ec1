"""Faces in generated C: packed, unpacked, and put into a neighbour's memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.text import Lines, element, indented, mentions, plus, wrapped
from lapwing.codegen.rows.loops import LoopWriter
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.faces import Face


class FaceWriter(LoopWriter):
    def __init__(self, bound: BoundNest, faces: Sequence[Face]) -> None:
        super().__init__(bound)
        self.faces = faces

    def face_functions(self) -> list[str]:
        """``lw_tile_pack``, ``lw_tile_unpack`` and ``lw_tile_put``, and what they share."""
        if self.bound.skew is None:
            return [
                *self._copies(),
                *self._elements_function(),
                "",
                *self._face_function("pack", "const lw_tile *tile", "void *out", "{here}", "&dense"),
                "",
                *self._face_function("unpack", "lw_tile *tile", "const void *in", "&dense", "{here}"),
                "",
                *self._face_function(
                    "put", "const lw_tile *tile", "const lw_array *there", "{here}", "&there[{position}]"
                ),
            ]
        return [
            *self._walked_faces("pack", "const lw_tile *tile", "void *out", "*{to}++ = {here};"),
            "",
            *self._walked_faces("unpack", "lw_tile *tile", "const void *in", "{here} = *{source}++;"),
            "",
            *self._walked_faces("put", "const lw_tile *tile", "const lw_array *there", "{there} = {here};"),
        ]

    def _copies(self) -> Iterator[str]:
        """Per written array, a copy of a box of elements from one place in memory to another, row by row."""
        for array in (a for a in self.bound.arrays if a.name in self.nest.written):
            c_type, last = C_TYPES[array.dtype], len(array.shape) - 1
            lines = Lines()
            lines.open(
                f"static void copy_{self.array(array.name)}(const lw_array *source, const lw_array *target, "
                "const lw_box *box) {"
            )
            lines.add(f"const {c_type} *restrict const from = source->base;")
            lines.add(f"{c_type} *restrict const to = target->base;")
            lines.add(f"const int64_t begin = box->lo[{last}], end = box->hi[{last}];")
            rows = {"from": "", "to": ""}
            for k in range(last):
                lines.add(f"const int64_t from_s{k} = source->stride[{k}], to_s{k} = target->stride[{k}];")
                rows = {side: f"{text} + x{k} * {side}_s{k}" for side, text in rows.items()}
            for k in range(last):
                lines.open(f"for (int64_t x{k} = box->lo[{k}]; x{k} < box->hi[{k}]; ++x{k}) {{")
            lines.add(f"const {c_type} *restrict const old = from{rows['from']};")
            lines.add(f"{c_type} *restrict const new = to{rows['to']};")
            lines.add(f"for (int64_t x{last} = begin; x{last} < end; ++x{last}) new[x{last}] = old[x{last}];")
            lines.close_all()
            yield from lines.texts
            yield ""

    def _elements_function(self) -> Iterator[str]:
        """The elements a face wrote in a box of iterations."""
        tile = "const lw_tile *tile, " if self._has_local_axes else ""
        yield f"static lw_box elements_of({tile}int32_t face, const lw_box *box) {{"
        yield "    lw_box elements = *box;"
        ranges = [list(self._element_ranges(face)) for face in self.faces]
        for text in self.scalar_declarations(" ".join(itertools.chain(*itertools.chain(*ranges)))):
            yield f"    {text}"
        yield "    switch (face) {"
        for number, (face, of_axes) in enumerate(zip(self.faces, ranges, strict=True)):
            yield f"        case {number}: /* {face.text} */"
            for axis, (low, high) in enumerate(of_axes):
                yield f"            elements.lo[{axis}] = {low};"
                yield f"            elements.hi[{axis}] = {high};"
            yield "            break;"
        yield "    }"
        yield "    return elements;"
        yield "}"

    @property
    def _has_local_axes(self) -> bool:
        return any(None in loops for loops in self.nest.axis_loops.values())

    def _face_function(self, verb: str, tile: str, other: str, source: str, target: str) -> Iterator[str]:
        """A function that copies a face from one place to another: this tile's array, a message, or another's array."""
        yield f"void lw_tile_{verb}({tile}, int32_t face, const lw_box *box, {other}) {{"
        yield f"    const lw_box elements = elements_of({'tile, ' if self._has_local_axes else ''}face, box);"
        dense = "&dense" in (source, target)
        if dense:
            yield "    lw_array dense;"
        yield "    switch (face) {"
        for number, face in enumerate(self.faces):
            position = [a.name for a in self.bound.arrays].index(face.array)
            array = self.bound.arrays[position]
            yield f"        case {number}: /* {face.text} */"
            if dense:
                pointer = other.split("*")[-1]
                size = f"sizeof({C_TYPES[array.dtype]})"
                yield f"            dense = lw_dense({pointer}, {size}, {len(array.shape)}, &elements);"
            places = {"here": f"&tile->arrays[{position}]", "position": position}
            source_text, target_text = source.format(**places), target.format(**places)
            yield f"            copy_{self.array(face.array)}({source_text}, {target_text}, &elements);"
            yield "            break;"
        yield "    }"
        yield "}"

    def _walked_faces(self, verb: str, tile: str, other: str, copy: str) -> Iterator[str]:
        """A function that copies what a face wrote, point by point in the order of the loops.

        Of a box in skewed coordinates only the points of the domain have elements. ``copy`` is the statement for one, with
        ``{here}`` and ``{there}`` for the element in this rank's array and in another's.
        """
        there = self.names.get("there", "there")
        yield f"void lw_tile_{verb}({tile}, int32_t face, const lw_box *box, {other.replace('there', there)}) {{"
        yield "    switch (face) {"
        for number, face in enumerate(self.faces):
            yield f"        case {number}: {{ /* {face.text} */"
            for line in indented(self._walked_face(face, copy), 3):
                yield from wrapped(line)
            yield "            break;"
            yield "        }"
        yield "    }"
        yield "}"

    def _walked_face(self, face: Face, copy: str) -> list[str]:
        position = [a.name for a in self.bound.arrays].index(face.array)
        array = self.bound.arrays[position]
        c_type, axes = C_TYPES[array.dtype], range(len(array.shape) - 1)
        base = self.names.get(("there", array.name), f"{array.name}_there")
        strides = [self.names.get(("there", array.name, axis), f"{array.name}_there_s{axis}") for axis in axes]
        subscripts = [self.affine(affine) for affine in self._target(face).affine if affine is not None]
        to, source = self.names.get("to", "to"), self.names.get("from", "from")
        statement = copy.format(
            here=self.element(array.name, subscripts), there=element(base, strides, subscripts), to=to, source=source
        )
        lines = Lines()
        self.sweep_indices(lines, statement)
        for k in range(self.nest.sweep_depth, len(self.nest.loops)):
            self.open_loop(lines, k)
        lines.add(statement)
        lines.close_all()
        body = "\n".join(lines.texts)
        others = {
            to: f"{c_type} *restrict {to} = out;",
            source: f"const {c_type} *restrict {source} = in;",
            base: f"{c_type} *restrict const {base} = {self.names.get('there', 'there')}[{position}].base;",
        }
        for axis, stride in zip(axes, strides, strict=True):
            others[stride] = f"const int64_t {stride} = {self.names.get('there', 'there')}[{position}].stride[{axis}];"
        declared = [*self.array_declarations(body), *self.scalar_declarations(body)]
        return [*declared, *(text for name, text in others.items() if mentions(body, name)), *lines.texts]

    def _target(self, face: Face) -> ir.Access:
        return next(s.target for s in self.nest.stores if (s.target.array, s.target.text) == (face.array, face.text))

    def _element_ranges(self, face: Face) -> Iterator[tuple[str, str]]:
        """Per axis, the elements a box of iterations writes; all along local axes where the face has no place there."""
        position, places = [a.name for a in self.bound.arrays].index(face.array), dict(face.places)
        for axis, k in enumerate(self.bound.loops_of_axes(face.array)):
            if axis in places:
                yield self.affine(places[axis]), self.affine(places[axis] + 1)
                continue
            if k is None:
                yield "0", f"tile->arrays[{position}].shape[{axis}]"
                continue
            affine = self._target(face).affine[axis]
            assert affine is not None
            c = affine.constant
            if self.nest.loops[k].step == 1:
                yield plus(f"box->lo[{k}]", c), plus(f"box->hi[{k}]", c)
            else:
                yield plus(f"1 - box->hi[{k}]", c), plus(f"1 - box->lo[{k}]", c)
