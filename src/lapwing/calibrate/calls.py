"""Calls of a tile's functions, timed in compiled code: a call may take less time than Python needs to make it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_cxx_compiler
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.runtime.binding import native
from lapwing.runtime.workspace import Workspace
from lapwing.tiling.inner import MOST_LANES
from lapwing.tiling.partition import Range

COMPUTE, PACK, UNPACK = 0, 1, 2
_SOURCE = Path(__file__).parent / "cpp" / "calls.cpp"
_HEADERS = native.SOURCES


@dataclass(frozen=True)
class Call:
    """One call: COMPUTE, PACK or UNPACK; ``box`` are iterations, sweep loops included; the rest is for copies alone."""

    kind: int
    box: tuple[Range, ...]
    face: int = 0
    bytes: int = 0


class _NativeCall(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int64), ("face", ctypes.c_int64), ("box", native.Box)]


class CallTimer:
    """Makes calls on one rank's arrays."""

    def __init__(self, bound: BoundNest, workspace: Workspace, announce: native.Announce) -> None:
        loops, depth = len(bound.nest.loops), bound.nest.sweep_depth
        # As in runtime.program: what the slicer looks at.
        grain = MOST_LANES if depth == loops - 2 else 1
        self._phase = native.Phase(loops=loops, sweep_depth=depth, slice_grain=grain, slice_loop=depth, slices_rows=1)
        self._workspace = workspace
        self._module = native.module_of(workspace.library)
        self._buffer = np.ones(1 << 16, np.uint8)
        self._library = _library(announce)

    def seconds(self, calls: Sequence[Call], slice_seconds: float = 0.0) -> npt.NDArray[np.float64]:
        """Make the calls in order; the seconds of each."""
        table = (_NativeCall * max(1, len(calls)))(
            *(_NativeCall(call.kind, call.face, native.box(call.box)) for call in calls)
        )
        seconds = np.zeros(len(calls))
        most = max((call.bytes for call in calls), default=0)
        if most > len(self._buffer):
            self._buffer = np.ones(2 * most, np.uint8)
        self._workspace.reset()
        self._library.lw_time_calls(
            ctypes.byref(self._phase), ctypes.byref(self._module), ctypes.byref(self._workspace.tile), table,
            len(calls), slice_seconds, self._buffer.ctypes.data, seconds.ctypes.data,
        )  # fmt: skip
        return seconds


@cache
def _library(announce: native.Announce) -> ctypes.CDLL:
    headers = {p.name: p.read_text(encoding="utf-8") for p in _HEADERS.iterdir() if p.suffix in (".h", ".hpp")}
    path = build_shared_library(
        name="calls",
        sources={**headers, "calls.cpp": _SOURCE.read_text(encoding="utf-8")},
        main=["calls.cpp"],
        compiler=find_cxx_compiler(),
        flags=native.RUNTIME_FLAGS,
        announce=announce,
    )
    library = ctypes.CDLL(str(path))
    pointer: Any = ctypes.c_void_p
    library.lw_time_calls.argtypes = [
        pointer, pointer, pointer, pointer, ctypes.c_int64, ctypes.c_double, pointer, pointer,
    ]  # fmt: skip
    library.lw_time_calls.restype = None
    return library
