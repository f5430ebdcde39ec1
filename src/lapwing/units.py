"""Figures as a person reads them: times, sizes, rates and shares, each with a unit that suits it. All messages use these."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import RefusedError

NOT_KNOWN = "–"


@dataclass(frozen=True)
class _Scale:
    """Units and their values, largest first; ``plain`` is the one that nothing at all, and without end, is told in."""

    units: tuple[tuple[str, float], ...]
    plain: str

    def unit(self, value: float, digits: int) -> tuple[str, float]:
        """The largest unit of which there is one once the number is rounded; else the smallest."""
        if value == 0 or not math.isfinite(value):
            return self.plain, dict(self.units)[self.plain]
        fitting = (one for one in self.units if abs(_rounded(value / one[1], digits)) >= 1)
        return next(fitting, self.units[-1])

    def text(self, value: float | None, digits: int) -> str:
        if value is None or math.isnan(value):
            return NOT_KNOWN
        name, unit = self.unit(value, digits)
        return f"{number(value / unit, digits)} {name}"


_TIMES = _Scale((("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("ps", 1e-12)), "s")
_MEMORY = _Scale((("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0)), "B")
_TRAFFIC = _Scale((("GB", 1e9), ("MB", 1e6), ("KB", 1e3), ("B", 1.0)), "B")


def duration(seconds: float | None, digits: int = 3) -> str:
    """A time: "1.23 ms"."""
    return _TIMES.text(_no_less(seconds), digits)


def durations(values: Sequence[float | None], digits: int = 3) -> tuple[str, tuple[str, ...]]:
    """Several times in one unit, which suits the first that is neither unknown nor nothing: the unit, and the numbers."""
    clear = [_no_less(value) for value in values]
    name, unit = _TIMES.unit(next((v for v in clear if v and not math.isnan(v)), 0.0), digits)
    return name, tuple(NOT_KNOWN if v is None else number(v / unit, digits) for v in clear)


def size(bytes: float | None, digits: int = 3) -> str:
    """Memory: "64 KiB"."""
    return _MEMORY.text(bytes, digits)


def traffic(bytes: float | None, digits: int = 3) -> str:
    """What was sent: "12.5 MB"."""
    return _TRAFFIC.text(bytes, digits)


def rate(bytes_a_second: float | None, digits: int = 3) -> str:
    """A throughput: "1.4 GB/s"."""
    text = traffic(bytes_a_second, digits)
    return text if text == NOT_KNOWN else f"{text}/s"


def share(value: float | None) -> str:
    """A part of a whole, in whole percent but for what would look like nothing or all: "99.8%"."""
    if value is None or math.isnan(value):
        return NOT_KNOWN
    close = 0 < value < 0.01 or 0.99 < value < 0.9995
    return f"{value:.1%}" if close else f"{value:.0%}"


def in_seconds(value: float | None, digits: int = 3) -> str:
    """A time under a heading that says seconds. Less than half a nanosecond is 0."""
    if value is None:
        return NOT_KNOWN
    return "0" if abs(value) < 0.5e-9 else number(value, digits)


def number(value: float, digits: int = 3) -> str:
    """So many significant digits without an exponent, thousands apart: "0.00123", "12,345"."""
    if math.isnan(value):
        return NOT_KNOWN
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    rounded = f"{value:.{digits - 1}e}"
    places = digits - 1 - int(rounded.partition("e")[2])
    return f"{value:,.0f}" if places <= 0 else f"{float(rounded):,.{places}f}".rstrip("0").rstrip(".")


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _no_less(seconds: float | None) -> float | None:
    """Seconds, nothing where it is less than any clock can tell."""
    return 0.0 if seconds is not None and abs(seconds) < 0.5e-12 else seconds


def parsed_size(text: str) -> int:
    """Bytes of a size as people write it: "4GB", "512 MiB", "1.5g", "4096". K, M, G and T alone are powers of 1024.

    Raises RefusedError for anything else.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgt])(i?b)?|b)?\s*", text.lower(), re.ASCII)
    if found is None:
        raise RefusedError(f"{text!r}: expected a size, such as 4GB, 512MiB or a number of bytes.")
    number, unit, ending = found.groups()
    base = 1000 if ending == "b" else 1024
    return int(float(number) * base ** (" kmgt".index(unit) if unit else 0))
