"""Runs of the pipeline with tiles that only take time: all that is left is what messages cost.

Message sizes and times of steps are free, no arrays are needed, and transports, progress and windows are those that run.
"""

from __future__ import annotations

import ctypes
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.calibrate.nests import bound_to, relay, stream
from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_c_compiler
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import SLICE_SECONDS
from lapwing.runtime.arrays.storage import LocalArray, allocate
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import rank_program
from lapwing.runtime.mpi.communicator import agree, clock_offset
from lapwing.runtime.mpi.ending import abort
from lapwing.runtime.mpi.patience import patience_seconds
from lapwing.runtime.neighbours import Neighbours, any_share_memory, join_neighbours
from lapwing.runtime.tuning import Tuning, helper_cpu, may_spin, place_of
from lapwing.tiling.faces import Faces
from lapwing.tiling.partition import Partition
from lapwing.trace.events import ACTIVITIES, EVENT

_SOURCE = Path(__file__).parent / "cpp" / "spin.c"
_HEADER = native.SOURCES / "lapwing.h"
_EVENTS = 8192
_COMPUTE, _POST, _WAIT = (ACTIVITIES.index(name) for name in ("compute", "post", "wait"))
_ROWS = 1024  # of a rank: what slices are made of


@dataclass(frozen=True)
class Times:
    """One run on this rank, in seconds.

    ``periods``: from the beginning of one computation to that of the next; ``busy``: the same without waiting;
    ``post_waits``: every wait after a post, a synchronous send's; ``setup``: what the run took outside its pipeline.
    """

    periods: npt.NDArray[np.float64]
    busy: npt.NDArray[np.float64]
    post_waits: npt.NDArray[np.float64]
    setup: float


class Rig:
    """The ranks of a communicator in a row, and what their messages take. Collective, all methods."""

    def __init__(self, comm: Any, announce: native.Announce) -> None:
        self.comm, self.rank, self.ranks = comm, comm.Get_rank(), comm.Get_size()
        self._runtime, self._module = agree(comm, lambda: (native.mpi_runtime(announce), _spin_module(announce)))
        self._place = place_of(comm, others_work=False)
        self._offset = clock_offset(comm)
        self._shares_memory = any_share_memory(comm)

    def stream(self, engine: str, bytes: int, steps: int, step_seconds: float) -> Times:
        """Every step takes so long and ends with a message to the next rank."""
        bound = bound_to(stream, u=("uint8", (self.ranks * _ROWS + 1, steps * bytes)))
        cuts = tuple(1 + r * _ROWS for r in range(self.ranks + 1))
        faces = Faces(bound, Partition((cuts, (0, steps * bytes)), (1, 1)), 1, bytes)
        return self._run(engine, faces, step_seconds / (_ROWS * bytes))

    def relay(self, engine: str, bytes: int, sweeps: int) -> Times:
        """A message goes to the last rank and back, sweep after sweep, with nothing computed on the way."""
        bound = bound_to(relay, u=("uint8", (self.ranks + 2, bytes)), sweeps=sweeps)
        cuts = tuple(range(1, self.ranks + 2))
        return self._run(engine, Faces(bound, Partition((cuts, (0, bytes)), (1, 1)), 1, bytes), 0.0)

    def alone(self, steps: int, step_seconds: float) -> Times:
        """The same steps on every rank by itself, without messages."""
        bound = bound_to(stream, u=("uint8", (_ROWS + 1, steps)))
        faces = Faces(bound, Partition(((1, _ROWS + 1), (0, steps)), (1, 1)), 1, 1)
        return self._run("overlap", faces, step_seconds / _ROWS, ranks=1)

    def _run(self, engine: str, faces: Faces, seconds_per_point: float, ranks: int | None = None) -> Times:
        ranks = self.ranks if ranks is None else ranks
        bound = faces.bound
        program = rank_program(faces, self.rank if ranks > 1 else 0, ranks)
        arrays = {a.name: _stand_in(bound, a.name, engine == "onesided" and self._shares_memory) for a in bound.arrays}
        neighbours: Neighbours | None = None
        if engine == "onesided" and ranks > 1:
            neighbours = join_neighbours(program, arrays, bound.nest.written, [list(arrays)], self.comm)
        scalars = (native.Scalar * 1)(native.Scalar(f=seconds_per_point))
        table = (native.Array * 1)(*(native.array_at(a.origin, a.strides, a.array.shape) for a in arrays.values()))
        tile = native.Tile(table, scalars, scalars, 0)
        kept = np.empty(_EVENTS, EVENT)
        trace, times = native.Trace(kept.ctypes.data, _EVENTS, 0), native.Times()
        options = self._options(engine)
        self.comm.Barrier()
        begin = time.perf_counter()
        status = self._runtime.lw_run(
            ctypes.byref(program.c), ctypes.byref(self._module), ctypes.byref(tile), ctypes.byref(options), None,
            ctypes.byref(trace), ctypes.byref(times),
        )  # fmt: skip
        del neighbours  # alive until here: the program points into its memory
        if status != native.DONE:
            # The other rank waits for this one's messages: all are ended.
            text = self._runtime.lw_failure().decode(errors="replace")
            print(f"lapwing: rank {self.rank}: {text}", file=sys.stderr, flush=True)
            abort(self.comm)
        setup = time.perf_counter() - begin - times.total
        return times_of(kept[: min(trace.count, _EVENTS)], setup)

    def _options(self, engine: str) -> native.Options:
        threads = 2 if engine == "helper" else 1
        return native.Options(
            engine=native.ENGINE_CODES[engine],
            comm=self.comm.py2f(),
            helper_cpu=helper_cpu(Tuning(), self._place) if engine == "helper" else -1,
            spin=may_spin(self._place, threads),
            slice_seconds=SLICE_SECONDS,
            clock_offset=self._offset,
            patience_seconds=patience_seconds(),
        )


def times_of(events: npt.NDArray[Any], setup: float = 0.0) -> Times:
    """From the events (trace.events.EVENT) of the computing thread."""
    events = events[events["thread"] == 0]
    activities, seconds = events["activity"], events["seconds"]
    begins = events["begin"][activities == _COMPUTE]
    waits = activities == _WAIT
    # Waits lie between computations: each belongs to the one before it.
    after = np.searchsorted(begins, events["begin"][waits], side="right") - 1
    inside = (after >= 0) & (after < len(begins) - 1)
    waited = np.bincount(after[inside], seconds[waits][inside], minlength=max(0, len(begins) - 1))
    posted = np.flatnonzero(waits[1:] & (activities[:-1] == _POST)) + 1
    periods = np.diff(begins)
    return Times(periods, periods - waited[: len(periods)], seconds[posted], setup)


def _stand_in(bound: BoundNest, name: str, exported: bool) -> LocalArray:
    """An array that nobody looks into."""
    array = bound.array(name)
    return replace(allocate(array, tuple((0, 1) for _ in array.shape), exported))


def _spin_module(announce: native.Announce) -> native.Module:
    path = build_shared_library(
        name="spin",
        sources={"spin.c": _SOURCE.read_text(encoding="utf-8"), "lapwing.h": _HEADER.read_text(encoding="utf-8")},
        main=["spin.c"],
        compiler=find_c_compiler(),
        flags=("-std=gnu11", "-O2"),
        announce=announce,
    )
    return native.module_of(ctypes.CDLL(str(path)))
