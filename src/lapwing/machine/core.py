"""What one core takes at best for what loops are made of: the ceilings of a roofline with those inside the core.

All are measured (``calibrate.ceilings``); seconds throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# In which types ceilings are measured, and of what: ``simple`` are sums, minima and, of floats, products in turns.
TYPES = ("float32", "float64", "int32", "int64")
LATENCIES = ("+", "*", "min", "/", "sqrt")
THROUGHPUTS = ("simple", "/", "sqrt")
INEXACT_ONLY = ("/", "sqrt")
ACCESSES = ("load", "store")
_MEASURED_AS = {"bool": "int32", "complex64": "float32", "complex128": "float64"}


def kinds(operators: Sequence[str]) -> list[str]:
    """Of latencies or throughputs: every operator with every type that it is measured in."""
    return [
        f"{op} {dtype}" for op in operators for dtype in TYPES if op not in INEXACT_ONLY or dtype.startswith("float")
    ]


def measured_type(dtype: str) -> str:
    """The type whose ceilings stand for those of another one."""
    if dtype in TYPES:
        return dtype
    return _MEASURED_AS.get(dtype, "int64" if dtype == "uint64" else "int32")


@dataclass(frozen=True)
class Core:
    """``cycle``: of the clock, a dependent addition of integers. ``latency``: from operand to result, by operator and type
    ("+ float64"). ``scalar`` and ``vector``: how long an operation occupies its ports where nothing waits, by kind and type
    ("simple float64"), and a ``load`` or a ``store``; of vectors that are ``vector_bytes`` long. ``read`` and ``update``: by the
    size of what is gone through again and again, for a byte that is read, and for one that is read and written. ``window``: how
    many operations of a chain wait while the core is at the next chain already.
    """

    cycle: float
    vector_bytes: int
    window: float
    latency: Mapping[str, float]
    scalar: Mapping[str, float]
    vector: Mapping[str, float]
    read: tuple[tuple[int, float], ...]
    update: tuple[tuple[int, float], ...]

    def seconds_per_byte(self, size: int) -> tuple[float, float]:
        """For a byte read, and for one read and written, of so many bytes gone through again and again: as it was measured for so
        many or fewer, since more take no less."""
        return _least(self.read, size), _least(self.update, size)


def _least(samples: tuple[tuple[int, float], ...], size: int) -> float:
    fewer = [seconds for of_size, seconds in samples if of_size <= size]
    return fewer[-1] if fewer else samples[0][1]
