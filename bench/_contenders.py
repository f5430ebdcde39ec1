"""The ways to run a nest on one core that are held against each other, each on arrays of its own."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _report import compiler_name

import lapwing as lw
from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import Compiler, find_c_compiler
from lapwing.codegen.plain import plain_source
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.runtime.alone import PreparedRun
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.binding import native
from lapwing.runtime.workspace import Reductions, Workspace

TILE, WHOLE_CALL = "Lapwing, tile", "Lapwing, whole call"
UNLIMITED = ctypes.c_int64(2**62)
# As many people compile; gcc then contracts to fused multiply-adds, and the square root may have to set errno.
USUAL_FLAGS = ("-O3", "-march=native", "-lm")

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """One run of a nest: seconds by figure, and the reductions by name."""

    seconds: dict[str, float]
    results: dict[str, Any]


@dataclass(frozen=True)
class Contender:
    """One way to run a nest. ``arguments`` holds its arrays; ``exact``: it promises the bits of the Python loop."""

    arguments: Arguments
    call: Callable[[], Call]
    exact: bool = True


def usual_gcc() -> str:
    """The name of the figure that others are compared with: the plain loop as many people compile it."""
    return f"{compiler_name()} {' '.join(USUAL_FLAGS[:-1])}"


def contenders(nest: lw.Nest, bound: BoundNest, arguments: Arguments, announce: native.Announce) -> list[Contender]:
    """All that can run here, each with a copy of the arrays."""
    found = [
        _tile(nest, bound, _copied(arguments), announce),
        _called(WHOLE_CALL, nest, bound, _copied(arguments)),
        _plain(f"{compiler_name()}, Lapwing's flags", native.TILE_FLAGS, True, bound, _copied(arguments), announce),
        _plain(usual_gcc(), USUAL_FLAGS, False, bound, _copied(arguments), announce),
    ]
    if has_clang():
        found.append(_plain(clang_name(), USUAL_FLAGS, False, bound, _copied(arguments), announce, _clang()))
    if has_numba():
        found.append(_called("numba", _jitted(nest), bound, _copied(arguments)))
    return found


def has_clang() -> bool:
    return shutil.which("clang") is not None


def clang_name() -> str:
    return f"clang {' '.join(USUAL_FLAGS[:-1])}"


def _clang() -> Compiler:
    path = shutil.which("clang")
    assert path is not None
    return Compiler((path,), f"clang at {Path(path).resolve()}")


def has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def _tile(nest: lw.Nest, bound: BoundNest, arguments: Arguments, announce: native.Announce) -> Contender:
    """What a whole call spends in C, by the plan that calls have come to by then."""
    arrays = [arguments[array.name] for array in bound.arrays]
    addresses = [values.ctypes.data for values in arrays]
    prepared: list[PreparedRun] = []

    def call() -> Call:
        plan = nest.planned(bound, 1, 1, 1, arguments).plan
        if not prepared or prepared[0].plan is not plan:
            prepared[:] = [PreparedRun(bound, plan, arrays, announce)]
        results = prepared[0].run(arrays, addresses)
        return Call({TILE: prepared[0].seconds}, results)

    return Contender(arguments, call)


def _called(name: str, function: Callable[..., Any], bound: BoundNest, arguments: Arguments) -> Contender:
    def call() -> Call:
        start = time.perf_counter()
        returned = function(**arguments)
        seconds = time.perf_counter() - start
        values = returned if bound.nest.returns_tuple else (returned,) * len(bound.nest.returns)
        return Call({name: seconds}, dict(zip(bound.nest.returns, values, strict=True)))

    return Contender(arguments, call)


def _plain(
    name: str,
    flags: tuple[str, ...],
    exact: bool,
    bound: BoundNest,
    arguments: Arguments,
    announce: native.Announce,
    compiler: Compiler | None = None,
) -> Contender:
    library = _plain_library(bound, flags, announce, compiler)
    arrays = {a.name: _where_it_lies(bound, a.name, arguments) for a in bound.arrays}
    workspace = Workspace(bound, library, arrays)

    def call() -> Call:
        workspace.reset()
        start = time.perf_counter()
        library.lw_plain(ctypes.byref(workspace.tile), UNLIMITED)
        seconds = time.perf_counter() - start
        return Call({name: seconds}, Reductions(bound).merged([workspace.words]))

    return Contender(arguments, call, exact)


def _plain_library(
    bound: BoundNest, flags: tuple[str, ...], announce: native.Announce, compiler: Compiler | None
) -> ctypes.CDLL:
    if flags == native.TILE_FLAGS:
        return native.build_plain(plain_source(bound), announce)
    source = plain_source(bound)
    path = build_shared_library(
        name="bench-plain",
        sources={"plain.c": source, **native.headers_of(source)},
        main=["plain.c"],
        compiler=compiler or find_c_compiler(),
        flags=flags,
        announce=announce,
    )
    return ctypes.CDLL(str(path))


def _where_it_lies(bound: BoundNest, name: str, arguments: Arguments) -> LocalArray:
    array = bound.array(name)
    return LocalArray(array, tuple((0, extent) for extent in array.shape), arguments[name])


@cache
def _jitted(nest: lw.Nest) -> Callable[..., Any]:
    import numba

    jitted: Callable[..., Any] = numba.njit(nest.python)
    return jitted


def _copied(arguments: Arguments) -> dict[str, Any]:
    return {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in arguments.items()}
