"""What the names of a driver stand for while it is specialised: what is known now, and what an exported program finds out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lapwing.errors import RefusedError
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.promotion import ScalarType
from lapwing.tiling.boxes import Box


@dataclass(frozen=True, eq=False)
class Known:
    """A value that is the same in every run: a number, a range, a function."""

    value: Any

    @cached_property
    def _key(self) -> Any:
        value = self.value
        if isinstance(value, float | complex | np.number):
            return type(value), np.asarray(value).tobytes()  # 0.0 is not -0.0, and NaN is itself
        if isinstance(value, tuple | list):
            return type(value), tuple(Known(one)._key for one in value)
        try:
            hash(value)
        except TypeError:
            return type(value), id(value)
        return type(value), value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, bool | int | float | np.number | np.bool)


@dataclass(frozen=True)
class Register:
    """A number that a run finds out, in the program's register of that name. origins: what made it one that could be known as
    well: the counters of loops that are not unrolled, and names that differ from one iteration to the next. kinds: of a number
    whose type depends on the run, those that it may have; register ``… kind`` tells which, from 1 on, or 0: the type."""

    name: str
    type: ScalarType
    origins: frozenset[Any] = field(default_factory=frozenset, compare=False)
    kinds: tuple[ScalarType, ...] = ()

    @property
    def example(self) -> Any:
        """A value of its type, that means nothing."""
        number = {"f": 0.7310585786300049, "b": True}.get(np.dtype(self.type.dtype).kind, 3)
        return number if self.type.weak else np.dtype(self.type.dtype).type(number)


class NeedsValue(Exception):
    """Something asks for the value of a number that was left to the program."""

    def __init__(self, register: Register, what: str) -> None:
        super().__init__(what)
        self.register = register


@dataclass(frozen=True)
class View:
    """An array, or a part of one: of every axis of the memory an index, or a range of them."""

    memory: str
    dtype: str
    whole: tuple[int, ...]
    part: tuple[int | tuple[int, int], ...]

    @staticmethod
    def of(memory: str, dtype: str, shape: tuple[int, ...]) -> View:
        return View(memory, dtype, shape, tuple((0, n) for n in shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(r[1] - r[0] for r in self.part if isinstance(r, tuple))

    @property
    def is_whole(self) -> bool:
        return all(r == (0, n) for r, n in zip(self.part, self.whole, strict=True))

    @property
    def has_gaps(self) -> bool:
        """Whether elements of a row do not lie behind each other."""
        return isinstance(self.part[-1], int)

    @property
    def like(self) -> ArrayShape:
        return ArrayShape(self.dtype, self.shape)

    def indexed(self, index: tuple[int | slice, ...]) -> View:
        """A view of it. Raises IndexError as NumPy does, and ValueError for a part with gaps."""
        if len(index) > len(self.shape):
            raise IndexError("too many indices")
        left = iter((*index, *(slice(None),) * (len(self.shape) - len(index))))
        part: list[int | tuple[int, int]] = []
        for along in self.part:
            if isinstance(along, int):
                part.append(along)
                continue
            low, high = along
            wanted = next(left)
            if isinstance(wanted, slice):
                start, stop, step = wanted.indices(high - low)
                if step != 1:
                    raise ValueError("a step other than 1")
                part.append((low + start, low + max(start, stop)))
                continue
            if not -(high - low) <= wanted < high - low:
                raise IndexError(f"index {wanted} of an axis of {high - low}")
            part.append(low + wanted % (high - low))
        return View(self.memory, self.dtype, self.whole, tuple(part))

    def in_memory(self, box: Box) -> Box:
        """Elements of the view as elements of the memory."""
        inside = iter(box)
        found = []
        for along in self.part:
            if isinstance(along, int):
                found.append((along, along + 1))
            else:
                low, high = next(inside)
                found.append((along[0] + low, along[0] + high))
        return tuple(found)

    @property
    def box(self) -> Box:
        """All of its elements, as those of the memory."""
        return self.in_memory(tuple((0, n) for n in self.shape))


@dataclass(frozen=True)
class Several:
    """A tuple of which not all is known."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Counting:
    """A for loop that the program counts. position: the register with how many iterations there have been. begins: whether there
    has been none."""

    position: str
    values: range
    begins: bool


@dataclass(frozen=True)
class Unrolled:
    """A for loop that is followed iteration by iteration: what it goes over, and how many there have been."""

    items: Known | Several
    position: int


Value = Known | Register | View | Several | Counting | Unrolled


def memories_in(value: Value) -> Iterator[str]:
    if isinstance(value, View):
        yield value.memory
    elif isinstance(value, Several):
        for one in value.items:
            yield from memories_in(one)
    elif isinstance(value, Unrolled):
        yield from memories_in(value.items)


def bits_of(value: Any) -> int:
    """The 64 bits of a number in a register."""
    if isinstance(value, float | np.floating):
        return int(np.float64(value).view(np.int64))
    return int(value)


def fits(value: Any) -> bool:
    """Whether a register can hold a known number."""
    return not isinstance(value, int | np.integer) or -(2**63) <= int(value) < 2**63


def example_of(value: Value) -> Any:
    """What stands for a value where a nest is bound."""
    match value:
        case Known(value=known):
            return known
        case Register():
            return value.example
        case View():
            return value.like
    raise RefusedError("a tuple is passed to a nest. Pass numbers and arrays.")


def shares_memory(one: View, other: View) -> bool:
    pairs = zip(one.box, other.box, strict=False)
    return one.memory == other.memory and all(max(a[0], b[0]) < min(a[1], b[1]) for a, b in pairs)
