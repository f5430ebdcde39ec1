"""Where the elements of a distributed array are, and how they come to the ranks that need them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import ArrayType
from lapwing.runtime.arrays.elements import SharedElements
from lapwing.runtime.arrays.exchange import Exchange, common, copy_elements
from lapwing.runtime.arrays.layout import Layout, layout_to_read, nothing, rows_layout
from lapwing.runtime.arrays.shear import Box, Shear
from lapwing.runtime.arrays.storage import LocalArray, Storage, allocate, smaller_storage
from lapwing.runtime.arrays.transfer import (
    FIRST_RANK,
    Region,
    gather,
    pieces,
    replicate,
    scatter,
    scatter_parts,
    scatter_regions,
    sides,
)
from lapwing.runtime.mpi import communicator
from lapwing.tiling.boxes import coalesced, intersection, without

_KEPT_EXCHANGES = 8  # of an array: that many kinds of calls read it in turn
_KEPT_FORMS = 1000
_MADE_AT_ONCE = 4 << 20  # bytes: what functions of indices make beside it is several times as large


@dataclass(frozen=True)
class InitialValues:
    """What the elements of an array are at first: ``fill`` gives those of a box. text: in words, the same on every rank.

    of_file: whether they are read from a file, which may change."""

    text: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill: Callable[[Box], npt.NDArray[Any]]
    of_file: bool = False


@dataclass(frozen=True, eq=False)
class Need:
    """What every rank touches in calls that are alike. boxes: one of every rank."""

    boxes: tuple[Box, ...]


@dataclass(frozen=True, eq=False)
class HandedOver:
    """What ranks write last of elements that others own. rounds: one after the other, every rank's boxes."""

    rounds: list[list[list[Box]]]


@dataclass(frozen=True)
class OwnBlock:
    """This rank's block of an array. start: the index of its first element; None where blocks lie behind each other along
    the first axis, in the order of the ranks."""

    values: npt.NDArray[Any]
    start: tuple[int, ...] | None


