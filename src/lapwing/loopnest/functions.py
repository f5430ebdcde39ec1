"""The functions a loop body may call, by the object the name refers to, and why others are refused."""

from __future__ import annotations

import builtins
import math
from typing import Any

# C's math library and CPython's math module agree bit for bit on these: CPython calls the C function.
MATH_UNARY = """
    sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh fabs
    erf erfc cbrt
""".split()
MATH_BINARY = ["atan2", "pow", "fmod", "copysign"]
MATH_TO_INT = ("floor", "ceil", "trunc")
CASTS = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool_")

_SUPPORTED: dict[int, str] = {
    id(builtins.min): "min",
    id(builtins.max): "max",
    id(builtins.abs): "abs",
    id(builtins.float): "float",
    id(builtins.int): "int",
    id(builtins.bool): "bool",
}
_SUPPORTED.update({id(getattr(math, n)): f"math.{n}" for n in (*MATH_UNARY, *MATH_BINARY, *MATH_TO_INT)})

SUPPORTED_TEXT = (
    "supported are min, max, abs, float, int, bool, numpy.sqrt, numpy.abs, NumPy scalar types such as numpy.float32, "
    "and math." + ", math.".join((*MATH_UNARY, *MATH_BINARY, *MATH_TO_INT))
)

_INSTEAD = {
    "minimum": "min(a, b)",
    "maximum": "max(a, b)",
    "where": "a if condition else b",
    "clip": "min(max(x, low), high)",
    "square": "x * x",
    "hypot": "math.sqrt(x * x + y * y)",
    "isnan": "x != x",
    "floor": "math.floor(x)",
    "ceil": "math.ceil(x)",
    "trunc": "math.trunc(x)",
    "round": "math.floor(x + 0.5), which rounds halves up",
    "sum": "its terms out, a + b + c, or add them up in a reduction: s += x",
    "float16": "numpy.float32(x)",
    "uint16": "numpy.int32(x)",
    "uint32": "numpy.int64(x)",
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
    if function in (builtins.round, builtins.sum, math.hypot, math.isnan):
        return f"Write {_INSTEAD[name]}."
    if module == "numpy" and (name in MATH_UNARY or name.replace("arc", "a") in MATH_UNARY):
        return (
            f"NumPy's own vector code for {name} may differ from C's math library in the last bit: "
            f"write math.{name.replace('arc', 'a')}."
        )
    return (
        f"Write what {name or 'it'} computes in its place; or, where it needs no value that the loops compute, call it "
        f"before and pass the values of {text} in a read-only array; {SUPPORTED_TEXT}."
    )
