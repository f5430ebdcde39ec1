"""Flags with which generated C has the bits of Python, where compilers are known to leave them."""

from __future__ import annotations

import platform
import re

_WITHOUT_PAIRS = "-fno-tree-slp-vectorize"
_WITHOUT_FUSING = ("-mno-fma", "-mno-avx512f")

# A double made a float and a double again: gcc 12 takes two of them side by side, as a vector, for doubles that stay as they are.
_NARROWED = re.compile(r"(?<!sizeof)\(float\)|lw_c64_c128|lw_(strip_)?(square|cube|fourth|root|inverse)_f32")
_WIDENED = re.compile(r"(?<!sizeof)\(double\)|lw_c128_c64")


def flags_to_try(source: str) -> tuple[tuple[str, ...], ...]:
    """More flags for generated C, to be tried one after the other until its machine code fuses nothing (``contraction``).

    Products of complex numbers would all be fused: they are compiled without such instructions from the beginning, and
    vectorised.
    """
    first: list[str] = []
    if "_Complex" in source and platform.machine() == "x86_64":
        first += _WITHOUT_FUSING
    if _NARROWED.search(source) and _WIDENED.search(source):
        first.append(_WITHOUT_PAIRS)
    return tuple(first), (_WITHOUT_PAIRS,), (_WITHOUT_PAIRS, "-fno-tree-loop-vectorize")
