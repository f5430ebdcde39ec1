"""Loops that are inspected before they run: random nests with divisors and indices that are looked up, inside and outside, have
the bits of the plain loop, or raise as it does and leave arrays as they were."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.errors import RefusedError

ROWS, WIDTH = 6, 12
SHIFTS = "w[i]|w[i] - 1|k|s|w[i - 1]".split("|")
INDICES = "j - {0}|j + {0}|{0} - j|2 * j - {0}|-j + {0}|{0}|w[j]|w[w[j]]".split("|")
TESTS = (
    "||if {0} <= j:|if j > {0} and i > 0:|if not (i == 0 or j < {0}):|if j + 1 < {0}:|if i > 0:"
    "|if b[i, j] > 1 and {0} > j:|if j != {0}:|if s > 2 or j - 1 >= {0}:|if a[i, j] > 3:"
).split("|")
BOUNDS = "w[i]|k|s|3|w[i - 1]".split("|")
RANGES = (
    "range({0}, {1})|range({1}, {0}, -1)|range({0}, {1}, 2)|range({1} - 1, {0} - 1, -1)|range(s, min({1}, n - i))"
    "|range(i, n)"
).split("|")
TARGETS = "a[i, j]|a[i, j]|a[i, {0}]|a[w[i], j]".split("|")
VALUES = (
    "b[i, {0}]|max(a[i, j], b[i, {0}])|a[i, {0}] + 1|b[i, {0}] / s|b[w[i], {0}] // d[i]|x % d[i]"
    "|b[i, {0}] if j > w[i] else b[i, j]|b[i, int(x / s)]|b[i, {0}] / d[i - 1]|b[i, {0}] // int(d[i])"
    "|b[i, {0}] if a[i, j] > 3 else int(x)|x // s"
).split("|")


@st.composite
def nests(draw: st.DrawFn) -> str:
    """An inner loop up or down, under conditions, at indices that are linear in its own or looked up again."""
    place = draw(st.sampled_from(INDICES)).format(draw(st.sampled_from(SHIFTS)))
    test = draw(st.sampled_from(TESTS)).format(draw(st.sampled_from(BOUNDS)))
    first, beyond = draw(st.sampled_from(["0", "w[i]", "1", "k"])), draw(st.sampled_from([str(WIDTH), "n", "w[i] + 3"]))
    target = draw(st.sampled_from(TARGETS)).format(place)
    value = draw(st.sampled_from(VALUES)).format(place)
    lines = ["import lapwing as lw", "@lw.nest", "def nest(a, b, w, d, s, x):", "    n = b.shape[1]"]
    lines.append(f"    for i in range({draw(st.sampled_from(['0', '1']))}, {ROWS}):")
    inside = [f"        for j in {draw(st.sampled_from(RANGES)).format(first, beyond)}:"]
    inside += [f"            {test}"] if test else []
    inside.append(f"            {'    ' if test else ''}{target} = {value}")
    if re.search(r"\bk\b", "\n".join(inside)):  # else the loops are nested perfectly
        lines.append(f"        k = {draw(st.sampled_from(['w[i]', 'i', 's']))}")
    lines += inside
    return "\n".join(lines) + "\n"


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    low, high = draw(st.sampled_from([(0, 4), (0, 4), (0, WIDTH), (-3, 4), (0, WIDTH + 2)]))
    return {
        "a": rng.integers(0, 9, (ROWS, WIDTH)),
        "b": rng.integers(0, 9, (ROWS, WIDTH)),
        "w": rng.integers(low, high, WIDTH),
        "d": rng.integers(draw(st.integers(0, 1)), 4, ROWS),
        "s": draw(st.integers(0, 4)),
        "x": draw(st.sampled_from([1, 7.5, 0.0])),
    }


done: Counter[str] = Counter()


def check(data: st.DataObject) -> None:
    text = data.draw(nests(), label="nest")
    nest = nest_of(text)
    for _ in range(4):
        mine = data.draw(arguments(), label="arguments")
        right = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in mine.items()}
        before = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in mine.items()}
        try:
            with np.errstate(all="ignore"):
                nest.python(**right)
        except (IndexError, ZeroDivisionError, ValueError, OverflowError):
            right = before
            with pytest.raises((lw.RunError, RefusedError)):
                nest(**mine)
            done["raised"] += 1
        else:
            try:
                nest(**mine)
            except RefusedError:
                right = before
                done["refused"] += 1
            done["runs"] += 1
        assert all(np.array_equal(mine[name], right[name]) for name in "abwd")


@pytest.mark.timeout(900)
def test_bits_and_errors_of_the_plain_loop() -> None:
    done.clear()
    search(check, wanted(8), first_seed())
    assert done["runs"] > done["refused"] * 2


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_and_errors_of_the_plain_loop_at_length() -> None:
    search(check, wanted(1500), first_seed())
