"""Functions of elements that are computed once in vectors, in C: images of what was written, which are kept from step to step,
and roots of what no step waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.lanes.buffers import Buffers
from lapwing.codegen.lanes.registers import Registers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.transposed import Image, Offset, distance, images_of, separate_roots

# Gives the C text of an expression from that of the one element in it.
Value = Callable[[t.Typed, t.Load, str], str]


class ImageRegisters(Registers):
    """Registers that hold functions of elements, too."""

    def __init__(
        self,
        bound: BoundNest,
        buffers: Buffers,
        names: Names,
        c: PairNames,
        size: int,
        width: int,
        value: Value,
        kind: str,
    ) -> None:
        super().__init__(buffers, names, c, size, width, kind)
        self._value = value
        self._imaged = images_of(bound, buffers.all_planes)
        # Sixteen floats at a time have a way to their roots without the divider.
        self._rooted = separate_roots(bound, buffers.all_planes) if (self._size, width) == (4, 16) else {}
        self._images = list(dict.fromkeys(image for image, _ in self._imaged.values()))

    def images(self) -> dict[t.Typed, str]:
        """What stands for the functions of elements that are computed once."""
        found = {node: f"{self._image(*place)}[{self.c.lane}]" for node, place in self._imaged.items()}
        return found | {node: f"{self._root(load)}[{self.c.lane}]" for node, load in self._rooted.items()}

    # -- roots of what no step waits for ---------------------------------------------------------------------------------

    @property
    def _fits(self) -> str:
        return self._names.get("roots fit", "roots_fit")

    def _root(self, load: t.Load) -> str:
        number, offset = self.buffers.places[load]
        name, across = self._source(number, offset)
        suffix = f"_{abs(across)}_{'above' if across < 0 else 'below'}" if across else ""
        return self._names.get(("root", load), f"{name}{suffix}_root")

    def _roots(self, k: int) -> Iterator[str]:
        """Those of a vector."""
        for load in self._rooted.values():
            number, offset = self.buffers.places[load]
            name, across = self._source(number, offset)
            own = self._variable(self._root(load), k)
            yield f"const {self._vector('float32')} {own} = lw_roots_16({self._load(load.dtype, name, k, across)}, {self._fits});"

    # -- functions of what was written -----------------------------------------------------------------------------------

    def _image(self, image: Image, offset: Offset) -> str:
        """What stands for the images of elements: of those of a step, or of lanes further up."""
        name, _ = self._source(image.number, offset)
        number = self._images.index(image) + 1
        return self._names.get(("image", image, name), f"{name}_image{number if len(self._images) > 1 else ''}")

    def _imaged_steps(self, image: Image) -> range:
        """So many steps ago elements were written whose images are kept."""
        return range(1, 1 + max(-distance(offset)[1] for own, offset in self._imaged.values() if own == image))

    def _computed(self, image: Image, ago: int, some: bool, declares: bool = False) -> Iterator[str]:
        """The images of the elements of a step. some: not those beyond all lanes, where the buffers hold whatever was there,
        with denormal numbers perhaps, whose roots take long."""
        lane, name = self.c.lane, self._image(image, (0, -ago, 0))
        plane = self.buffers.planes[image.number]
        then = self.buffers.at(image.number, (0, -ago))
        for k in range(self.count):
            own = self._variable(name, k)
            if declares:
                yield f"{self._vector(image.value.dtype)} {own} = {{0}};"
            text = self._value(image.value, plane.reference, f"{self._variable(then, k)}[{lane}]")
            if some:
                yield f"if ({self.c.starts_at} + {k * self.width} < {self.c.beyond}) {{"
            yield "#pragma omp simd"
            yield f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {own}[{lane}] = {text};"
            if some:
                yield "}"

    def _shifted_image(self, image: Image, offset: Offset) -> Iterator[str]:
        """The images of elements of lanes further up: those before the first lane are computed one by one."""
        when, vector = distance(offset), self._vector(image.value.dtype)
        name, shifted = self._image(image, (0, when[1], 0)), self._image(image, offset)
        reference, then = self.buffers.planes[image.number].reference, self.buffers.at(image.number, when)
        above = self._edge_name(shifted)
        yield f"{vector} {above} = {{0}};"
        for lane in range(1, -offset[0] + 1):
            text = self._value(image.value, reference, f"{then}[{self.c.starts_at} - {lane}]")
            yield f"{above}[{self.width - lane}] = {text};"
        order = ", ".join(str(self.width + offset[0] + lane) for lane in range(self.width))
        for k in range(self.count):
            vectors = f"{self._variable(name, k - 1) if k else above}, {self._variable(name, k)}"
            yield f"const {vector} {self._variable(shifted, k)} = LW_SHUFFLE({self._order}, {vectors}, {order});"
