"""Which type a value has: NumPy 2 promotion (NEP 50) with Python's own numbers as weak types.

NumPy itself is asked wherever it can answer (``ufunc.resolve_dtypes``); only arithmetic between two Python
numbers is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SUPPORTED_DTYPES = (
    "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool",
)  # fmt: skip
# The dtype of the real and the imaginary part.
PARTS = {"complex64": "float32", "complex128": "float64"}

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EXACT_IN_DOUBLE = 2**53
EXACT_IN_FLOAT = 2**24
# Python's integers have no limit. Those that a loop carries may grow to this, and beyond it the run ends: they and what is
# added to them fit 64 bits, and are exact as doubles.
CARRIED_LIMIT = 2**50
# What counts by steps of at most so much, from no more than so far on, would take months of the plain loop to reach that limit.
LARGEST_STEP, COUNTED_FROM = 2, 2**49

Interval = tuple[int, int]


@dataclass(frozen=True)
class ScalarType:
    """``dtype`` is the NumPy name of the representation; ``weak`` marks a Python bool, int, float or complex."""

    dtype: str
    weak: bool = False

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("float")

    @property
    def is_complex(self) -> bool:
        return self.dtype in PARTS

    @property
    def is_inexact(self) -> bool:
        """Whether it is a float or complex, as NumPy's ``inexact``."""
        return is_inexact(self.dtype)

    @property
    def part(self) -> ScalarType:
        """The type of the real part of a complex number."""
        return ScalarType(PARTS[self.dtype], self.weak)

    @property
    def is_bool(self) -> bool:
        return self.dtype == "bool"

    @property
    def is_integer(self) -> bool:
        return not self.is_inexact and not self.is_bool

    def __str__(self) -> str:
        if self.weak:
            return f"Python {self._python_type.__name__}"
        return self.dtype

    def for_numpy(self) -> Any:
        """What ``resolve_dtypes`` takes for this type."""
        return self._python_type if self.weak and not self.is_bool else np.dtype(self.dtype)

    @property
    def _python_type(self) -> type[Any]:
        return {"bool": bool, "int64": int, "float64": float, "complex128": complex}[self.dtype]


PY_BOOL = ScalarType("bool", weak=True)
PY_INT = ScalarType("int64", weak=True)
PY_FLOAT = ScalarType("float64", weak=True)
NUMPY_FLOAT = ScalarType("float64")
PY_COMPLEX = ScalarType("complex128", weak=True)
NP_BOOL = ScalarType("bool")


def is_pythons(a: ScalarType, b: ScalarType) -> bool:
    """Whether Python does arithmetic of two types itself, the first on the left: also where it takes NumPy's float64 for the
    Python float that it is derived from."""
    return (a.weak and b.weak) or (a == PY_COMPLEX and b == ScalarType("float64"))


_CLIP: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]  # what np.clip calls
_UFUNCS: dict[str, np.ufunc] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide, "%": np.remainder,
    "**": np.power, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "<<": np.left_shift, ">>": np.right_shift,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
    "sqrt": np.sqrt, "abs": np.absolute,
}  # fmt: skip


def resolve_function(name: str, *operands: ScalarType) -> tuple[str, str]:
    """NumPy's (computing dtype, result dtype) for a call of one of its functions by name, on any scalars.

    Raises TypeError where it takes no such operands.
    """
    if name == "where":
        result = np.result_type(*(_example(t) for t in operands)).name
        return result, result
    ufunc = _CLIP if name == "clip" else getattr(np, name)
    if all(t.weak for t in operands):
        operands = tuple(ScalarType(t.dtype) for t in operands)
    dtypes = ufunc.resolve_dtypes((*(t.for_numpy() for t in operands), None))
    return dtypes[0].name, dtypes[-1].name


def _example(kind: ScalarType) -> Any:
    return {"int64": 0, "float64": 0.0, "complex128": 0j}.get(kind.dtype, False) if kind.weak else np.dtype(kind.dtype)


def resolve(operator: str, *operands: ScalarType) -> tuple[str, str]:
    """NumPy's (computing dtype, result dtype) for an operator on types of which at least one is NumPy's.

    Raises TypeError where NumPy has no such operation.
    """
    ufunc = _UFUNCS[operator]
    dtypes = ufunc.resolve_dtypes((*(t.for_numpy() for t in operands), None))
    return dtypes[0].name, dtypes[-1].name


def is_inexact(dtype: str) -> bool:
    """Whether the dtype is one of floats or complex numbers."""
    return dtype.startswith("float") or dtype in PARTS


def dtype_range(dtype: str) -> Interval:
    """Least and greatest value of an integer dtype (bool counts as 0 and 1)."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def fits(interval: Interval, dtype: str) -> bool:
    """Whether every integer of the interval is represented exactly in the dtype."""
    if is_inexact(dtype):
        limit = EXACT_IN_FLOAT if dtype in ("float32", "complex64") else EXACT_IN_DOUBLE
        return -limit <= interval[0] and interval[1] <= limit
    low, high = dtype_range(dtype)
    return low <= interval[0] and interval[1] <= high


def holds_exactly(container: str, content: str) -> bool:
    """Whether every value of dtype ``content`` is represented exactly in dtype ``container``."""
    if content == container or content == "bool":
        return True
    if content in PARTS:
        return container == "complex128"
    if content == "float32":
        return is_inexact(container)
    if content == "float64":
        return container == "complex128"
    return fits(dtype_range(content), container)


def scalar_type(value: Any) -> ScalarType | None:
    """The type of a Python or NumPy number; None for anything else."""
    if isinstance(value, np.generic):
        return ScalarType(value.dtype.name) if value.dtype.name in SUPPORTED_DTYPES else None
    if isinstance(value, bool):
        return PY_BOOL
    if isinstance(value, int):
        return PY_INT
    if isinstance(value, float):
        return PY_FLOAT
    return PY_COMPLEX if isinstance(value, complex) else None
