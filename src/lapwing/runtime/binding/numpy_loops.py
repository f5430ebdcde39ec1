"""NumPy's own inner loops for the generated code that calls them: they differ from C's math library in the last bit.

A loop and its data are what the structure of a ufunc (PyUFuncObject, part of NumPy's C API) says for the types. Generated modules
have a variable for each that they call, ``lw_numpy_exp_f64``, which is filled once the module is loaded.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache

import numpy as np

_DECLARED = re.compile(r"^lw_numpy_loop lw_numpy_(\w+)_(f64|f32|c128|c64);$", re.MULTILINE)
_TYPE_CODES = {"f64": "d", "f32": "f", "c128": "D", "c64": "F"}


class _Loop(ctypes.Structure):
    """See lw_numpy_loop in support.h."""

    _fields_ = [("function", ctypes.c_void_p), ("data", ctypes.c_void_p), ("most", ctypes.c_int64)]


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
        variable.most = _MANY if _is_elementwise(getattr(np, name), _TYPE_CODES[suffix]) else 1


_MANY = 2**62
_Call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


@cache
def _is_elementwise(function: np.ufunc, code: str) -> bool:
    """Whether a loop gives every element the same bits alone, among any others, and wherever it stands: loops with instructions
    for vectors need not, where a few elements of a vector ask for another way. Tried, with numbers of all kinds in any order."""
    if np.dtype(code).kind == "c":
        return False
    operands = [_of_all_kinds(np.dtype(code), seed) for seed in range(function.nin)]
    alone = _in_calls_of(1, function, code, operands)
    return all(np.array_equal(_in_calls_of(count, function, code, operands), alone) for count in (3, 16, 61, 256))


def _of_all_kinds(dtype: np.dtype[np.generic], seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    small, usual = random.uniform(-1, 1, 256), random.uniform(-30, 30, 256)
    any_bits = random.bytes(256 * dtype.itemsize)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        1e-40,
        1e5,
        1e10,
        700.0,
        -745.0,
        88.0,
        -104.0,
        0.5,
    ] * 8
    with np.errstate(over="ignore", under="ignore"):
        values = np.concatenate(
            [*(np.asarray(a).astype(dtype) for a in (small, usual, special)), np.frombuffer(any_bits, dtype)]
        )
    return random.permutation(values)


def _in_calls_of(count: int, function: np.ufunc, code: str, operands: list[np.ndarray]) -> np.ndarray:
    """The bits of what a loop makes of so many elements at a time."""
    address, data = _loop(function, code)
    assert address is not None
    result = np.empty_like(operands[0])
    size, arrays = result.itemsize, [*operands, result]
    for first in range(0, len(result), count):
        places = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data + first * size for array in arrays))
        step = 0 if count == 1 else size  # as in lw_call of support.h
        steps = (ctypes.c_ssize_t * len(arrays))(*[step] * len(operands), size)
        number = ctypes.c_ssize_t(min(count, len(result) - first))
        _Call(address)(ctypes.addressof(places), ctypes.addressof(number), ctypes.addressof(steps), data)
    return np.where(np.isnan(result), np.nan, result).astype(result.dtype).view(f"u{size}")


def _loop(function: np.ufunc, code: str) -> tuple[int | None, int | None]:
    structure = _Ufunc.from_address(id(function) + object.__basicsize__)
    if (structure.nin, structure.nout, structure.ntypes) != (function.nin, function.nout, function.ntypes):
        raise AssertionError(f"NumPy {np.__version__} lays out its ufuncs in another way than is known here")
    operands = f"{code * function.nin}->"
    place = next(k for k, types in enumerate(function.types) if types.startswith(operands))
    return structure.functions[place], structure.data[place]
