"""The C ABI of lapwing.h in Python: structures, and the libraries behind them, built on first use."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.contraction import contracts
from lapwing.codegen.compilation.exact_flags import flags_to_try
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler, find_mpi
from lapwing.errors import BuildError
from lapwing.runtime.binding.numpy_loops import provide_numpy_loops
from lapwing.trace.events import ACTIVITIES

MAX_LOOPS = 8
ENGINE_CODES = {"blocking": 0, "overlap": 1, "onesided": 2, "helper": 3}
DONE, TRAPPED, STOPPED, FAILED = 0, 1, 2, 3
INSIDE, FROM_END, MAY_RAISE = 0, 1, 2  # what an inspection finds
GO_ON, STOP, PASS_ON = 0, 1, 2  # answers to progress; a sweep is added to the last

# Results are bit-identical to Python's only without contraction (no fused multiply-add), and NumPy's integers wrap.
# -fopenmp-simd only lets "#pragma omp simd" be heard; no OpenMP runtime is involved. gcc 12 distributes the statements of
# skewed loops over loops of their own although they depend on each other (tests/codegen/test_compilers.py), so that is off.
# Nobody asks whether operations overflowed and the like, so that those of both arms of a condition may be computed: without
# masks, as in AVX2, gcc makes no vectors of conditions otherwise.
# Vectors that are wider than the machine's go to no function that is not inlined: no word on how they would be passed.
TILE_FLAGS = (
    "-std=c11", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv", "-fopenmp-simd",
    "-fno-tree-loop-distribution", "-Wno-psabi", "-lm",
)  # fmt: skip
# Of tiles with vectors of their own, or roots and the like in outer loops' lanes, and of conditions, whose masks take as long
# for vectors of any width: of the whole width of vectors.
WIDE_FLAGS = ("-mprefer-vector-width=512",) if platform.machine() == "x86_64" else ()
# Of loops that all wait for themselves. Terms of a sum are computed in vectors and added one by one: what takes those of 64 bytes
# apart needs the ports that add, which are fewer while there are any.
CHAIN_FLAGS = ("-mprefer-vector-width=256",) if platform.machine() == "x86_64" else ()
RUNTIME_FLAGS = ("-std=c++20", "-O2")

SOURCES = Path(__file__).parents[1] / "cpp"  # what the runtime is built from
LIBURING = ("-DLAPWING_LIBURING", "-luring")
_CODEGEN = Path(__file__).parents[2] / "codegen"
HEADERS = tuple(  # that generated code includes
    _CODEGEN / name
    for name in (
        "support.h",
        "strips.h",
        "scans.h",
        "striped.h",
        "outer_loops.h",
        "transposed.h",
        "squares.h",
        "correctly_rounded.h",
        "ranges.h",
    )
)

Announce = Callable[[str], None] | None


class Box(ctypes.Structure):
    _fields_ = [("lo", ctypes.c_int64 * MAX_LOOPS), ("hi", ctypes.c_int64 * MAX_LOOPS)]


class Array(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_void_p),
        ("stride", ctypes.c_int64 * MAX_LOOPS),
        ("shape", ctypes.c_int64 * MAX_LOOPS),
    ]


class Scalar(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("f", ctypes.c_double)]


class Tile(ctypes.Structure):
    _fields_ = [
        ("arrays", ctypes.POINTER(Array)),
        ("scalars", ctypes.POINTER(Scalar)),
        ("accumulators", ctypes.POINTER(Scalar)),
        ("trap", ctypes.c_int64),
        ("trap_sweep", ctypes.c_int64),
        ("trap_step", ctypes.c_int64),
        ("moves", Box),
        ("raises_nothing", ctypes.c_int64),
    ]


MODULE_FUNCTIONS = ("compute", "pack", "unpack", "put")


class Module(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in MODULE_FUNCTIONS]


class Part(ctypes.Structure):
    _fields_ = [("face", ctypes.c_int64), ("bytes", ctypes.c_int64), ("box", Box)]


class Message(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("step", "free_step", "bytes", "first_part", "parts")]


class Channel(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("peer", "phase", "lag", "exchange", "depth")),
        *((name, ctypes.c_int64) for name in ("largest", "first_message", "messages")),
        ("there", ctypes.c_void_p),
        ("pass_sweep", ctypes.c_int64),
        ("peer_steps", ctypes.c_int64),
    ]


class Phase(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("loops", "sweep_depth", "slice_grain", "slice_loop", "slices_rows")),
        ("sweep_points", ctypes.POINTER(ctypes.c_int64)),
        ("first_step", ctypes.c_int64),
        ("rewrites", ctypes.c_int64),
    ]


class Program(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("phases", "sweeps", "steps", "batch", "apart")),
        ("phase", ctypes.POINTER(Phase)),
        ("step_boxes", ctypes.POINTER(Box)),
        ("incoming", ctypes.c_int64),
        ("outgoing", ctypes.c_int64),
        ("incoming_channels", ctypes.POINTER(Channel)),
        ("outgoing_channels", ctypes.POINTER(Channel)),
        ("messages", ctypes.POINTER(Message)),
        ("parts", ctypes.POINTER(Part)),
        *((name, ctypes.c_int64) for name in ("pass_sweeps", "pass_skew", "opening_sweeps", "pass_places")),
        ("places", ctypes.POINTER(ctypes.c_int64)),
        *((name, ctypes.c_int64) for name in ("joined_sweeps", "last_joined", "closing_sweeps")),
        ("step_moves", ctypes.POINTER(Box)),
    ]


class Extent(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in ("file", "array", "offset", "row", "column", "run_bytes", "group", "dims")
        ),
        *((name, ctypes.c_int64 * MAX_LOOPS) for name in ("count", "file_stride", "memory_stride")),
    ]


class Generation(ctypes.Structure):
    _fields_ = [
        ("files", ctypes.POINTER(ctypes.c_char_p)),
        ("first_extent", ctypes.POINTER(ctypes.c_int64)),
        ("extents", ctypes.POINTER(Extent)),
        ("keys", ctypes.POINTER(ctypes.c_uint64)),
    ]


class Streamed(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("position", "written", "ring_rows", "row_bytes", "turn", "origin")),
        ("first_rows", ctypes.POINTER(ctypes.c_int64)),
    ]


PASS_COMPUTED, PASS_WRITTEN, PASS_MAY_BE_WRITTEN = 0, 1, 2  # events of a pass
Notice = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64)


class Disk(ctypes.Structure):
    """See lw_disk in lapwing.h."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("streamed", "slabs", "slots")),
        ("arrays", ctypes.POINTER(Streamed)),
        ("slabs_before", ctypes.POINTER(ctypes.c_int64)),
        ("slabs_after", ctypes.POINTER(ctypes.c_int64)),
        ("frontiers", ctypes.POINTER(Generation)),
        ("passes", ctypes.c_int64),
        ("reads", ctypes.POINTER(Generation)),
        ("writes", ctypes.POINTER(Generation)),
        *((name, ctypes.c_int64) for name in ("queue_depth", "request_bytes", "direct")),
        ("notice", Notice),
    ]


