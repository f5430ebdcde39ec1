"""The arrays that calls of a region have come to their end on: on arrays like them nothing is refused."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from lapwing.memo import Memo


class KnownArrays:
    """By types, dtypes, shapes, strides and flags; and whether they share memory is looked at whenever other arrays come."""

    def __init__(self, parameters: Sequence[str], arrays: Collection[str], written: Collection[str]) -> None:
        self._count = len(parameters)
        names = [name for name in parameters if name in arrays]
        self._positions = [position for position, name in enumerate(parameters) if name in arrays]
        self._pairs = [
            (one, other)
            for one, other in itertools.combinations(range(len(names)), 2)
            if names[one] in written or names[other] in written
        ]
        self._kinds: Memo[bool] = Memo()
        self._last: tuple[weakref.ref[Any], ...] = ()

    def note(self, args: Sequence[Any]) -> None:
        """A call with these arguments, by position, has come to its end."""
        if len(args) == self._count:
            kinds = tuple(_kind(args[position]) for position in self._positions)
            if kinds not in self._kinds:
                self._kinds.keep(kinds, True)

    def hold(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays, in the order of the parameters, are like those of such a call, and apart."""
        last = self._last
        if last and len(last) == len(arrays) and all(known() is one for known, one in zip(last, arrays, strict=True)):
            return True
        if tuple(map(_kind, arrays)) not in self._kinds:
            return False
        if any(np.may_share_memory(arrays[one], arrays[other]) for one, other in self._pairs):
            return False
        self._last = tuple(map(weakref.ref, arrays))
        return True


def _kind(value: Any) -> Any:
    if type(value) is not np.ndarray:
        return object()  # like no other
    return value.dtype, value.shape, value.strides, value.flags.num
