"""A program on arrays on disk: its regions run out of core, one after the other, and its driver sees arrays that it need not
hold.

Names that change places move no element, copies are made on the disk, and a statement that looks at elements reads those. A
region that cannot run out of core runs in memory, where its arrays fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from lapwing.api.calls.out_of_core import streaming_wishes
from lapwing.api.calls.planned import PlannedNest
from lapwing.api.calls.run import bound_alone
from lapwing.errors import RefusedError
from lapwing.runtime.arrays.on_disk import DiskArray
from lapwing.runtime.mpi import communicator
from lapwing.store.array import StoredArray
from lapwing.store.boxes import whole
from lapwing.store.opening import create
from lapwing.store.opening import open as open_stored
from lapwing.temporary import scratch_directory
from lapwing.units import size

MakeCall = Callable[[Any, Mapping[str, Any]], Any]


class ProgramOnDisk:
    """The arrays on disk of one call, those that its driver makes included, which are removed at its end.

    Collective over comm (mpi4py, Lapwing's own; None: this process alone), all ranks of which do the same.
    """

    def __init__(
        self,
        nest: PlannedNest,
        arguments: Mapping[str, Any],
        comm: Any | None = None,
        look: Callable[..., None] | None = None,
    ) -> None:
        """arguments: some of which are on disk. look: called before elements of NumPy's arrays are looked at that calls may have
        left behind. Raises RefusedError where the call asks for what there is not."""
        if nest.resume:
            raise RefusedError(
                f"{nest.where}: {nest.name}: resume: a program of several nests begins anew, since nothing says in which of them "
                "an earlier run has ended. Leave it out, or call the nests one after the other."
            )
        self._nest, self._comm, self._look, self._stack = nest, comm, look, ExitStack()
        limit = streaming_wishes(nest).memory
        self._limit = int(limit or 0) if comm is None else int(comm.bcast(limit, root=0) or 0)
        stored = {name: value for name, value in arguments.items() if isinstance(value, StoredArray)}
        paths = [array.path for array in stored.values()]
        if len(set(paths)) < len(paths):
            raise RefusedError(
                f"{nest.where}: {nest.name}: {' and '.join(stored)}: some are the same array on disk. Pass each once."
            )
        self._parent = Path(paths[0]).parent
        self._folder: str | None = None
        self._made = 0
        self._arrays = {name: self._seen(array, name) for name, array in stored.items()}
        self._arguments = arguments

    def __enter__(self) -> ProgramOnDisk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def arguments(self) -> dict[str, Any]:
        """What the driver is given."""
        return {**self._arguments, **self._arrays}

    def returned(self, value: Any) -> Any:
        """What is returned, with the arrays that were passed in the place of what the driver has seen; others in memory."""
        if type(value) in (tuple, list):
            return type(value)(map(self.returned, value))
        if not isinstance(value, DiskArray):
            return value
        return value.stored if any(value is seen for seen in self._arrays.values()) else value.stored.numpy()

    def procedure(self, called: Any, make: MakeCall) -> Any:
        """What is called in the place of a function with loops."""
        nest = getattr(called, "nest", called)  # a watched one is in what watches it
        if not isinstance(nest, PlannedNest):
            return called  # Python's own

        def call(*args: Any, **kwargs: Any) -> Any:
            arguments = nest.arguments(*args, **kwargs)
            if getattr(nest, "program", None) is None:
                return self.call(nest, arguments, make)
            seen = [value for value in arguments.values() if isinstance(value, DiskArray)]
            for array in seen:
                array.about_to_write()
            returned = called(**{n: v.stored if isinstance(v, DiskArray) else v for n, v in arguments.items()})
            return _with(returned, {id(array.stored): array for array in seen})

        return call

    def call(self, region: Any, arguments: Mapping[str, Any], make: MakeCall) -> Any:
        """A region's call on what the driver has passed, by name. make: makes calls with NumPy's arrays and those on disk."""
        on_disk = {name: value for name, value in arguments.items() if isinstance(value, DiskArray)}
        for name, array in on_disk.items():
            if name in region.loops.written:
                array.about_to_write()
        if not on_disk:
            return make(region, arguments)
        stored = {name: array.stored for name, array in on_disk.items()}
        needed = sum(value.nbytes for value in arguments.values() if getattr(value, "shape", ()))
        if region.may_be_interpreted:
            # Python runs it on what the driver sees, of which it may write and return anything: also where there is no room.
            known = {**arguments, **stored}
            try:
                bound_alone(region.for_arguments(known), known)
            except RefusedError as refused:
                return region.interpreted(refused)(**arguments)
            if needed > self._limit:
                return region.python(**arguments)
            return self._in_memory(region, arguments, stored, make)
        try:
            return make(region, {**arguments, **stored})
        except RefusedError as refused:
            if needed > self._limit:
                raise RefusedError(
                    *refused.refusals,
                    f"{region.where}: {region.name}: so it does not run out of core, and to run in memory its arrays take "
                    f"{size(needed)} of the {size(self._limit)} that there may be. Allow more: using(memory=…), --memory.",
                ) from refused
        return self._in_memory(region, arguments, stored, make)

    def _in_memory(
        self, region: Any, arguments: Mapping[str, Any], stored: Mapping[str, StoredArray], make: MakeCall
    ) -> Any:
        copies: dict[str, Any]
        if self._comm is None:
            copies = {name: array.numpy() for name, array in stored.items()}
        else:
            copies = communicator.agree(self._comm, lambda: {name: array.numpy() for name, array in stored.items()})
        returned = make(region, {**arguments, **copies})
        if self._look is not None:
            self._look(*copies.values())
        for name in region.loops.written:
            if name in stored:
                self._write_back(stored[name], copies[name])
        return returned

    def _write_back(self, stored: StoredArray, values: Any) -> None:
        def write() -> None:
            if self._comm is None or self._comm.Get_rank() == 0:
                stored.write(whole(stored.shape), values)

        if self._comm is None:
            write()
        else:
            communicator.agree(self._comm, write)

    def _seen(self, stored: StoredArray, name: str) -> DiskArray:
        return DiskArray(stored, name, self._limit, self._comm, self._new)

    def _new(self, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: tuple[int, ...] | None) -> StoredArray:
        """Another array on disk, beside the first one that was passed."""
        self._made += 1
        name = f"array{self._made}.zarr"
        if self._comm is None:
            return create(self._place() / name, shape, dtype, chunks=chunks)
        path: str = communicator.agree(self._comm, lambda: self._create_on_first(name, shape, dtype, chunks))
        path = self._comm.bcast(path, root=0)
        return communicator.agree(self._comm, lambda: open_stored(path))

    def _create_on_first(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: Any) -> str:
        if self._comm is None or self._comm.Get_rank() > 0:
            return ""
        return create(self._place() / name, shape, dtype, chunks=chunks).path

    def _place(self) -> Path:
        if self._folder is None:
            try:
                self._folder = str(self._stack.enter_context(scratch_directory("lapwing-arrays", self._parent)))
            except OSError as error:
                raise RefusedError(
                    f"{self._parent}: no folder for the arrays that {self._nest.name} makes: {error.strerror}. Expected one that "
                    "this user may write to."
                ) from None
        return Path(self._folder)


def _with(value: Any, others: Mapping[int, Any]) -> Any:
    """A value with others in the place of what is in it. others: by the identity of those."""
    if type(value) in (tuple, list):
        return type(value)(_with(one, others) for one in value)
    return others.get(id(value), value)