class Trace(ctypes.Structure):
    _fields_ = [("events", ctypes.c_void_p), ("capacity", ctypes.c_int64), ("count", ctypes.c_int64)]


class Times(ctypes.Structure):
    """Seconds a rank spent; see lw_times in lapwing.h."""

    _fields_ = [
        *((name, ctypes.c_double) for name in ("begin", "total", "fill", "drain", "exposed", "disk_busy", "cpu_lost")),
        ("activity", ctypes.c_double * len(ACTIVITIES)),
        *((name, ctypes.c_int64) for name in ("messages", "bytes", "read_bytes", "written_bytes")),
    ]


class Options(ctypes.Structure):
    """How to run; see lw_options in lapwing.h."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("engine", "comm", "dry", "split_bytes", "helper_cpu", "spin")),
        *((name, ctypes.c_double) for name in ("slice_seconds", "clock_offset", "patience_seconds", "grace_seconds")),
        ("interrupts", ctypes.c_int64),
        ("disk", ctypes.POINTER(Disk)),
    ]


Progress = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def box(ranges: Sequence[tuple[int, int]]) -> Box:
    result = Box()
    for k, (low, high) in enumerate(ranges):
        result.lo[k], result.hi[k] = low, high
    return result


def array_at(origin: int, strides: Sequence[int], shape: Sequence[int]) -> Array:
    """An array whose element (0, …, 0) would be at an address; strides in elements."""
    array = Array(base=origin & (2**64 - 1))
    for axis, (stride, extent) in enumerate(zip(strides, shape, strict=True)):
        array.stride[axis], array.shape[axis] = stride, extent
    return array


def build_tile(source: str, announce: Announce, what: str = "a tile") -> ctypes.CDLL:
    """Compile a generated tile module and load it. what: its name in the announcement.

    Raises BuildError where there is no compiler or it rejects the source.
    """
    return _load_source("tile", what, source, announce)


def build_plain(source: str, announce: Announce, what: str = "a plain loop") -> ctypes.CDLL:
    """Compile the plain loop (codegen.plain) and load it. what: its name in the announcement."""
    return _load_source("plain", what, source, announce)


def _load_source(name: str, what: str, source: str, announce: Announce) -> ctypes.CDLL:
    path, _ = _built_exactly(name, what, source, announce)
    library = ctypes.CDLL(str(path))
    provide_numpy_loops(library, source)
    return library


def exact_tile_flags(source: str, announce: Announce) -> tuple[str, ...]:
    """The flags with which this machine's compiler gives a tile module the bits of Python, for any processor of its kind: it is
    built with them.

    Raises BuildError where there is no compiler or it rejects the source.
    """
    return _built_exactly("tile", "a tile", source, announce, tuned=False)[1]


def headers_of(source: str) -> dict[str, str]:
    """The texts of the headers that generated code includes, by name."""
    known = {path.name: path for path in (SOURCES / "lapwing.h", *HEADERS)}
    found: dict[str, str] = {}
    texts = [source]
    while texts:
        text = texts.pop()
        for name in known.keys() - found.keys():
            if f'"{name}"' in text:
                found[name] = known[name].read_text(encoding="utf-8")
                texts.append(found[name])
    return dict(sorted(found.items()))


def _built_exactly(
    name: str, what: str, source: str, announce: Announce, tuned: bool = True
) -> tuple[Path, tuple[str, ...]]:
    """A library of generated code, with the flags that it was built with."""
    file = f"{name}.c"
    headers, compiler = headers_of(source), find_c_compiler()
    # Operations that C has no vectors for.
    in_loops = '"outer_loops.h"' in source and "#pragma omp simd" in source
    has_vectors = any(mark in source for mark in ('"transposed.h"', '"scans.h"', "vector_size("))
    has_masks = any(mark in source for mark in ("lw_select_", "lw_masked_", '"strips.h"'))
    is_chain = not has_vectors and '"outer_loops.h"' not in source and "#pragma GCC ivdep" not in source
    wide = WIDE_FLAGS if has_vectors or in_loops or has_masks else CHAIN_FLAGS if is_chain else ()
    # Chains of choices take half as long again with it: gcc branches there.
    tuning = compiler.tuning() if tuned and "#pragma GCC ivdep" in source else ()
    for more in flags_to_try(source):
        flags = (*compiler.spelled((*TILE_FLAGS, *wide, *more)), *tuning)
        path = build_shared_library(
            name=name, sources={file: source, **headers}, main=[file], compiler=compiler, flags=flags,
            announce=announce, what=what,
        )  # fmt: skip
        if not contracts(path):
            return path, flags
    raise BuildError(
        f"{compiler.label} fuses products and sums although -ffp-contract=off says not to; the results would not be "
        "those of Python. Use another compiler: LAPWING_CC=gcc-13, LAPWING_CC=clang."
    )


_RUNTIMES = {"runtime-serial": "the runtime for one process", "runtime-mpi": "the runtime for MPI"}


@cache
def serial_runtime(announce: Announce = None) -> ctypes.CDLL:
    """The runtime for one process, built without MPI."""
    return _load_runtime("runtime-serial", "serial.cpp", find_cxx_compiler(), announce)


@cache
def mpi_runtime(announce: Announce = None) -> ctypes.CDLL:
    """The runtime built by the user's mpicxx."""
    return _load_runtime("runtime-mpi", "mpi.cpp", find_mpi().mpicxx, announce)


