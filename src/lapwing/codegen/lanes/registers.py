"""The vector registers that lanes are computed in, in C: what their types and variables are called, which elements have vectors
of their own, and how they are loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.body.text import plus
from lapwing.codegen.body.widening import WIDE
from lapwing.codegen.lanes.buffers import Buffers
from lapwing.tiling.transposed import ITEMSIZES, Distance, Offset, distance


class Registers:
    """``count`` vectors of ``width`` lanes, for the elements of buffers."""

    def __init__(self, buffers: Buffers, names: Names, c: PairNames, size: int, width: int, kind: str) -> None:
        """size: bytes of every value; kind: what the names of types begin with, where a module has other vectors, too."""
        self.buffers, self.c, self._names, self.width, self._kind = buffers, c, names, width, kind
        self.count = buffers.lanes // width
        self._written = [k for k, plane in enumerate(buffers.planes) if plane.written]
        self._size = size

    def _source(self, number: int, offset: Offset) -> tuple[str, int]:
        """What an element is taken from, and how many lanes further down."""
        when, across = distance(offset), offset[0]
        at = self.buffers.at(number, when)
        if across and (self._is_held(number, when) or self._is_widened(number)):
            return self._names.get(
                ("shifted", at, across), f"{at}_{abs(across)}_{'above' if across < 0 else 'below'}"
            ), 0
        return at, across

    def _is_held(self, number: int, when: Distance) -> bool:
        """Whether what was written at a step is in a register."""
        return self.buffers.planes[number].written and when[0] == 0 and when[1] < 0

    def _is_now(self, number: int, offset: Offset) -> bool:
        return self.buffers.planes[number].written and offset == (0, 0, 0)

    def _is_widened(self, number: int) -> bool:
        return ITEMSIZES[self.buffers.planes[number].dtype] < self._size

    def _now(self, number: int) -> str:
        return self.buffers.at(number, (0, 0))

    # -- types -----------------------------------------------------------------------------------------------------------

    def _c_type(self, dtype: str) -> str:
        """The type that elements are widened to."""
        if ITEMSIZES[dtype] == self._size:
            return C_TYPES[dtype]
        return "double" if dtype == "float32" else C_TYPES[WIDE[self._size]]

    @property
    def lane_type(self) -> str:
        """The type in which lanes are compared: of the size of elements, for which there are as many in a vector."""
        return C_TYPES[WIDE[self._size]]

    @property
    def _order(self) -> str:
        """The type of places in vectors."""
        return self._names.get("vector of places", f"{self._kind}vector_of_places")

    @staticmethod
    def _memory_type(dtype: str) -> str:
        """The type of elements in memory; there are no vectors of bools."""
        return "uint8" if dtype == "bool" else dtype

    def _memory_c_type(self, dtype: str) -> str:
        return C_TYPES[self._memory_type(dtype)]

    def _between(self, dtype: str) -> list[str]:
        """The types between that of elements in memory and that of values, the narrowest first: compilers convert to one that is
        twice as wide, and by more than that element by element."""
        return [wide for size, wide in WIDE.items() if ITEMSIZES[dtype] < size < self._size and dtype != "float32"]

    def _type(self, c_type: str, suffix: str = "") -> str:
        return self._names.get(
            ("vector of", c_type, suffix), f"{self._kind}vector_of_{c_type.removesuffix('_t')}{suffix}"
        )

    def _vector(self, dtype: str) -> str:
        return self._type(self._c_type(dtype))

    # -- variables -------------------------------------------------------------------------------------------------------

    def _variable(self, name: str, k: int) -> str:
        return self._names.get(("vector", name, k), f"{name}_{k}")

    def _edge_name(self, then: str) -> str:
        return self._names.get(("edge", then), f"{then}_above")

    def _pointer(self, number: int, vectors: str, k: int, const: bool = True) -> str:
        c_type = self._c_type(self.buffers.planes[number].dtype)
        return f"({'const ' if const else ''}{c_type} *)&{self._variable(vectors, k)}"

    def _loaded(
        self, number: int, name: str, pointer: str, vectors: range, const: str = "", across: int = 0
    ) -> Iterator[str]:
        dtype = self.buffers.planes[number].dtype
        for k in vectors:
            yield f"{const}{self._vector(dtype)} {self._variable(name, k)} = {self._load(dtype, pointer, k, across)};"

    def _load(self, dtype: str, pointer: str, k: int, across: int = 0) -> str:
        return self._loaded_from(dtype, f"{pointer} + {plus(self.c.starts_at, k * self.width + across)}")

    def _loaded_from(self, dtype: str, there: str) -> str:
        text = f"*(const {self._type(self._memory_c_type(dtype), '_anywhere')} *)({there})"
        if ITEMSIZES[dtype] == self._size:
            return text
        between = map(self._vector_of, self._between(self._memory_type(dtype)))
        return _converted(text, [*between, self._vector(dtype)])

    def _store(self, dtype: str, there: str, vector: str) -> str:
        """The statement that puts a vector of values, which the type of elements holds, where they lie in memory."""
        memory_type = self._memory_type(dtype)
        if ITEMSIZES[dtype] < self._size:
            between = [*reversed(self._between(memory_type)), memory_type]
            vector = _converted(vector, list(map(self._vector_of, between)))
        return f"*({self._type(C_TYPES[memory_type], '_anywhere')} *)({there}) = {vector};"

    def _vector_of(self, dtype: str) -> str:
        """The type of a vector of elements that are not widened."""
        return self._type(C_TYPES[dtype])


def _converted(text: str, types: Sequence[str]) -> str:
    """A vector converted to one type after the other."""
    for vector_type in types:
        text = f"__builtin_convertvector({text}, {vector_type})"
    return text
