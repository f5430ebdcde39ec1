"""Memory of the arrays that a program makes while it runs, and of the copies that a run makes of arrays, kept from call to call
(``memory_pool.c``; NumPy's NEP 49).

Arrays that are too large for the heap are mapped, cleared page by page when they are first touched, and given back to the
system when they are freed: a third of the time of a program that makes its tables anew in every call. What NumPy allocates
between the beginning and the end of ``pooled`` comes from memory that such arrays had before, and goes back there when it is
freed, whoever holds it.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_c_compiler
from lapwing.errors import BuildError
from lapwing.memory import available_bytes

LEAST_POOLED_BYTES = 256 << 10  # of an array: smaller ones come from the heap (memory_pool.c)
MOST_KEPT_BYTES = 256 << 20  # that nobody uses
_SHARE = 1 / 16  # of the memory that is free, if that is less
_SET_HANDLER = 304  # the place of PyDataMem_SetHandler in NumPy's table of functions
_CAPSULE = b"mem_handler"  # the name that NumPy wants it to have

_Set = Callable[[Any], Any]


class _Pooled:
    """A class, as of ``wanted``."""

    def __init__(self, set_handler: _Set, handler: Any) -> None:
        self._set_handler, self._handler = set_handler, handler

    def __enter__(self) -> None:
        self._before = self._set_handler(self._handler)

    def __exit__(self, *_: object) -> None:
        self._set_handler(self._before)


def pooled() -> AbstractContextManager[None]:
    """Arrays that are made in this thread until the end of the block have memory of the pool. Without a compiler, as ever."""
    found = _pool()
    return nullcontext() if found is None else _Pooled(*found)


@cache
def _pool() -> tuple[_Set, Any] | None:
    """What sets NumPy's handler, giving the one before, and the pool's."""
    try:
        path = build_shared_library(
            name="memory-pool",
            sources={"memory_pool.c": Path(__file__).with_name("memory_pool.c").read_text(encoding="utf-8")},
            main=["memory_pool.c"],
            compiler=find_c_compiler(),
            flags=("-O2", "-pthread"),
            announce=None,
        )
    except BuildError:
        return None
    library = ctypes.CDLL(str(path))
    library.lw_keep_at_most.argtypes = [ctypes.c_size_t]
    library.lw_keep_at_most(int(min(MOST_KEPT_BYTES, _SHARE * available_bytes())))
    new, pointer = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
    new.argtypes, new.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    functions = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    table = ctypes.cast(pointer(functions, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    return set_handler, new(ctypes.addressof(ctypes.c_char.in_dll(library, "lw_memory_handler")), _CAPSULE, None)
