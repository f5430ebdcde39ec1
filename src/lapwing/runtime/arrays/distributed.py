"""Arrays that stay distributed between calls of nests."""

from __future__ import annotations

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
from lapwing.runtime.arrays.layout import Layout, layout_of_blocks, nothing, rows_layout
from lapwing.runtime.arrays.meeting import Call, agree_on, check_same_elements, described, is_plain
from lapwing.runtime.arrays.saving import SavedFile
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.storage import LocalArray, allocate
from lapwing.runtime.arrays.transfer import (
    FIRST_RANK,
    exchange,
    gather,
    pieces,
    replicate,
    scatter,
    scatter_parts,
    sides,
    slices,
)
from lapwing.runtime.mpi import communicator
from lapwing.tiling.boxes import coalesced, intersection

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

    def __init__(self, values: npt.NDArray[Any] | InitialValues | OwnBlock | None, *, comm: Any = None) -> None:
        self._comm: Any = _ranks(comm)
        self._name: str | None = None  # once all ranks have agreed on the array
        # One of these says where the elements are: whole, not made yet, this rank's block, or a part on every rank.
        self._whole: npt.NDArray[Any] | None = None
        self._initial: InitialValues | None = None
        self._block: OwnBlock | None = None
        self._layout: Layout | None = None
        self._local: LocalArray | None = None
        # Ranks may differ in whether they have made their parts; what was made of an array that is only read.
        self._may_differ = False
        self._is_everywhere = False  # whole on every rank
        self._read: tuple[tuple[Box, ...], LocalArray] | None = None
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self.shape: tuple[int, ...] = ()
        if isinstance(values, InitialValues):
            self._initial, self._may_differ = values, self._comm is not None
        elif isinstance(values, OwnBlock) and self._comm is not None:
            self._block = values
        else:
            self._whole = values.values if isinstance(values, OwnBlock) else values
        given = self._initial or self._whole
        self._unfit: str | None = None  # what was passed in place of an array
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
            rows.append((f"rank {self._comm.Get_rank()} owns", f"[{own}]"))
        return table("DistributedArray", rows)

    def _place(self) -> str:
        if self._comm is None:
            return "in this process"
        if self._initial is not None:
            return "not made yet"
        if self._layout is None:
            return "whole on rank 0"
        parts = "x".join(str(len(cuts) - 1) for cuts in self._layout.cuts)
        return f"distributed {parts} over {len(self._layout.owned)} ranks"

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
        made = DistributedArray.__new__(DistributedArray)
        made._comm, made._whole, made._is_everywhere = comm, values, True
        made._initial = made._block = made._layout = made._local = made._read = made._unfit = None
        made._may_differ = False
        made.dtype, made.shape = np.dtype(values.dtype.name), values.shape
        known = communicator.known(comm)
        known.arrays += 1
        made._name = f"DistributedArray {known.arrays}"
        made._described = described(values)
        return made

    def bring_everywhere(self, values: npt.NDArray[Any]) -> None:
        """Give up the distribution: all elements in an array of every rank's, to be kept there. Collective."""
        self.make_on_all_ranks()
        if self._layout is not None:
            assert self._local is not None
            gather(self._local, self._layout.owned, values, self._comm, frozenset(range(self._comm.Get_size())))
        elif not self._is_everywhere:
            replicate(self._gathered(), values, self._comm)
        self._whole, self._is_everywhere = values, True
        self._layout = self._local = self._initial = self._read = None

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
        fill(local, own, self._initial)
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
            agree_on(Call(f"{self.name}, brought together"), "", self._comm)
            self.bring_everywhere(communicator.agree(self._comm, lambda: np.empty(self.shape, self.dtype)))
        assert self._whole is not None
        return self._whole

    def replace(self, values: npt.NDArray[Any]) -> None:
        """Take these elements in the place of its own; the same on every rank. Collective."""
        if self._comm is None:
            self.together()[...] = values
            return
        self._whole, self._is_everywhere = values, True
        self._layout = self._local = self._initial = self._read = None
        self._may_differ = False

    def numpy(self) -> npt.NDArray[Any] | None:
        """The whole array on rank 0, None on the others. Collective. The distribution stays as it is."""
        if self._comm is None:
            return self.whole
        agree_on(Call(f"{self.name}.numpy()"), "", self._comm)
        return self._gathered()

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
        part = communicator.agree(self._comm, self._to_save)
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

    def _gathered(self) -> npt.NDArray[Any] | None:
        self.make_on_all_ranks()
        first = self._comm.Get_rank() == 0
        if self._initial is not None:
            return communicator.agree(self._comm, lambda: self._made_whole() if first else None)
        if self._layout is not None:
            whole = communicator.agree(self._comm, lambda: np.empty(self.shape, self.dtype) if first else None)
            assert self._local is not None
            gather(self._local, self._layout.owned, whole, self._comm)
            return whole
        return self._whole if first else None

    def _made_whole(self) -> npt.NDArray[Any]:
        whole = np.empty(self.shape, self.dtype)
        assert self._initial is not None
        fill(LocalArray(self._type, self._everything, whole), self._everything, self._initial)
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
        return f"{self.name} of {self.dtype}, shape {self.shape}"

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
        self._layout = self._local = self._initial = self._read = None
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
            self._fill(local, own)
        elif self._layout is not None:
            assert self._local is not None
            exchange(self._local, local, self._layout.owned, [[box] for box in needed], self._comm)
        else:
            scatter(self._whole, needed, local, self._comm, self.holders)
        return local

    def part_to_read(self, needed: Sequence[Box]) -> LocalArray:
        """As ``part``, of an array that is not made yet: kept for other calls that need the same. Nobody writes to it."""
        boxes = tuple(needed)
        if self._read is None or self._read[0] != boxes:
            self._read = boxes, self.part(boxes)
        return self._read[1]

    def localise(
        self,
        needed: Sequence[Box],
        layout: Layout,
        exported: bool = False,
        parts: Sequence[Sequence[Box]] | None = None,
    ) -> LocalArray:
        """This rank's memory for a run: its owned and needed elements, all up to date. Collective.

        needed: the box every rank touches. layout: who owns what from now on. exported: other ranks want to map it.
        parts: of every rank's box what it reads, where that is not most of it.
        """
        rank = self._comm.Get_rank()
        boxes = [_hull(a, b) for a, b in zip(needed, layout.owned, strict=True)]
        filled: list[list[Box]] = [[box] for box in boxes]
        if parts is not None:
            filled = [coalesced([own, *others]) for own, others in zip(layout.owned, parts, strict=True)]
        self.make_on_all_ranks()
        if self._layout is None:
            local = self._allocate(boxes[rank], exported)
            if self._initial is not None:
                self._fill(local, boxes[rank])
            else:
                scatter_parts(self._whole, filled, local, self._comm, self.holders)
            self._whole = self._initial = self._read = None
            self._may_differ = self._is_everywhere = False
        else:
            assert self._local is not None
            local = self._local
            same = self._layout == layout
            # Collective: where one rank needs other memory, all take part.
            unfit = not same or not _contains(local.box, boxes[rank]) or (exported and local.segment is None)
            if self._comm.allreduce(int(unfit)):
                local = self._allocate(_hull(boxes[rank], local.box) if same else boxes[rank], exported)
            exchange(self._local, local, self._layout.owned, filled, self._comm)
        self._local, self._layout = local, layout
        return local

    def _allocate(self, box: Box, exported: bool) -> LocalArray:
        return communicator.agree(self._comm, lambda: allocate(self._type, box, exported))

    def _fill(self, local: LocalArray, box: Box) -> None:
        initial = self._initial
        assert initial is not None
        communicator.agree(self._comm, lambda: fill(local, box, initial))


def fill(local: LocalArray, box: Box, initial: InitialValues) -> None:
    """Make the elements of a box, in pieces."""
    for piece in pieces(box, local.array.itemsize, _MADE_AT_ONCE):
        local.view(piece)[...] = initial.fill(piece)


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
