"""Ranks as threads of this process: plans run with the runtime's own headers, and no MPI (thread_ranks.cpp)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.api.calls.out_of_core import Ending, WorkOnDisk
from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.codegen.tile import tile_source
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.layout import written_boxes
from lapwing.runtime.arrays.shear import Box, shear_of
from lapwing.runtime.arrays.storage import LocalArray, allocate, storage_of
from lapwing.runtime.arrays.transfer import slices
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import rank_program
from lapwing.runtime.streaming import StreamedArray
from lapwing.runtime.workspace import Workspace
from lapwing.store.array import StoredArray
from lapwing.store.manifest import State
from lapwing.tiling.faces import faces_of
from lapwing.tiling.skewing import skewed_nest

BROKEN = os.environ.get("LAPWING_TEST_NATIVE", "")  # a copy of the headers that was broken on purpose
PATIENCE_SECONDS = 3.0 if BROKEN else 20.0
NATIVE = Path(BROKEN or native.SOURCES)
OWN = Path(__file__).with_suffix(".cpp")
# Thread-local storage of libraries loaded late is freed behind ThreadSanitizer's back, unless it is of this model.
SANITIZER = ("-fsanitize=thread", "-g", "-O1", "-ftls-model=initial-exec")


@dataclass(frozen=True)
class Way:
    """How ranks talk: straight into each other's arrays or through slots, with helper threads or by polling.

    Where arrays are on disk: ``request_bytes`` are moved at a time, by ``movers`` threads; ranks may have to ask before they
    write a pass.
    """

    direct: bool
    helper: bool
    spin: bool
    request_bytes: int = 1
    movers: int = 1
    asks: bool = False


class RankThreads:
    """``sanitized``: with ThreadSanitizer, which this process must have been started with. ``queue``: requests to the disk go
    through io_uring where they can.
    """

    def __init__(self, sanitized: bool, queue: bool = False) -> None:
        self.flags = SANITIZER if sanitized else ()
        self.libraries = native.LIBURING if queue else ()

    @cache  # noqa: B019  # one for a whole process
    def runtime(self) -> ctypes.CDLL:
        sources = {p.name: p.read_text() for p in NATIVE.iterdir() if p.suffix in (".h", ".hpp")}
        path = build_shared_library(
            name="thread-ranks",
            sources={**sources, OWN.name: OWN.read_text()},
            main=[OWN.name],
            compiler=find_cxx_compiler(),
            flags=[*native.RUNTIME_FLAGS, *self.flags, "-DLAPWING_DELAYS", "-pthread", *self.libraries],
            announce=None,
        )
        return ctypes.CDLL(str(path))

    def module(self, bound: BoundNest, plan: Plan) -> ctypes.CDLL:
        source = tile_source(bound, faces_of(bound), plan.inner.form)
        path = build_shared_library(
            name="tile-threads",
            sources={"tile.c": source, **native.headers_of(source)},
            main=["tile.c"],
            compiler=find_c_compiler(),
            flags=[*native.TILE_FLAGS, *self.flags],
            announce=None,
        )
        return ctypes.CDLL(str(path))

    def run(
        self,
        bound: BoundNest,
        plan: Plan,
        arguments: dict[str, Any],
        way: Way,
        stored: Mapping[str, StoredArray] | None = None,
    ) -> bool:
        """Run a plan on as many threads as it has ranks; written arrays are updated in place. Returns whether faces were
        stored straight into the receivers' arrays.

        stored: the arrays on disk, of a plan that streams; they stay as they are there, and ``arguments`` gets the new values.
        Raises AssertionError where a rank waits for ever.
        """
        bound = skewed_nest(bound, plan.skew)
        library = self.module(bound, plan)
        faces = plan.faces(bound)
        ranks = range(plan.ranks)
        locals_ = [_local_arrays(bound, plan, rank, arguments) for rank in ranks]
        on_disk, disks, together = None, None, 1
        streamed: list[dict[str, StreamedArray]] = [{} for _ in ranks]
        if stored is not None:
            assert plan.streaming is not None
            ending = Ending(keep=False, examine=arguments.update)
            on_disk = WorkOnDisk(bound, plan, stored, "", State(), ending)
            on_disk.begin()
            streamed = [on_disk.arrays(rank) for rank in ranks]
            tables = [on_disk.tables(rank) for rank in ranks]
            for table in tables:
                table.c.request_bytes, table.c.queue_depth = way.request_bytes, way.movers
            disks, together = (native.Disk * plan.ranks)(*(table.c for table in tables)), plan.streaming.pass_sweeps
        workspaces = [Workspace(bound, library, {**a, **s}) for a, s in zip(locals_, streamed, strict=True)]
        opening = 0 if plan.streaming is None else plan.streaming.opening_sweeps
        programs = [rank_program(faces, rank, plan.ranks, together, 0, stored is None, opening) for rank in ranks]
        direct = way.direct and stored is None and all(p.c.apart for p in programs)
        if direct:
            _connect(programs, workspaces)
        options = native.Options(
            engine=native.ENGINE_CODES["helper" if way.helper else "onesided"],
            helper_cpu=-1,
            spin=int(way.spin),
            slice_seconds=1e-5,
            patience_seconds=PATIENCE_SECONDS,
        )
        tiles = (ctypes.POINTER(native.Tile) * plan.ranks)(*(ctypes.pointer(w.tile) for w in workspaces))
        failure = ctypes.create_string_buffer(4096)
        status = self.runtime().lw_run_threads(
            ctypes.c_int64(plan.ranks), (native.Program * plan.ranks)(*(p.c for p in programs)),
            ctypes.byref(native.module_of(library)), tiles, ctypes.byref(options), disks, ctypes.c_int64(way.asks),
            failure, ctypes.c_int64(len(failure)),
        )  # fmt: skip
        assert status == native.DONE, failure.value.decode()
        if on_disk is not None:
            on_disk.end()
        for name in bound.nest.written:
            if name in streamed[0]:
                continue
            boxes = [written_boxes(bound, name, plan.partition.block(rank)) for rank in ranks]
            for of_offset in zip(*boxes, strict=True):
                for rank, box in enumerate(of_offset):
                    local = locals_[rank][name]
                    for piece, own in _pieces(bound, local, box):
                        arguments[name][slices(piece)] = local.view(own)
        return direct


def _local_arrays(bound: BoundNest, plan: Plan, rank: int, arguments: dict[str, Any]) -> dict[str, LocalArray]:
    found = {}
    for array in bound.arrays:
        store = storage_of(bound, array.name, plan.faces(bound).block(rank))
        local = allocate(array, store.box, shear=store.shear)
        values, everything = np.asarray(arguments[array.name]), tuple((0, n) for n in array.shape)
        kept = [(store.box, store.box)] if store.shear is None else store.shear.pieces(store.box, everything)
        for piece, own in kept:
            local.view(own)[...] = values[slices(piece)]
        found[array.name] = local
    return found


def _pieces(bound: BoundNest, local: LocalArray, box: Box) -> Iterator[tuple[Box, Box]]:
    """What a rank wrote, in boxes of elements, each with where the rank keeps it."""
    if bound.skew is None:
        yield box, box
        return
    everything = tuple((0, n) for n in local.array.shape)
    for piece, sheared in shear_of(bound, local.array.name).pieces(box, everything):
        yield piece, piece if local.shear is None else sheared


def _connect(programs: Sequence[Any], workspaces: Sequence[Workspace]) -> None:
    """Let every channel lead straight into the receiver's arrays, as neighbours.py does."""
    for program in programs:
        for k in range(program.c.outgoing):
            channel = program.c.outgoing_channels[k]
            channel.there = ctypes.addressof(workspaces[channel.peer]._arrays)
        for k in range(program.c.incoming):
            program.c.incoming_channels[k].there = ctypes.addressof(program.c)
