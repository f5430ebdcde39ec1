"""NumPy's own inner loops for the generated code that calls them: they differ from C's math library in the last bit.

A loop and its data are what the structure of a ufunc (PyUFuncObject, part of NumPy's C API) says for the types. Generated modules
have a variable for each that they call, ``lw_numpy_exp_f64``, which is filled once the module is loaded.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np

_DECLARED = re.compile(r"^lw_numpy_loop lw_numpy_(\w+)_(f64|f32|c128|c64);$", re.MULTILINE)
_TYPE_CODES = {"f64": "d", "f32": "f", "c128": "D", "c64": "F"}


class _Loop(ctypes.Structure):
    """See lw_numpy_loop in support.h."""

    _fields_ = [("function", ctypes.c_void_p), ("data", ctypes.c_void_p)]


class _Ufunc(ctypes.Structure):
    """The beginning of PyUFuncObject, behind what every object of Python starts with."""

    _fields_ = [
        *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    ]


def provide_numpy_loops(library: ctypes.CDLL, source: str) -> None:
    """Fill the variables of a module that was loaded, for the loops that its source declares."""
    for name, suffix in _DECLARED.findall(source):
        variable = _Loop.in_dll(library, f"lw_numpy_{name}_{suffix}")
        variable.function, variable.data = _loop(getattr(np, name), _TYPE_CODES[suffix])


def _loop(function: np.ufunc, code: str) -> tuple[int | None, int | None]:
    structure = _Ufunc.from_address(id(function) + object.__basicsize__)
    if (structure.nin, structure.nout, structure.ntypes) != (function.nin, function.nout, function.ntypes):
        raise AssertionError(f"NumPy {np.__version__} lays out its ufuncs in another way than is known here")
    operands = f"{code * function.nin}->"
    place = next(k for k, types in enumerate(function.types) if types.startswith(operands))
    return structure.functions[place], structure.data[place]
