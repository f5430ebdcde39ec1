"""C identifiers for the names of a nest: the user's own wherever C allows."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    bool true false main asm typeof INFINITY NAN NULL isnan isinf isfinite floor ceil trunc fabs fabsf sqrt
    sqrtf copysign exp log sin cos tan pow y0 y1 yn j0 j1 jn gamma signgam div abs labs index
""".split()
)

# What generated code calls its own things.
_OWN = frozenset(
    """
    tile trap ignored from_end box out in lo hi array dense elements face x0 x1 x2 x3 x4 x5 x6 x7
""".split()
)

# Macros and types of the C headers that generated code includes: HUGE_VAL, INT64_MAX, FP_NAN, int64_t, signbit.
_OF_HEADERS = re.compile(
    r"lw_.*|(INT|UINT|FP|HUGE|MATH|SIZE|PTRDIFF|SIG|WCHAR|WINT)\w*_\w+|\w+_t|is(great|less|normal|unordered)\w*"
    r"|signbit|fpclassify|math_errhandling",
    re.IGNORECASE,
)


class Names:
    """Hands out C identifiers, the same one for the same key, never one twice."""

    def __init__(self) -> None:
        self._given: dict[object, str] = {}
        self._used: set[str] = set(_RESERVED | _OWN)

    def get(self, key: object, wanted: str) -> str:
        if key not in self._given:
            self._given[key] = self._fresh(wanted)
        return self._given[key]

    def _fresh(self, wanted: str) -> str:
        clean = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in wanted).strip("_") or "v"
        if clean[0].isdigit() or _OF_HEADERS.fullmatch(clean):
            clean = "v_" + clean
        name, number = clean, 2
        while name in self._used:
            name, number = f"{clean}_{number}", number + 1
        self._used.add(name)
        return name


@dataclass(frozen=True)
class PairNames:
    """What the C variables of the two innermost loops are called, gone through as blocks of rows: as here, unless the nest has
    such names."""

    block: str = "block"
    lanes: str = "lanes"
    begin: str = "begin"
    end: str = "end"
    starts: str = "from"
    stops: str = "until"
    first: str = "first"
    last: str = "last"
    all_from: str = "all_from"
    all_until: str = "all_until"
    step: str = "step"
    lane: str = "lane"
    row_from: str = "row_from"
    row_until: str = "row_until"
    beyond: str = "beyond"
    group: str = "group"
    left: str = "left"
    sweep: str = "sweep"
    sweeps: str = "sweeps"
    above: str = "above"
    below: str = "below"
    moved: str = "moved"
    rows: str = "rows"
    earlier: str = "earlier"
    opens: str = "opens"
    closes: str = "closes"
    traps: str = "traps"
    planes: str = "planes"
    length: str = "length"
    pitch: str = "pitch"
    kept: str = "kept"
    delay: str = "delay"
    further: str = "further"
    whole: str = "whole"
    lag: str = "lag"
    starts_at: str = "first_lane"
    here: str = "here"
    plane: str = "plane"
    current: str = "current"
    position: str = "position"
    idle: str = "idle"
    next: str = "next"
    fits: str = "fits"
    all_fit: str = "all_fit"
    same_fit: str = "same_fit"
    gap: str = "gap"
    full: str = "full"
    low: str = "low"
    high: str = "high"
    until: str = "stops"
    known: str = "known_lanes"
    known_above: str = "known_above"
