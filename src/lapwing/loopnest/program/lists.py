"""Lists of numbers that a region only reads, as arrays: their elements are Python's numbers there, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapwing.loopnest import ir

_BITS = (7, 15, 31, 50)  # of whole numbers; one more would not be known to fit 64 bits in a sum or product
MOST_NUMBERS = 100_000  # in a list: it is turned into an array in every call


@dataclass(frozen=True)
class Listed:
    """arrays: by the names of lists. kinds: what their elements are, by name: ``float``, ``bool``, ``complex``, ``int`` with the
    number of bits that hold them all, or nothing where they are NumPy's."""

    arrays: Mapping[str, Any]
    kinds: tuple[tuple[str, str], ...]


def listed(nest: ir.LoopNest, arguments: Mapping[str, Any]) -> Listed | None:
    """The lists and tuples among the arguments that loops take elements of; None where there are none, or others as well."""
    names = [n for n in nest.arrays if type(arguments.get(n)) in (list, tuple)]
    found: dict[str, Any] = {}
    kinds: list[tuple[str, str]] = []
    for name in names:
        shape = _shape(arguments[name])
        if shape is None or name in nest.written:
            return None
        numbers = [*_numbers(arguments[name])]
        kind = _kind(numbers)
        if kind is None or len(numbers) > MOST_NUMBERS:
            return None
        found[name] = np.array(numbers).reshape(shape)
        kinds.append((name, kind))
    return Listed(found, tuple(kinds)) if found else None


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of rows in each other that are equally long; None of others."""
    if type(value) not in (list, tuple):
        return ()
    shapes = {_shape(part) for part in value}
    if len(shapes) != 1 or (inner := shapes.pop()) is None:
        return None
    return (len(value), *inner)


def _numbers(value: Any) -> Iterator[Any]:
    if type(value) not in (list, tuple):
        yield value
        return
    for part in value:
        yield from _numbers(part)


def _kind(numbers: list[Any]) -> str | None:
    """What numbers are, where they are all of one type; None otherwise."""
    (kind, *others) = {type(number) for number in numbers}
    if others:
        return None
    if kind in (bool, float, complex):
        return str(kind.__name__)
    if kind is int:
        largest = max(map(abs, numbers))
        bits = next((bits for bits in _BITS if largest <= 2**bits), None)
        return None if bits is None else f"int {bits}"
    return "" if issubclass(kind, np.generic) else None
