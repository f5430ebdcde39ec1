"""Library functions that return the maximum, or the minimum, of two numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extreme:
    """``sort``: "largest" or "least". ``bytes``: the size of its real arguments, of which it returns the number if the other is
    a NaN; None for a function of any type, which may then return either."""

    sort: str
    bytes: int | None = None
