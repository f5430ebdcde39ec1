"""Which elements arrays on disk may have."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from lapwing.errors import RefusedError

# Those that mean the same on every machine, which long double does not.
_ACCEPTED = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
EXPECTED = "expected bool, an integer of 8 to 64 bits, float16 to float64, complex64 or complex128"


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same numbers in this machine's byte order."""
    return dtype.newbyteorder("=")


def check_numbers(dtype: np.dtype[Any], where: str) -> None:
    """Raises RefusedError where elements are none that Lapwing knows."""
    if dtype.names is not None:
        names = ", ".join(dtype.names)
        raise RefusedError(
            f"{where}: its elements are records of {names}, {EXPECTED}. Store the fields as arrays of their own."
        )
    if dtype.name not in _ACCEPTED:
        raise RefusedError(f"{where}: its elements are {dtype}, {EXPECTED}.")


def as_element(value: Any, dtype: np.dtype[Any], what: str) -> Any:
    """A number as a NumPy scalar of a type. what: it is, for messages. Raises RefusedError where it would be another number."""
    found = np.asarray(value)
    if found.ndim or found.dtype.kind not in "biufc":
        raise RefusedError(f"{what} is {value!r}: expected one number.")
    element = None
    if found.dtype.kind != "c" or dtype.kind == "c":
        with contextlib.suppress(OverflowError, ValueError), np.errstate(all="ignore"):
            element = found.astype(dtype)[()]
    # Of floats the nearest is meant, as everywhere.
    if element is None or (dtype.kind in "biu" and element != found):
        raise RefusedError(f"{what} is {value!r}: expected a number that {dtype} has.")
    return element