def _has_liburing() -> bool:
    return any((Path(folder) / "liburing.h").exists() for folder in ("/usr/include", "/usr/local/include"))


def _load_runtime(name: str, main: str, compiler: Any, announce: Announce) -> ctypes.CDLL:
    sources = {p.name: p.read_text(encoding="utf-8") for p in SOURCES.iterdir() if p.suffix in (".h", ".hpp", ".cpp")}
    # Names for the preprocessor, of variants that are built for tests: see delays.hpp.
    defines = [f"-D{define}" for define in os.environ.get("LAPWING_RUNTIME_DEFINES", "").split()]

    def built(flags: Sequence[str]) -> ctypes.CDLL:
        path = build_shared_library(
            name=name, sources=sources, main=[main], compiler=compiler, flags=[*RUNTIME_FLAGS, *defines, *flags],
            announce=announce, what=_RUNTIMES[name],
        )  # fmt: skip
        return ctypes.CDLL(str(path))

    try:
        library = built(LIBURING if _has_liburing() else ())
    except (BuildError, OSError):
        if not _has_liburing():
            raise
        library = built(())  # its headers are here, but not the library itself
    library.lw_run.argtypes = [
        ctypes.POINTER(Program), ctypes.POINTER(Module), ctypes.POINTER(Tile), ctypes.POINTER(Options),
        ctypes.c_void_p, ctypes.POINTER(Trace), ctypes.POINTER(Times),
    ]  # fmt: skip
    library.lw_run.restype = ctypes.c_int
    library.lw_failure.argtypes = []
    library.lw_failure.restype = ctypes.c_char_p
    library.lw_watch.argtypes = [ctypes.c_double, ctypes.c_char_p]
    library.lw_watch.restype = None
    library.lw_unwatch.argtypes = []
    library.lw_unwatch.restype = None
    library.lw_clock.argtypes = []
    library.lw_clock.restype = ctypes.c_double
    library.lw_library_version.argtypes = [ctypes.c_char_p, ctypes.c_int64]
    library.lw_library_version.restype = None
    return library


def module_of(library: ctypes.CDLL) -> Module:
    """The function table of a loaded tile module."""
    addresses = {name: ctypes.cast(getattr(library, f"lw_tile_{name}"), ctypes.c_void_p) for name in MODULE_FUNCTIONS}
    return Module(**addresses)


def compute_of(library: ctypes.CDLL) -> Callable[..., None]:
    """The function of a tile module that computes a box of iterations."""
    function = library.lw_tile_compute
    function.argtypes, function.restype = [ctypes.POINTER(Tile), ctypes.POINTER(Box)], None
    return cast(Callable[..., None], function)


def inspector_of(library: ctypes.CDLL) -> Callable[..., int] | None:
    """The function of a tile module that looks at a tile, and a box of iterations, for what they may raise; None without one."""
    try:
        function = library.lw_tile_inspect
    except AttributeError:
        return None
    function.argtypes, function.restype = [ctypes.POINTER(Tile), ctypes.POINTER(Box)], ctypes.c_int64
    return cast(Callable[..., int], function)


def library_version(library: ctypes.CDLL) -> str:
    text = ctypes.create_string_buffer(8192)
    library.lw_library_version(text, len(text))
    return text.value.decode(errors="replace")
