"""The functions a loop body may call, by the object the name refers to, and why others are refused."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

# C's math library and CPython's math module agree bit for bit on these: CPython calls the C function.
MATH_UNARY = """
    sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh fabs
    erf erfc cbrt
""".split()
MATH_BINARY = ["atan2", "pow", "fmod", "copysign"]
MATH_TO_INT = ("floor", "ceil", "trunc")
MATH_SCALES = {"degrees": 180.0 / math.pi, "radians": math.pi / 180.0}  # products with these numbers
MATH_TESTS = ("isnan", "isinf", "isfinite")

# NumPy's own code for these may differ from C's math library in the last bit: generated code calls NumPy's loops.
NUMPY_LOOPS = {
    name: 1
    for name in """
        exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt
        degrees radians deg2rad rad2deg reciprocal
    """.split()
} | dict.fromkeys("arctan2 power hypot fmod logaddexp logaddexp2 heaviside float_power nextafter".split(), 2)
# The same of complex numbers, for which what follows it has no code of its own.
NUMPY_COMPLEX_LOOPS = {"absolute": 1, "sqrt": 1, "sign": 1, "rint": 1, "multiply": 2, "divide": 2}
NUMPY_TESTS = ("isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not")
# Those that generated code does itself, with the number of their arguments.
NUMPY_EXACT = {
    "maximum": 2, "minimum": 2, "fmax": 2, "fmin": 2, "where": 3, "clip": 3, "floor": 1, "ceil": 1, "trunc": 1, "rint": 1,
    "sign": 1, "square": 1, "fabs": 1, "copysign": 2,
    "mod": 2, "remainder": 2, "floor_divide": 2, "isnan": 1, "isinf": 1, "isfinite": 1,
    "logical_and": 2, "logical_or": 2, "logical_not": 1, "conjugate": 1,
}  # fmt: skip
CASTS = (
    "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool_",
)  # fmt: skip

_SUPPORTED: dict[int, str] = {
    id(builtins.min): "min",
    id(builtins.max): "max",
    id(builtins.abs): "abs",
    id(builtins.float): "float",
    id(builtins.complex): "complex",
    id(np.real): "real",
    id(np.imag): "imag",
    id(builtins.int): "int",
    id(builtins.bool): "bool",
    id(builtins.round): "round",
}
_SUPPORTED.update(
    {id(getattr(math, n)): f"math.{n}" for n in (*MATH_UNARY, *MATH_BINARY, *MATH_SCALES, *MATH_TO_INT, *MATH_TESTS)}
)
_SUPPORTED.update({id(getattr(np, n)): f"numpy.{n}" for n in (*NUMPY_LOOPS, *NUMPY_EXACT)})

SUPPORTED_TEXT = (
    "supported are min, max, abs, round, int, float, complex, bool, NumPy's scalar types, math's functions and NumPy's of "
    "numbers: docs/language.md has the list"
)


def supported_names() -> list[str]:
    """Every function that loop bodies may call, with its module."""
    return sorted({*_SUPPORTED.values(), *(f"numpy.{name}" for name in CASTS)})


_ARGUMENTS = {
    "min": 2, "max": 2, **{f"math.{n}": 2 for n in MATH_BINARY},
    **{f"numpy.{n}": count for n, count in (NUMPY_LOOPS | NUMPY_EXACT).items()},
}  # fmt: skip


def argument_counts(name: str) -> tuple[int, int | None]:
    """How many arguments a supported function takes at least and at most, by its canonical name; None: any number."""
    count = _ARGUMENTS.get(name, 1)
    return count, {"min": None, "max": None, "complex": 2}.get(name, count)


_INSTEAD = {
    "hypot": "numpy.hypot(x, y)",
    "round": "numpy.rint(x)",
    "sum": "its terms out, a + b + c, or add them up in a reduction: s += x",
    "float16": "numpy.float32(x)",
    "uint64": "numpy.int64(x)",
}


def canonical_name(function: Any) -> str | None:
    """The canonical name of a supported function object, or None."""
    if (name := _SUPPORTED.get(id(function))) is not None:
        return name
    module = getattr(function, "__module__", None) or type(function).__module__
    if module.split(".")[0] != "numpy":
        return None
    name = getattr(function, "__name__", "")
    if name in ("sqrt", "absolute"):
        return f"numpy.{name}"
    if name == "bool":
        name = "bool_"
    if name in CASTS:
        return f"numpy.{name}"
    return None


def way_out(function: Any, text: str) -> str:
    """What to do instead of calling an unsupported function."""
    name = getattr(function, "__name__", "")
    module = (getattr(function, "__module__", None) or type(function).__module__).split(".")[0]
    if module == "numpy" and name in _INSTEAD:
        return f"Write {_INSTEAD[name]}."
    if function in (builtins.sum, math.hypot):
        return f"Write {_INSTEAD[name]}."
    return (
        f"Write what {name or 'it'} computes in its place; or, where it needs no value that the loops compute, call it "
        f"before and pass the values of {text} in a read-only array; {SUPPORTED_TEXT}."
    )
