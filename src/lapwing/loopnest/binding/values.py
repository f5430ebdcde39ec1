"""Values in a nest: typed expressions with the types they may have in Python, converted and checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.promotion import (  # fmt: skip
    PARTS,
    PY_FLOAT,
    PY_INT,
    Interval,
    ScalarType,
    dtype_range,
    fits,
    is_inexact,
)
from lapwing.loopnest.refusals import Refusals


@dataclass(frozen=True)
class Counted:
    """Of a Python int, that it is a variable of a loop that may have taken a few steps of at most ``LARGEST_STEP``, and what that
    was before all loops that it counts in."""

    variable: t.Local
    start: Interval


@dataclass(frozen=True)
class Value:
    """A typed expression, the types it may have in Python, and its range where it is a Python int or bool. ``constants``: all
    that it can be where it is a Python float, if that is known, as of ``max(x, 0.0)``. ``reach``: its range where it is a NumPy
    integer, if that is known to be narrower than its type's. ``here``: its range, whichever integer it is, where conditions
    hold that it is computed under, if that is known to be narrower."""

    code: t.Typed
    types: frozenset[ScalarType]
    interval: Interval | None = None
    constants: frozenset[float] | None = None
    reach: Interval | None = None
    counted: Counted | None = None
    here: Interval | None = None

    @property
    def only(self) -> ScalarType | None:
        return next(iter(self.types)) if len(self.types) == 1 else None

    def integers(self, kind: ScalarType) -> Interval:
        """The integers the value can be, when it is of the given integer or bool type."""
        if kind.weak and self.interval is not None:
            return self.interval
        return dtype_range(kind.dtype) if kind.weak or self.reach is None else self.reach

    @property
    def extent(self) -> Interval:
        """The integers the value can be, whichever of its types it has; none of them is a float type."""
        ranges = [self.integers(k) for k in self.types]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    @property
    def extent_here(self) -> Interval | None:
        """The integers the value can be under the conditions it is computed under; None of what may be no integer."""
        if not self.types or any(kind.is_inexact or kind.is_bool for kind in self.types):
            return None
        return self.extent if self.here is None else self.here

    def reached(self, dtype: str) -> Interval | None:
        """The integers the value can be, if these are all that it can be, and integers of the dtype."""
        if is_inexact(dtype) or dtype == "bool" or not self.types or any(kind.is_inexact for kind in self.types):
            return None
        return self.extent if fits(self.extent, dtype) else None

    @property
    def python_floats(self) -> frozenset[float] | None:
        """The Python floats that the value can be, if they are known."""
        return self.constants if PY_FLOAT in self.types else frozenset()

    def wraps_in(self, dtype: str) -> bool:
        """Whether the value may be a NumPy integer that an integer of the dtype does not hold."""
        if is_inexact(dtype) or dtype == "bool":
            return False
        return any(k.is_integer and not k.weak and not fits(dtype_range(k.dtype), dtype) for k in self.types)

    def describe(self) -> str:
        return " or ".join(sorted(str(k) for k in self.types))


class ValueLowering:
    """Conversions of values, which note where the plain loop raises (``traps``), and what is refused of them."""

    def __init__(self, nest: ir.LoopNest, refusals: Refusals) -> None:
        self.nest = nest
        self.refusals = refusals
        self.traps: list[t.Trap] = []

    def _store(self, value: Value, dtype: str, line: int, target: str) -> t.Typed:
        """The value as NumPy stores it into an element of the dtype.

        A NumPy integer that does not fit raises, as a Python int does; only unsigned elements wrap.
        """
        if value.wraps_in(dtype) and dtype in ("int8", "int16", "int32"):
            self._check_python_ints(value, dtype, line, target)
            message = f"a value does not fit {target} of dtype {dtype}; the plain loop raises OverflowError here"
            return t.Convert(dtype, value.code, self._trap(line, message))
        return self._assign(value, dtype, line, target)

    def _assign(self, value: Value, dtype: str, line: int, target: str) -> t.Typed:
        """The value as a NumPy scalar of the dtype."""
        self._check_python_ints(value, dtype, line, target)
        if dtype == "bool":
            return truth(value.code)
        if is_inexact(value.code.dtype) and value.wraps_in(dtype):
            self._mixed(value, line)  # what is a float here does not wrap
        return self._operand(value, dtype, line)

    def _check_python_ints(self, value: Value, dtype: str, line: int, target: str) -> None:
        if PY_INT in value.types and not is_inexact(dtype) and dtype != "bool":
            self._check_fits(value.integers(PY_INT), dtype, line, f"{target} of dtype {dtype}")

    def _check_own_width(self, value: Value, line: int) -> None:
        """A NumPy integer wraps in its own dtype: no wider one may stand for it where results can wrap."""
        if any(k.is_integer and not k.weak and k.dtype != value.code.dtype for k in value.types):
            self._mixed(value, line)

    def _narrowed(self, value: Value, line: int) -> Value:
        """A small Python int in 32 bits: it then takes no wider vectors than the arrays it meets."""
        if value.only == PY_INT and fits(value.extent, "int32"):
            return replace(value, code=self._convert(value.code, "int32", line))
        return value

    def _convert(self, code: t.Typed, dtype: str, line: int) -> t.Typed:
        if code.dtype == dtype:
            return code
        if isinstance(code, t.Select) and not (is_inexact(code.dtype) and not is_inexact(dtype)):
            then, otherwise = (self._convert(branch, dtype, line) for branch in (code.then, code.otherwise))
            return t.Select(dtype, code.test, then, otherwise, code.speculable)
        if dtype in PARTS:
            return self._as_complex(code, dtype, line)
        if code.dtype in PARTS:
            self._refuse(line, f"a complex number where one of dtype {dtype} is expected", _REAL_PART)
        if isinstance(code, t.Literal) and dtype == "float64" and not isinstance(code.value, complex):
            return literal_of(dtype, float(code.value))
        if isinstance(code, t.Literal) and not is_inexact(dtype) and not is_inexact(code.dtype):
            return literal_of(dtype, code.value)
        trap = None
        if is_inexact(code.dtype) and not is_inexact(dtype):
            trap = self._trap(line, f"a value does not fit {dtype}; NumPy's result would be undefined")
        return t.Convert(dtype, code, trap)

    def _as_complex(self, code: t.Typed, dtype: str, line: int) -> t.Typed:
        """A real number with an imaginary part of 0, or a complex one whose parts are rounded."""
        if isinstance(code, t.Literal) and code.dtype in ("float64", "complex128"):
            return t.Literal(dtype, _rounded(complex(code.value), dtype))
        if code.dtype in PARTS:
            return t.Convert(dtype, code)
        return t.Convert(dtype, self._convert(code, PARTS[dtype], line))

    def _trap(self, line: int, message: str, is_beyond: bool = False) -> int:
        self.traps.append(t.Trap(line, f"{self.nest.where(line)}: {message}", is_beyond))
        return len(self.traps)

    def _check_python_int(self, interval: Interval, line: int, tiled_only: bool = False) -> None:
        if not fits(interval, "int64"):
            self.refusals.refuse(
                line, "an integer computation may exceed 64 bits, and a Python int has no limit",
                "compute in floats, with float(x) and 2.0 for 2, or with smaller numbers", tiled_only,
            )  # fmt: skip

    def _check_exact_double(self, interval: Interval, line: int) -> None:
        if not fits(interval, "float64"):
            self._refuse(
                line,
                f"an integer as large as {max(map(abs, interval))} meets a float",
                "stay below 2**53, or write it as a float, float(x)",
            )

    def _operand(self, value: Value, dtype: str, line: int) -> t.Typed:
        """A value in the dtype. Sequential regions see as they run whether a Python int fits, as NumPy does."""
        if PY_INT not in value.types or is_inexact(dtype) or dtype == "bool" or fits(value.integers(PY_INT), dtype):
            return self._convert(value.code, dtype, line)
        if value.wraps_in(dtype) or any(kind.is_inexact for kind in value.types):
            self._mixed(value, line)
        message = f"a Python int does not fit {dtype}; the plain loop raises OverflowError here"
        return t.Convert(dtype, value.code, self._trap(line, message))

    def _check_fits(self, interval: Interval, dtype: str, line: int, what: str) -> None:
        if not fits(interval, dtype) and not self.nest.is_sequential:
            some_fit = not (is_inexact(dtype) or _apart(interval, dtype_range(dtype)))
            self.refusals.refuse(
                line, f"a Python int between {interval[0]} and {interval[1]} meets {what}",
                f"the plain loop raises OverflowError where it does not fit; convert it, or use a wider dtype than {dtype}",
                tiled_only=some_fit,
            )  # fmt: skip

    def _check_between_either(self, operator: str, line: int) -> None:
        """Python raises where NumPy gives a NaN or an infinity. A sequential region stops there, whichever it would be."""
        if not self.nest.is_sequential:
            self.refusals.refuse(
                line, f"{operator} is between Python numbers or NumPy numbers depending on the values",
                "convert the operands, for example with numpy.float64",
                tiled_only=True,
            )  # fmt: skip

    def _mixed(self, value: Value, line: int, tiled_only: bool = False) -> NoReturn:
        is_complex = any(kind.is_complex for kind in value.types)
        example = "numpy.complex128(0) or 0j" if is_complex else "numpy.float32(0) or 0.0"
        self.refusals.refuse(
            line, f"the type of a value depends on the values: it is {value.describe()}",
            f"write the constant in the other type, for example {example}, so that the result has one type",
            tiled_only,
        )  # fmt: skip

    def _refuse(self, line: int, found: str, supported: str) -> NoReturn:
        self.refusals.refuse(line, found, supported)


_REAL_PART = "take a part of it, as z.real, or its modulus, abs(z)"


def _rounded(value: complex, dtype: str) -> complex:
    with np.errstate(over="ignore"):
        return complex(np.dtype(dtype).type(value))


def plain_number(value: Any) -> Any:
    """A NumPy number as a Python one."""
    return value.item() if hasattr(value, "item") else value


def as_start(value: Any, dtype: str) -> Any:
    """A number that a reduction begins with, as a Python one; of the bits that elements of four bytes have."""
    if dtype != "float32":
        return plain_number(value)
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def literal_of(dtype: str, value: Any) -> t.Literal:
    return t.Literal(dtype, plain_number(value))


def truth(code: t.Typed) -> t.Typed:
    return code if code.dtype == "bool" else t.Operation("bool", "truth", (code,))


def _apart(interval: Interval, other: Interval) -> bool:
    return interval[1] < other[0] or other[1] < interval[0]
