"""Functions of libraries that give the larger, or the lesser, of two numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extreme:
    """``sort``: "largest" or "least". ``bytes``: of the reals it is of, of which it gives the number where the other is a NaN;
    None for one of any type, which may give either then."""

    sort: str
    bytes: int | None = None
