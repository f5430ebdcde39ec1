"""Arrays that stay distributed between calls of nests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.html import table
from lapwing.loopnest.binding.bound_nest import ArrayType
from lapwing.runtime.arrays.exchange import Exchange, elements_of, put_elements
from lapwing.runtime.arrays.layout import layout_of_blocks, nothing, rows_layout
from lapwing.runtime.arrays.meeting import Call, agree_on, check_same_elements, described, is_plain, tell
from lapwing.runtime.arrays.parts import InitialValues, OwnBlock, Parts
from lapwing.runtime.arrays.saving import SavedFile
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.arrays.transfer import sides, slices
from lapwing.runtime.mpi import communicator
from lapwing.runtime.mpi.threads import one_call
from lapwing.tiling.boxes import intersection

_WAYS_OUT = "Pass the same array on every rank, or None on all ranks but rank 0; comm=lw.SELF makes an array of each rank's own."


class DistributedArray(Parts):
    """An array that nests leave distributed over the ranks of an MPI run.

    values: the whole NumPy array; on ranks other than the first None, or an equal one. comm: the ranks, an mpi4py
    communicator; None for all of the run, ``lw.SELF`` for this one alone. Outside an MPI run, and for a single rank, the
    object wraps the array and nests update it in place. Raises RefusedError, on every rank, where values differ.
    ``zeros``, ``full``, ``from_function``, ``from_local`` and ``load`` make arrays that no rank has whole.

    Creating it, passing it to a nest, ``numpy()``, ``save()``, indexing and computing with it are collective: all ranks do them
    in the same order. It is distributed by the first nest that uses it, and again only when a nest needs another distribution.
    What NumPy computes element by element is computed on the ranks' parts and is distributed as well; sums, norms and extrema
    come from the parts (floating-point sums in the order of the ranks); indices and slices are sent to all ranks. Anything else
    is computed with all elements, which are brought together on every rank and kept there until a nest writes to the array.
    """

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

    def _refuse(self, unfit: str | None) -> None:
        if unfit is not None:
            raise RefusedError(f"DistributedArray: rank 0 passed {unfit}, expected a NumPy array.")

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

    def agree(self) -> None:
        """See that all ranks create the same array. Collective; the constructor's last step, unless that is put off."""
        with one_call(self._comm, "DistributedArray"):
            self._agree()

    def _agree(self) -> None:
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

    def together(self) -> npt.NDArray[Any]:
        """All elements on every rank, where they are kept until a nest writes to the array. Collective."""
        if self._comm is None:
            whole = self.whole
            assert whole is not None
            return whole
        if not self._is_everywhere:
            what = f"{self.name}, brought together"
            with one_call(self._comm, what):
                call = Call(what)
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
        what = f"{self.name}.numpy()"
        with one_call(self._comm, what):
            agree_on(Call(what), "", self._comm)
            return self._gathered()

    def redistribute(self) -> None:
        """Give every rank a box of it, rows of equal number. Collective.

        Nests do without: it is for ``local`` and ``owned`` after a nest whose loops are skewed, which leaves parallelograms.
        """
        if self._comm is None:
            return
        agree_on(Call(f"{self.name}.redistribute()"), "", self._comm)
        self._to_rows()

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
        with one_call(self._comm, f"{self.name}.save()"):
            self._save(name)

    def _save(self, name: str) -> None:
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