class Parts(SharedElements):
    """A distributed array as the runtime has it: whole on rank 0 or on every rank, or a rule for its elements, or a part of it on
    every rank, whose layout says who owns what."""

    _comm: Any
    _name: str | None  # once all ranks have agreed on the array
    _identity: str | None
    _unfit: str | None  # what was passed in place of an array
    _described: str | None
    # One of these says where the elements are: whole, not made yet, this rank's block, or a part on every rank.
    _whole: npt.NDArray[Any] | None
    _initial: InitialValues | None
    _block: OwnBlock | None
    _layout: Layout | None
    _local: LocalArray | None
    # Ranks may differ in whether they have made their parts; what was made of an array that is only read; and all of it, as it
    # was brought together.
    _may_differ: bool
    _is_everywhere: bool  # whole on every rank
    _read: tuple[tuple[Box, ...], LocalArray] | None
    _form_read: tuple[Any, int] | None  # of what is read, once it was asked for
    _together: npt.NDArray[Any] | None
    # For its memory as it is: what brings it up to date, and what ranks wrote for others to these.
    _form: int | None
    _refreshing: dict[Need, Exchange]
    _handing: dict[HandedOver, list[Exchange]]

    def _begin_without_elements(self) -> None:
        self._name = self._identity = self._unfit = self._described = self._form = self._form_read = None
        self._whole = self._initial = self._block = self._layout = self._local = self._read = self._together = None
        self._may_differ = self._is_everywhere = False
        self._refreshing, self._handing = {}, {}

    @property
    def comm(self) -> Any:
        """Lapwing's own communicator for the array's ranks (mpi4py); None where it is one rank's alone."""
        return self._comm

    @property
    def name(self) -> str:
        """By what the ranks know the array. Raises RefusedError where they have yet to agree on it."""
        if self._name is None:
            self._refuse_for_now()
        return self._name

    @property
    def identity(self) -> str:
        """What tells the array from the others of its ranks, the same on all of them."""
        if self._identity is None:
            self._identity = f"{self.name} of {self.dtype}, shape {self.shape}"
        return self._identity

    def _refuse_for_now(self) -> NoReturn:
        raise RefusedError(
            "DistributedArray: the ranks agree on what a problem creates once it has returned on all of them. Until then there "
            "are only local and owned, but not of from_local."
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def layout(self) -> Layout | None:
        return self._layout

    @property
    def initial(self) -> InitialValues | None:
        """What its elements will be, as long as they are nowhere. The same on every rank after ``make_on_all_ranks``."""
        return self._initial

    @property
    def whole(self) -> npt.NDArray[Any] | None:
        """The wrapped array, on rank 0 while it is not distributed."""
        if self._comm is None and self._initial is not None:
            self._whole, self._initial = self._made_whole(), None
        return self._whole

    @property
    def holders(self) -> frozenset[int]:
        """The ranks that have the array whole, while it is not distributed."""
        return frozenset(range(self._comm.Get_size())) if self._is_everywhere else FIRST_RANK

    def _place(self) -> str:
        if self._comm is None:
            return "in this process"
        if self._initial is not None:
            return "not made yet"
        if self._layout is None:
            return "whole on every rank" if self._is_everywhere else "whole on rank 0"
        parts = "x".join(str(len(cuts) - 1) for cuts in self._layout.cuts)
        sheared = "" if self._layout.shear is None else ", in parallelograms"
        return f"distributed {parts} over {len(self._layout.owned)} ranks{sheared}"

    @property
    def _everything(self) -> Box:
        return tuple((0, n) for n in self.shape)

    @property
    def _type(self) -> ArrayType:
        return ArrayType("", self.dtype.name, self.shape)

    def _make(self) -> None:
        """Make this rank's rows, where no nest has said yet what it needs."""
        if self._initial is None:
            return
        layout = rows_layout(self.shape, self._comm.Get_size())
        own = layout.owned[self._comm.Get_rank()]
        local = allocate(self._type, own)
        fill(local, self._initial)
        self._local, self._layout, self._initial, self._read = local, layout, None, None

    def make_on_all_ranks(self) -> None:
        """Where some rank has made its part of the array, all do. Collective."""
        if self._may_differ and communicator.on_any_rank(self._initial is None, self._comm):
            communicator.agree(self._comm, self._make)
            self._may_differ = False

    def _make_parts(self) -> None:
        """Let ranks own parts, of rows where no nest has said yet what it needs. Collective."""
        self.make_on_all_ranks()
        if self._initial is not None:
            communicator.agree(self._comm, self._make)
            self._may_differ = False
        if self._layout is None:
            self._to_rows()

    def _made_whole(self) -> npt.NDArray[Any]:
        whole = np.empty(self.shape, self.dtype)
        assert self._initial is not None
        fill(LocalArray(self._type, self._everything, whole), self._initial)
        return whole

    def _forget_parts(self) -> None:
        self._layout = self._local = self._initial = self._read = self._together = self._form = None
        self._refreshing.clear()
        self._handing.clear()

    def collect(self) -> npt.NDArray[Any] | None:
        """Give up the distribution: the whole array on rank 0, to be kept there. Collective."""
        self._whole, self._is_everywhere = self._gathered(), False
        self._forget_parts()
        self._may_differ = False
        return self._whole

    def _gathered(self) -> npt.NDArray[Any] | None:
        self.make_on_all_ranks()
        first = self._comm.Get_rank() == 0
        if self._initial is not None:
            return communicator.agree(self._comm, lambda: self._made_whole() if first else None)
        if self._layout is not None:
            box = self._everything if first else nothing(self._type)
            whole = communicator.agree(self._comm, lambda: np.empty(sides(box), self.dtype))
            assert self._local is not None
            if self._layout.shear is None:
                gather(self._local, self._layout.owned, whole if first else None, self._comm)
            else:
                none = [Storage(nothing(self._type))] * (self._comm.Get_size() - 1)
                target = LocalArray(self._type, box, whole)
                Exchange(self._local, target, self._owned_parts, [Storage(self._everything), *none], self._comm)()
            return whole if first else None
        return self._whole if first else None

    def bring_everywhere(self, values: npt.NDArray[Any]) -> None:
        """Give up the distribution: all elements in an array of every rank's, to be kept there. Collective."""
        self.make_on_all_ranks()
        self._bring(values)
        self._whole, self._is_everywhere = values, True
        self._forget_parts()

    def _bring(self, values: npt.NDArray[Any]) -> None:
        """All elements into an array of every rank's."""
        if self._layout is not None and self._layout.shear is None:
            assert self._local is not None
            gather(self._local, self._layout.owned, values, self._comm, frozenset(range(self._comm.Get_size())))
        elif not self._is_everywhere:
            replicate(self._gathered(), values, self._comm)

    def part(self, needed: Sequence[Box]) -> LocalArray:
        """The elements of this rank's box in memory of their own; who owns what stays as it is. Collective.

        needed: every rank's box.
        """
        self.make_on_all_ranks()
        own = needed[self._comm.Get_rank()]
        local = self._allocate(own, exported=False)
        if self._initial is not None:
            self._fill(local)
        elif self._layout is not None:
            assert self._local is not None
            Exchange(self._local, local, self._owned_parts, list(map(Storage, needed)), self._comm)()
        else:
            scatter(self._whole, needed, local, self._comm, self.holders)
        return local

    def localise_to_read(self, needed: Sequence[Box]) -> LocalArray:
        """This rank's memory for a run that only reads the array: its box, with all elements up to date. Collective.

        needed: the box every rank reads. Who owns what stays as it is, once that is settled. Nobody writes to the memory.
        """
        self.make_on_all_ranks()
        boxes = tuple(needed)
        if self._read is not None and self._read[0] == boxes:
            return self._read[1]
        if self._layout is None and self._initial is None and not self._is_everywhere:
            self._settle(boxes)
        if self._layout is not None and self._layout.shear is None:
            together = self._together
            local = self.localise(needed, self._layout)
            self._together = together
            return local
        part = self.part(boxes)
        if self._layout is None:
            self._read = boxes, part
        return part

    def _settle(self, needed: Sequence[Box]) -> None:
        """Let ranks own most of what they read of an array that rank 0 has, or all have it where they read much the same."""
        layout = layout_to_read(needed, self.shape)
        if layout is not None:
            self.localise(needed, layout)
        else:
            self.bring_everywhere(communicator.agree(self._comm, lambda: np.empty(self.shape, self.dtype)))

    def localise(
        self,
        needed: Sequence[Box],
        layout: Layout,
        exported: bool = False,
        parts: Sequence[Sequence[Box]] | None = None,
    ) -> LocalArray:
        """This rank's memory for a run: its owned and needed elements, all up to date. Collective.

        needed: the box every rank touches, of sheared indices where the layout has a shear. layout: who owns what from now on.
        exported: other ranks want to map it. parts: of every rank's box what it reads, where that is not most of it.
        """
        self.make_on_all_ranks()
        before, rank = self._layout, self._comm.Get_rank()
        if before is not None and before.shear is not None and layout.shear not in (None, before.shear):
            self._to_rows()  # what two kinds of parallelograms have in common is no row of elements
            before = self._layout
        boxes = [_hull(a, b) for a, b in zip(needed, layout.owned, strict=True)]
        if before is None:
            local = self._allocate(boxes[rank], exported, layout.shear)
            self._distribute(local, [Storage(box, layout.shear) for box in boxes], _with_owned(layout, parts))
            self._whole = self._initial = self._read = None
            self._may_differ = self._is_everywhere = False
        else:
            assert self._local is not None
            local, same = self._local, before == layout
            # Collective: where one rank needs other memory, all take part.
            unfit = not same or not self._holds(boxes[rank]) or (exported and local.segment is None)
            if communicator.on_any_rank(unfit, self._comm):
                wide = _hull(boxes[rank], local.box) if same and layout.shear is None else boxes[rank]
                local = self._allocate(wide, exported, layout.shear)
            if (apart := _with_owned(layout, parts)) is None:
                wanted = [Storage(box, layout.shear) for box in boxes]
                Exchange(self._local, local, self._owned_parts, wanted, self._comm)()
            else:
                first = [Storage(own) for own in layout.owned]
                pairs = zip(apart, layout.owned, strict=True)
                rest = [[Storage(box) for box in without(found, [own])] for found, own in pairs]
                Exchange(self._local, local, self._owned_parts, first, self._comm, rest)()
        if local is not self._local or layout != before:
            self._refreshing.clear()
            self._handing.clear()
            self._form = None
        self._local, self._layout, self._together = local, layout, None
        return local

    def _distribute(
        self, local: LocalArray, parts: Sequence[Storage], apart: Sequence[Sequence[Box]] | None = None
    ) -> None:
        """Fill every rank's memory from where the elements are so far: nowhere, or whole on some ranks.

        apart: the boxes that are read, where they are not most of it.
        """
        if self._initial is not None:
            self._fill(local)
        elif apart is not None:
            scatter_parts(self._whole, apart, local, self._comm, self.holders)
        elif all(part.shear is None for part in parts):
            scatter(self._whole, [part.box for part in parts], local, self._comm, self.holders)
        else:
            stored, limits = local.shear is not None, self._everything
            regions = [Region(part.shear, part.box, limits, stored) for part in parts if part.shear is not None]
            scatter_regions(self._whole, regions, local, self._comm, self.holders)

    def _to_rows(self) -> None:
        layout = rows_layout(self.shape, self._comm.Get_size())
        self.localise(layout.owned, layout)

    @property
    def form(self) -> Any:
        """How this rank's part lies in memory and who owns what; of an array that is not distributed, where it is. Forms can be
        compared."""
        if self._read is not None:
            if self._form_read is None or self._form_read[0] is not self._read:
                self._form_read = self._read, _form(self._read[1], None, self._read[0])
            return self._form_read[1]
        if self._local is None or self._layout is None:
            return self._place(), self.dtype, self.shape
        if self._form is None:
            self._form = _form(self._local, self._layout, ())
        return self._form

    @property
    def memory(self) -> LocalArray:
        """This rank's part, of which ``form`` tells."""
        found = self._local if self._read is None else self._read[1]
        assert found is not None
        return found

    def note_written(self) -> None:
        """A run writes to its parts."""
        self._together = None

    def refreshing(self, need: Need) -> Exchange | None:
        """The messages that bring elements of other ranks up to date in memory that is there; None where that needs none."""
        if self._read is not None:
            return None
        found = self._refreshing.get(need)
        if found is None:
            assert self._local is not None
            assert self._layout is not None
            shear = self._layout.shear
            parts = [Storage(_hull(a, b), shear) for a, b in zip(need.boxes, self._layout.owned, strict=True)]
            found = Exchange(self._local, self._local, self._owned_parts, parts, self._comm)
            _keep(self._refreshing, need, found)
        return found

    def hand_over(self, handed: HandedOver) -> None:
        """Bring elements that ranks keep to those that own them. Collective."""
        exchanges = self._handing.get(handed)
        if exchanges is None:
            assert self._local is not None
            none, local, exchanges = Storage(nothing(self._type)), self._local, []
            for boxes in handed.rounds:
                for turn in range(max(map(len, boxes))):
                    kept = [Storage(own[turn]) if turn < len(own) else none for own in boxes]
                    exchanges.append(Exchange(local, local, kept, self._owned_parts, self._comm))
            _keep(self._handing, handed, exchanges)
        for exchange in exchanges:
            exchange()

    @property
    def _owned_parts(self) -> list[Storage]:
        assert self._layout is not None
        return [self._layout.part(rank) for rank in range(self._comm.Get_size())]

    def _holds(self, box: Box) -> bool:
        """Whether this rank's memory has room for a box of the indices that its layout is in."""
        assert self._local is not None
        assert self._layout is not None
        if self._layout.shear is not None and self._local.shear is None:
            box = self._layout.shear.around(box, self._everything)
        return _contains(self._local.box, box)

    def _allocate(self, box: Box, exported: bool, shear: Shear | None = None) -> LocalArray:
        part = Storage(box) if shear is None else smaller_storage(shear, box, self._everything)
        return communicator.agree(self._comm, lambda: allocate(self._type, part.box, exported, part.shear))

    def _fill(self, local: LocalArray) -> None:
        initial = self._initial
        assert initial is not None
        communicator.agree(self._comm, lambda: fill(local, initial))


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    while len(kept) >= _KEPT_EXCHANGES:
        del kept[next(iter(kept))]
    kept[key] = value


def fill(local: LocalArray, initial: InitialValues) -> None:
    """Make the elements that a rank keeps, in pieces."""
    if local.shear is None:
        for piece in pieces(local.box, local.array.itemsize, _MADE_AT_ONCE):
            local.view(piece)[...] = initial.fill(piece)
        return
    everything = tuple((0, n) for n in local.array.shape)
    for piece in pieces(local.shear.around(local.box, everything), local.array.itemsize, _MADE_AT_ONCE):
        found = common(Storage(local.box, local.shear), Storage(piece), everything)
        if found is not None:
            copy_elements(LocalArray(local.array, piece, np.ascontiguousarray(initial.fill(piece))), local, found)


_forms: dict[Any, int] = {}
_numbers = itertools.count()


def _form(local: LocalArray, layout: Layout | None, boxes: tuple[Box, ...]) -> int:
    """A number for the way in which an array is kept: equal ones have the same, and different ones never."""
    array = local.array
    key = (array.dtype, array.shape, local.box, local.values.strides, local.shear, local.segment is None, layout, boxes)
    if key not in _forms:
        if len(_forms) >= _KEPT_FORMS:
            _forms.clear()
        _forms[key] = next(_numbers)
    return _forms[key]


def _with_owned(layout: Layout, parts: Sequence[Sequence[Box]] | None) -> list[list[Box]] | None:
    """What every rank reads or owns, box by box."""
    if parts is None:
        return None
    return [coalesced([own, *others]) for own, others in zip(layout.owned, parts, strict=True)]


def _hull(a: Box, b: Box) -> Box:
    if intersection(a, a) is None:
        return b
    if intersection(b, b) is None:
        return a
    return tuple((min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True))


def _contains(outer: Box, inner: Box) -> bool:
    if intersection(inner, inner) is None:
        return True
    return all(o[0] <= i[0] and i[1] <= o[1] for o, i in zip(outer, inner, strict=True))
