"""Arrays that stay distributed between calls of nests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.html import table
from lapwing.loopnest.binding.bound_nest import ArrayType
from lapwing.runtime.arrays.elements import Elements
from lapwing.runtime.arrays.exchange import Exchange, common, copy_elements, elements_of, put_elements
from lapwing.runtime.arrays.layout import Layout, layout_of_blocks, layout_to_read, nothing, rows_layout
from lapwing.runtime.arrays.meeting import Call, agree_on, check_same_elements, described, is_plain, tell
from lapwing.runtime.arrays.saving import SavedFile
from lapwing.runtime.arrays.shear import Box, Shear
from lapwing.runtime.arrays.storage import LocalArray, Storage, allocate, smaller_storage
from lapwing.runtime.arrays.transfer import (
    FIRST_RANK,
    Region,
    gather,
    pieces,
    replicate,
    scatter,
    scatter_regions,
    sides,
    slices,
)
from lapwing.runtime.mpi import communicator
from lapwing.tiling.boxes import intersection

_KEPT_EXCHANGES = 8  # of an array: that many kinds of calls read it in turn
_KEPT_FORMS = 1000
_MADE_AT_ONCE = 4 << 20  # bytes: what functions of indices make beside it is several times as large

_WAYS_OUT = "Pass the same array on every rank, or None on all ranks but rank 0; comm=lw.SELF makes an array of each rank's own."


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


class DistributedArray(Elements):
    """An array that nests leave distributed over the ranks of an MPI run.

    values: the whole NumPy array; on ranks other than the first None, or an equal one. comm: the ranks, an mpi4py
    communicator; None for all of the run, ``lw.SELF`` for this one alone. Outside an MPI run, and for a single rank, the
    object wraps the array and nests update it in place. Raises RefusedError, on every rank, where values differ.
    ``zeros``, ``full``, ``from_function``, ``from_local`` and ``load`` make arrays that no rank has whole.

    Creating it, passing it to a nest, ``numpy()``, ``save()``, indexing and computing with it are collective: all ranks do them
    in the same order. It is distributed by the first nest that uses it, and again only when a nest needs another distribution. A
    nest that is skewed, or writes at several offsets, takes the arrays it writes from rank 0 and brings them back there in every
    call. What is indexed or computed with is brought together on every rank, and kept there until a nest writes to it.
    """

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
    _together: npt.NDArray[Any] | None
    # For its memory as it is: what brings it up to date, and what ranks wrote for others to these.
    _form: int | None
    _refreshing: dict[Need, Exchange]
    _handing: dict[HandedOver, list[Exchange]]

    def __init__(self, values: npt.NDArray[Any] | InitialValues | OwnBlock | None, *, comm: Any = None) -> None:
        self._comm = _ranks(comm)
        self._begin_without_elements()
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self.shape: tuple[int, ...] = ()
        if isinstance(values, InitialValues):
            self._initial, self._may_differ = values, self._comm is not None
        elif isinstance(values, OwnBlock) and self._comm is not None:
            self._block = values
        else:
            self._whole = values.values if isinstance(values, OwnBlock) else values
        given = self._initial or self._whole
        if isinstance(given, InitialValues | np.ndarray):
            self.dtype, self.shape = np.dtype(given.dtype.name), given.shape
        else:
            self._unfit = type(given).__name__
        self._described = self._in_words()
        if self._comm is None:
            self._refuse(self._unfit)
        elif _awaiting is not None:
            _awaiting.append(self)
        else:
            self.agree()

    def _begin_without_elements(self) -> None:
        self._name = self._identity = self._unfit = self._described = self._form = None
        self._whole = self._initial = self._block = self._layout = self._local = self._read = self._together = None
        self._may_differ = self._is_everywhere = False
        self._refreshing, self._handing = {}, {}

    def _refuse(self, unfit: str | None) -> None:
        if unfit is not None:
            raise RefusedError(f"DistributedArray: rank 0 passed {unfit}, expected a NumPy array.")

    def _refuse_for_now(self) -> NoReturn:
        raise RefusedError(
            "DistributedArray: the ranks agree on what a problem creates once it has returned on all of them. Until then there "
            "are only local and owned, but not of from_local."
        )

    def __repr__(self) -> str:
        return f"<DistributedArray {self.dtype} of shape {self.shape}, {self._place()}>"

    def _repr_html_(self) -> str:
        """For notebooks. Not collective: one rank alone may show it."""
        rows = [("dtype", str(self.dtype)), ("shape", " × ".join(map(str, self.shape))), ("where", self._place())]
        if self._layout is not None and self._comm is not None:
            own = ", ".join(f"{low}:{high}" for low, high in self._layout.owned[self._comm.Get_rank()])
            sheared = "" if self._layout.shear is None else " of sheared indices"
            rows.append((f"rank {self._comm.Get_rank()} owns", f"[{own}]{sheared}"))
        return table("DistributedArray", rows)

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

    def agree(self) -> None:
        """See that all ranks create the same array. Collective; the constructor's last step, unless that is put off."""
        known = communicator.known(self._comm)
        number = known.arrays + 1
        call = Call(
            f"DistributedArray {number}",
            values=(("values", self._described),),
            copies=frozenset({"values"} if is_plain(self._whole) else ()),
        )
        holders = agree_on(call, _WAYS_OUT, self._comm)
        known.arrays = number
        check_same_elements(call, {"values": self._whole}, holders, _WAYS_OUT, self._comm)
        self._name = call.name
        if self._block is not None:
            self._take_block(self._block)
            return
        if self._comm.Get_rank() > 0:
            self._whole = None
        self.dtype, self.shape, unfit = self._comm.bcast((self.dtype, self.shape, self._unfit), root=0)
        self._refuse(unfit)

    def _in_words(self) -> str | None:
        if self._initial is not None:
            return f"{self._initial.text} of {self.dtype}, shape {self.shape}"
        if self._block is not None:
            block = self._block.values
            return f"a block of {block.dtype} with {block.ndim} axes"
        return described(self._whole)

    def _take_block(self, block: OwnBlock) -> None:
        """Lay out the whole array from the ranks' blocks. Collective."""
        told = self._comm.allgather((block.start, block.values.shape))
        self.dtype = np.dtype(block.values.dtype.name)
        self._layout = layout_of_blocks(*zip(*told, strict=True))
        self.shape = tuple(cuts[-1] for cuts in self._layout.cuts)
        own = self._layout.owned[self._comm.Get_rank()]
        self._local = self._allocate(own, exported=False)
        self._local.view(own)[...] = block.values
        self._block = None

    @staticmethod
    def everywhere(values: npt.NDArray[Any], comm: Any) -> DistributedArray:
        """Around an array that every rank of comm (mpi4py, Lapwing's own) has whole, with the same elements: nothing is said
        between them, nor is it looked at. All ranks make it, in the same order."""
        made = DistributedArray._named(comm, values.dtype, values.shape)
        made._whole, made._is_everywhere = values, True
        made._described = described(values)
        return made

    @staticmethod
    def _named(comm: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DistributedArray:
        """An array without elements so far, which all ranks make, in the same order."""
        made = DistributedArray.__new__(DistributedArray)
        made._comm, made.dtype, made.shape = comm, np.dtype(dtype.name), shape
        made._begin_without_elements()
        known = communicator.known(comm)
        known.arrays += 1
        made._name = f"DistributedArray {known.arrays}"
        return made

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

    def _forget_parts(self) -> None:
        self._layout = self._local = self._initial = self._read = self._together = self._form = None
        self._refreshing.clear()
        self._handing.clear()

    @property
    def holders(self) -> frozenset[int]:
        """The ranks that have the array whole, while it is not distributed."""
        return frozenset(range(self._comm.Get_size())) if self._is_everywhere else FIRST_RANK

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def owned(self) -> tuple[slice, ...]:
        """Which part of the array this rank owns. Not collective.

        Until a nest has said otherwise, ranks own the same number of rows each of an array that none of them has whole.
        """
        return slices(self._owned_box())

    @property
    def local(self) -> npt.NDArray[Any]:
        """The elements this rank owns, a view into its memory. Not collective. It stays valid until the array is used again."""
        own = self._owned_box()
        self._together = None  # it may be written to
        if self._local is not None:
            return self._local.view(own)
        whole = self.whole
        return np.empty(sides(own), self.dtype) if whole is None else whole

    def _owned_box(self) -> Box:
        if self._comm is None:
            return self._everything
        if self._block is not None:
            self._refuse_for_now()
        self._make()
        if self._layout is not None:
            if self._layout.shear is not None:
                raise RefusedError(
                    f"DistributedArray of shape {self.shape}: since a nest whose loops are skewed has written it, ranks own "
                    "parallelograms of it; local and owned are boxes. Call redistribute() on all ranks first."
                )
            return self._layout.owned[self._comm.Get_rank()]
        return self._everything if self._comm.Get_rank() == 0 else nothing(self._type)

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
        if self._may_differ and self._comm.allreduce(int(self._initial is None)):
            communicator.agree(self._comm, self._make)
            self._may_differ = False

    def together(self) -> npt.NDArray[Any]:
        """All elements on every rank, where they are kept until a nest writes to the array. Collective."""
        if self._comm is None:
            whole = self.whole
            assert whole is not None
            return whole
        if not self._is_everywhere:
            call = Call(f"{self.name}, brought together")
            told = tell(call.digest, True, int(self._together is not None), call.name, self._comm)
            agree_on(call, "", self._comm, told)
            if not told[:, -1].all():
                self._together = self._brought_together()
            assert self._together is not None
            return self._together
        assert self._whole is not None
        return self._whole

    def _brought_together(self) -> npt.NDArray[Any]:
        self.make_on_all_ranks()
        if self._initial is not None:
            return communicator.agree(self._comm, self._made_whole)
        values = communicator.agree(self._comm, lambda: np.empty(self.shape, self.dtype))
        self._bring(values)
        return values

    def replace(self, values: npt.NDArray[Any]) -> None:
        """Take these elements in the place of its own; the same on every rank. Collective."""
        if self._comm is None:
            self.together()[...] = values
            return
        self._whole, self._is_everywhere = values, True
        self._forget_parts()
        self._may_differ = False

    # -- what every rank computes of its part (Elements) --------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Whether several ranks have parts of it, or will have."""
        return self._comm is not None and not self._is_everywhere and bool(self.shape)

    def begin(self, what: str) -> None:
        """See that all ranks compute the same, of their parts. Collective."""
        agree_on(Call(f"{what} of {self.name}"), "", self._comm)
        self._make_parts()

    def _make_parts(self) -> None:
        """Let ranks own parts, of rows where no nest has said yet what it needs. Collective."""
        self.make_on_all_ranks()
        if self._initial is not None:
            communicator.agree(self._comm, self._make)
            self._may_differ = False
        if self._layout is None:
            self._to_rows()

    def own_elements(self, of: Any) -> npt.NDArray[Any]:
        """This rank's elements; or those of another array in their places, distributed or of NumPy. Not to be written to.
        Collective, after ``begin``."""
        assert self._layout is not None
        part = self._layout.part(self._comm.Get_rank())
        if isinstance(of, DistributedArray):
            local = self._local if of is self else of._in_parts_of(self)
            assert local is not None
        elif part.shear is None:
            found: npt.NDArray[Any] = of[slices(part.box)]
            return found
        else:
            local = LocalArray(ArrayType("", of.dtype.name, of.shape), self._everything, np.ascontiguousarray(of))
        return elements_of(local, part)

    def _in_parts_of(self, other: DistributedArray) -> LocalArray:
        """This rank's memory of the elements that another array's parts have."""
        if self._comm is not other._comm:
            own, others = map(communicator.described, (self._comm, other._comm))
            raise RefusedError(f"DistributedArrays of {own} and of {others}: expected the same comm= of both.")
        self._make_parts()
        assert self._layout is not None
        assert other._layout is not None
        if self._layout == other._layout:
            assert self._local is not None
            return self._local
        if None not in (self._layout.shear, other._layout.shear) and self._layout.shear != other._layout.shear:
            self._to_rows()
        part = other._layout.part(self._comm.Get_rank())
        local = self._allocate(part.box, False, part.shear)
        assert self._local is not None
        Exchange(self._local, local, self._owned_parts, other._owned_parts, self._comm)()
        return local

    def agreed(self, action: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """What an action gives; an error of some ranks on all of them. Collective."""
        return communicator.agree(self._comm, action)

    def of_own(self, values: npt.NDArray[Any]) -> DistributedArray:
        """An array of other elements, of which this rank has as many: values. Collective."""
        assert self._layout is not None
        made = DistributedArray._named(self._comm, values.dtype, self.shape)
        part = self._layout.part(self._comm.Get_rank())
        made._layout, made._local = self._layout, made._allocate(part.box, False, part.shear)
        put_elements(made._local, part, values)
        return made

    def take_own(self, values: npt.NDArray[Any]) -> None:
        """Take other elements in the place of this rank's."""
        assert self._layout is not None
        assert self._local is not None
        put_elements(self._local, self._layout.part(self._comm.Get_rank()), values)
        self._together = None

    def from_all(self, value: Any) -> list[Any]:
        """What every rank gives, by rank. Collective."""
        found: list[Any] = self._comm.allgather(value)
        return found

    def on_all_ranks(self, box: Box, what: str) -> npt.NDArray[Any]:
        """The elements of a box, on every rank. what: is asked for. Collective."""
        agree_on(Call(f"{self.name}{what}"), "", self._comm)
        return self.part([box] * self._comm.Get_size()).view(box)

    def put(self, box: Box, values: npt.NDArray[Any]) -> bool:
        """Take these elements of a box, the same on every rank, where ranks own boxes. Collective."""
        agree_on(Call(f"elements {box} of {self.name} set"), "", self._comm)
        self._make_parts()
        assert self._layout is not None
        assert self._local is not None
        if self._layout.shear is not None:
            return False
        if (own := intersection(box, self._owned_box())) is not None:
            self._local.view(own)[...] = LocalArray(self._type, box, values).view(own)
        self._together = None
        return True

    def numpy(self) -> npt.NDArray[Any] | None:
        """The whole array on rank 0, None on the others. Collective. The distribution stays as it is."""
        if self._comm is None:
            return self.whole
        agree_on(Call(f"{self.name}.numpy()"), "", self._comm)
        return self._gathered()

    def redistribute(self) -> None:
        """Give every rank a box of it, rows of equal number. Collective.

        Nests do without: it is for ``local`` and ``owned`` after a nest whose loops are skewed, which leaves parallelograms.
        """
        if self._comm is None:
            return
        agree_on(Call(f"{self.name}.redistribute()"), "", self._comm)
        self._to_rows()

    def _to_rows(self) -> None:
        layout = rows_layout(self.shape, self._comm.Get_size())
        self.localise(layout.owned, layout)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the array to a .npy file in a folder that all ranks share, each its own part. Collective.

        What lies there is replaced when all is written, in one step. An array that functions make, and no nest has used yet,
        is made and written in pieces, and stays as it was: it takes next to no memory. Raises RunError, on every rank, where
        that fails.
        """
        name = os.fspath(path)
        if self._comm is None:
            steps = SavedFile(name, True, self._type, *self._to_save())
            try:
                for step in (steps.begin, steps.write, steps.end):
                    step()
            except BaseException:
                steps.abandon()
                raise
            return
        same = "Save to the same file from every rank."
        agree_on(Call(f"{self.name}.save()", values=(("path", repr(name)),)), same, self._comm)
        self.make_on_all_ranks()
        sheared = self._layout is not None and self._layout.shear is not None
        part = self._rows() if sheared else communicator.agree(self._comm, self._to_save)
        self._may_differ = self._initial is not None
        steps = SavedFile(name, self._comm.Get_rank() == 0, self._type, *part)
        try:
            for step in (steps.begin, steps.write, steps.end):
                communicator.agree(self._comm, step)
        except BaseException:
            steps.abandon()
            raise

    def _to_save(self) -> tuple[Box, Callable[[Box], npt.NDArray[Any]]]:
        """What this rank writes to a file, and what gives the elements of a part of it."""
        initial = self._initial
        if initial is not None and not initial.of_file:
            rank, ranks = (0, 1) if self._comm is None else (self._comm.Get_rank(), self._comm.Get_size())
            return rows_layout(self.shape, ranks).owned[rank], initial.fill
        # A file may be replaced by the one that is written: it is read before.
        return self._owned_box(), LocalArray(self._type, self._owned_box(), self.local).view

    def _rows(self) -> tuple[Box, Callable[[Box], npt.NDArray[Any]]]:
        """The same where ranks own parallelograms: rows, of which it makes a copy. Collective."""
        boxes = rows_layout(self.shape, self._comm.Get_size()).owned
        return boxes[self._comm.Get_rank()], self.part(boxes).view

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

    def _made_whole(self) -> npt.NDArray[Any]:
        whole = np.empty(self.shape, self.dtype)
        assert self._initial is not None
        fill(LocalArray(self._type, self._everything, whole), self._initial)
        return whole

    # -- used by the runtime ---------------------------------------------------------------------------------------------

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

    def collect(self) -> npt.NDArray[Any] | None:
        """Give up the distribution: the whole array on rank 0, to be kept there. Collective."""
        self._whole, self._is_everywhere = self._gathered(), False
        self._forget_parts()
        self._may_differ = False
        return self._whole

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

    def localise(self, needed: Sequence[Box], layout: Layout, exported: bool = False) -> LocalArray:
        """This rank's memory for a run: its owned and needed elements, all up to date. Collective.

        needed: the box every rank touches, of sheared indices where the layout has a shear. layout: who owns what from now on.
        exported: other ranks want to map it.
        """
        self.make_on_all_ranks()
        before, rank = self._layout, self._comm.Get_rank()
        if before is not None and before.shear is not None and layout.shear not in (None, before.shear):
            self._to_rows()  # what two kinds of parallelograms have in common is no row of elements
            before = self._layout
        boxes = [_hull(a, b) for a, b in zip(needed, layout.owned, strict=True)]
        if before is None:
            local = self._allocate(boxes[rank], exported, layout.shear)
            self._distribute(local, [Storage(box, layout.shear) for box in boxes])
            self._whole = self._initial = self._read = None
            self._may_differ = self._is_everywhere = False
        else:
            assert self._local is not None
            local, same = self._local, before == layout
            # Collective: where one rank needs other memory, all take part.
            unfit = not same or not self._holds(boxes[rank]) or (exported and local.segment is None)
            if self._comm.allreduce(int(unfit)):
                wide = _hull(boxes[rank], local.box) if same and layout.shear is None else boxes[rank]
                local = self._allocate(wide, exported, layout.shear)
            parts = [Storage(box, layout.shear) for box in boxes]
            Exchange(self._local, local, self._owned_parts, parts, self._comm)()
        if local is not self._local or layout != before:
            self._refreshing.clear()
            self._handing.clear()
            self._form = None
        self._local, self._layout, self._together = local, layout, None
        return local

    def _distribute(self, local: LocalArray, parts: Sequence[Storage]) -> None:
        """Fill every rank's memory from where the elements are so far: nowhere, or whole on some ranks."""
        if self._initial is not None:
            self._fill(local)
        elif all(part.shear is None for part in parts):
            scatter(self._whole, [part.box for part in parts], local, self._comm, self.holders)
        else:
            stored, limits = local.shear is not None, self._everything
            regions = [Region(part.shear, part.box, limits, stored) for part in parts if part.shear is not None]
            scatter_regions(self._whole, regions, local, self._comm, self.holders)

    @property
    def form(self) -> Any:
        """How this rank's part lies in memory and who owns what; of an array that is not distributed, where it is. Forms can be
        compared."""
        if self._read is not None:
            return _form(self._read[1], None, self._read[0])
        if self._local is None or self._layout is None:
            return self._place(), self.dtype, self.shape
        if self._form is None:
            self._form = _form(self._local, self._layout, ())
        return self._form

    def note_written(self) -> None:
        """A run writes to its parts."""
        self._together = None

    @property
    def memory(self) -> LocalArray:
        """This rank's part, of which ``form`` tells."""
        found = self._local if self._read is None else self._read[1]
        assert found is not None
        return found

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


_awaiting: list[DistributedArray] | None = None


@contextmanager
def agreement_put_off() -> Iterator[list[DistributedArray]]:
    """Arrays created here do not communicate: each, in the list that this gives, has to ``agree`` afterwards."""
    global _awaiting
    before, _awaiting = _awaiting, []
    try:
        yield _awaiting
    finally:
        _awaiting = before


def _ranks(comm: Any) -> Any:
    if _awaiting is not None and comm is not None and comm is not communicator.SELF:
        raise RefusedError("DistributedArray: comm= is not for a nest's problem: its arrays are those of all ranks.")
    return communicator.ranks_for(comm, "DistributedArray")


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
