"""Elements of distributed arrays from the ranks that own them to those that need them, from every rank to every other.

What a rank owns or needs is a box of elements, or of sheared ones, cut off at the array's edges (``storage.Storage``). What two
of them have in common is a box again, or, where one is sheared, runs of elements along one axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.runtime.arrays.shear import Box, Shear
from lapwing.runtime.arrays.storage import LocalArray, Storage
from lapwing.runtime.arrays.transfer import CHUNK_BYTES, as_bytes, pieces, sides
from lapwing.runtime.mpi.communicator import finish, known
from lapwing.tiling.boxes import intersection

Indices = npt.NDArray[np.int64]

_COPIED_AT_ONCE = 1 << 20  # elements of runs: their places take as much memory again


@dataclass(frozen=True)
class Runs:
    """Elements of an array in runs along ``axis``. starts: the first of every run, an index a column; lengths: of the runs."""

    axis: int
    starts: Indices
    lengths: Indices

    def parts(self, elements: int) -> Iterator[Runs]:
        """The same in parts of about so many elements."""
        numbers = (np.cumsum(self.lengths) - 1) // elements
        for part in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(numbers)) + 1):
            yield Runs(self.axis, self.starts[:, part], self.lengths[part])

    def places(self, local: LocalArray) -> Indices:
        """How far behind the first element of a rank's memory they lie, in elements."""
        strides = np.array(local.strides, np.int64)
        kept = [stride // local.array.itemsize for stride in local.values.strides]
        first = strides @ self.starts - sum(low * stride for (low, _), stride in zip(local.box, kept, strict=True))
        before = np.cumsum(self.lengths) - self.lengths
        along = np.arange(self.lengths.sum()) - np.repeat(before, self.lengths)
        places: Indices = np.repeat(first, self.lengths) + strides[self.axis] * along
        return places


def common(one: Storage, other: Storage, limits: Box) -> Box | Runs | None:
    """The elements that lie in both; None where there are none. limits: all of the array. Of two shears there is one only."""
    if one.shear is None and other.shear is None:
        return intersection(one.box, other.box)
    if one.shear is not None and other.shear is not None:
        assert one.shear == other.shear
        both = intersection(one.box, other.box)
        return None if both is None else _runs(one.shear, both, limits)
    sheared, plain = (one, other) if one.shear is not None else (other, one)
    assert sheared.shear is not None
    inside = intersection(plain.box, limits)
    return None if inside is None else _runs(sheared.shear, sheared.box, inside)


def _runs(shear: Shear, box: Box, limits: Box) -> Runs | None:
    """The elements of ``limits`` that lie in a sheared box."""
    hull = shear.around(box, limits)
    if intersection(hull, hull) is None:
        return None
    axis = shear.order[-1]  # no other is moved along with it
    others = [k for k in range(len(box)) if k != axis]
    lows = np.array([hull[k][0] for k in others], np.int64)
    grid = np.indices([hull[k][1] - hull[k][0] for k in others]).reshape(len(others), -1)
    starts = np.zeros((len(box), grid.shape[1]), np.int64)
    starts[others] = grid + lows[:, None]
    moved = np.array(shear.rows, np.int64) @ starts
    low = np.maximum(limits[axis][0], box[axis][0] - moved[axis])
    high = np.minimum(limits[axis][1], box[axis][1] - moved[axis])
    inside = low < high
    for k in others:
        inside &= (box[k][0] <= moved[k]) & (moved[k] < box[k][1])
    if not inside.any():
        return None
    starts[axis] = low
    return Runs(axis, starts[:, inside], (high - low)[inside])


class _Place:
    """Some of a rank's elements where they lie."""

    def __init__(self, local: LocalArray, elements: Box | Runs) -> None:
        if isinstance(elements, Runs):
            self.shape: tuple[int, ...] = (int(elements.lengths.sum()),)
            self._places: Indices | None = elements.places(local)
            self._values = _flat(local)
        else:
            self.shape, self._places, self._values = sides(elements), None, local.view(elements)

    def take(self, dense: npt.NDArray[Any]) -> None:
        """Copy them."""
        if self._places is None:
            dense[...] = self._values
        else:
            np.take(self._values, self._places, out=dense, mode="clip")  # any other mode copies once more

    def put(self, dense: npt.NDArray[Any]) -> None:
        """Let others take their place."""
        if self._places is None:
            self._values[...] = dense
        else:
            self._values[self._places] = dense


def _flat(local: LocalArray) -> npt.NDArray[Any]:
    """A rank's memory from its first element to its last."""
    values = local.values
    span = sum((n - 1) * stride for n, stride in zip(values.shape, values.strides, strict=True)) // values.itemsize + 1
    return np.lib.stride_tricks.as_strided(values, (span,), (values.itemsize,))


def copy_elements(old: LocalArray, new: LocalArray, elements: Box | Runs) -> None:
    """From one memory of a rank to another."""
    if not isinstance(elements, Runs):
        new.view(elements)[...] = old.view(elements)
        return
    source, target = _flat(old), _flat(new)
    for part in elements.parts(_COPIED_AT_ONCE):
        target[part.places(new)] = source[part.places(old)]


def elements_of(local: LocalArray, part: Storage) -> npt.NDArray[Any]:
    """The elements of a part in a rank's memory, of a sheared one in one row."""
    if part.shear is None:
        return local.view(part.box)
    found = common(part, part, tuple((0, n) for n in local.array.shape))
    if not isinstance(found, Runs):
        return np.empty(0, local.array.dtype)
    dense = np.empty(int(found.lengths.sum()), local.array.dtype)
    _Place(local, found).take(dense)
    return dense


def put_elements(local: LocalArray, part: Storage, values: npt.NDArray[Any]) -> None:
    """Let such values take the place of the elements of a part."""
    if part.shear is None:
        local.view(part.box)[...] = values
    elif isinstance(found := common(part, part, tuple((0, n) for n in local.array.shape)), Runs):
        _Place(local, found).put(values)


class Exchange:
    """The messages that fill what every rank needs from the ranks that own it, to be sent as often as wanted."""

    def __init__(
        self,
        old: LocalArray,
        new: LocalArray,
        owned: Sequence[Storage],
        needed: Sequence[Storage],
        comm: Any,
        also: Sequence[Sequence[Storage]] = (),
    ) -> None:
        """old, new: this rank's memory of what it owns and of what it needs; they may be the same. comm: mpi4py. also: what else
        every rank needs, apart from the rest."""
        self._comm, rank = comm, comm.Get_rank()
        limits = tuple((0, n) for n in new.array.shape)
        wanted = [[one, *(also[k] if also else ())] for k, one in enumerate(needed)]
        self._memory = (old, new)
        self._own = [common(owned[rank], one, limits) for one in wanted[rank]] if new is not old else []
        self._arriving: list[tuple[int, _Place, npt.NDArray[Any]]] = []
        leaving: list[tuple[int, _Place, npt.NDArray[Any]]] = []
        self._moved = known(comm).moved
        for other in range(comm.Get_size()):
            if other != rank:
                for one in wanted[rank]:
                    self._add(self._arriving, other, new, common(owned[other], one, limits))
                for one in wanted[other]:
                    self._add(leaving, other, old, common(owned[rank], one, limits))
        self._receives = [(other, as_bytes(dense)) for other, _, dense in self._arriving]
        self._sends = [(other, place, dense, as_bytes(dense)) for other, place, dense in leaving]
        self._bytes = sum(dense.nbytes for _, _, dense in leaving)

    @staticmethod
    def _add(
        messages: list[tuple[int, _Place, npt.NDArray[Any]]], other: int, local: LocalArray, found: Box | Runs | None
    ) -> None:
        for part in _parts(found, local.array.itemsize):
            place = _Place(local, part)
            messages.append((other, place, np.empty(place.shape, local.array.dtype)))

    def __call__(self) -> None:
        """Collective."""
        if requests := self.start():
            finish(requests, self._comm)
        self.end()

    def start(self) -> list[Any]:
        """Send what this rank owns: the requests (mpi4py) to be finished before the ``end``."""
        for own in self._own:
            if own is not None:
                copy_elements(*self._memory, own)
        requests = [self._comm.Irecv(data, source=other) for other, data in self._receives]
        for other, place, dense, data in self._sends:
            place.take(dense)
            requests.append(self._comm.Isend(data, dest=other))
        self._moved["exchanged"] += 1
        self._moved["bytes"] += self._bytes
        return requests

    def end(self) -> None:
        """Store what has come."""
        for _, place, dense in self._arriving:
            place.put(dense)


def _parts(found: Box | Runs | None, itemsize: int) -> Iterator[Box | Runs]:
    """What one message takes at a time."""
    if isinstance(found, Runs):
        yield from found.parts(max(1, CHUNK_BYTES // itemsize))
    elif found is not None:
        yield from pieces(found, itemsize)
