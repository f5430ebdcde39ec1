"""Loops that add to elements they look up, behind what they compute of others: random programs with the bits of the plain loop,
and its errors.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw

PLACES = (
    "int(v * n)",
    "int(v * n) % n",
    "k[i, j]",
    "k[i, j] % n",
    "abs(k[i, j] - 2)",
    "c",
    "c // 2",
    "min(max(c, 0), n - 1)",
)
VALUES = ("1", "v", "v * v - w", "0.5 if v > w else 2.0", "w / 3.0")
UPDATES = (
    "h[{0}] += {1}",
    "h[{0}] = max(h[{0}], {1})",
    "g[{0}, {2}] += {1}",
    "h[{0}] += {1}\nh[{2}] += 1",
    "h[{0}] = {1}",
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    one, other = draw(st.sampled_from(PLACES)), draw(st.sampled_from(PLACES))
    update = draw(st.sampled_from(UPDATES)).format(one, draw(st.sampled_from(VALUES)), other).split("\n")
    lines = ["v = x[i, j]", "w = y[i, j] * 0.25 + v"]
    lines += [
        line for number in range(draw(st.integers(1, 4))) for line in (f"c{number} = 1 if v > {number}.0 else 0",)
    ]
    lines += ["c = 0", "if v > w:", "    c |= 1", "if y[i, j] >= v:", "    c |= 2"]
    if draw(st.booleans()):
        update = [
            f"if {draw(st.sampled_from(('v > 0.25', '0 <= c < 2', 'k[i, j] != 0')))}:",
            *(f"    {s}" for s in update),
        ]
    stored = ["z[i, j] = v - c"]
    before, behind = draw(st.sampled_from((([], []), (stored, []), ([], stored))))
    lines += [*before, *update, *behind]
    head = ["import lapwing as lw", "@lw.nest", "def nest(x, y, k, z, h, g, n, m):"]
    loops = ["for i in range(x.shape[0]):", "    for j in range(m):", *(f"        {line}" for line in lines)]
    return "\n".join([*head, *(f"    {line}" for line in loops)]) + "\n"


def arguments(seed: int, m: int, n: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    x = random.random((3, m))
    if seed % 4 == 0 and m:
        x[random.integers(3), random.integers(m)] = random.choice((np.nan, np.inf, -0.0, 1.0, -0.3, 1e300))
    whole = random.integers(0, n, (3, m)) if seed % 3 else random.integers(-n, n + 1, (3, m))
    return {
        "x": x, "y": random.standard_normal((3, m)), "k": whole.astype(random.choice(("int64", "int32", "uint8"))),
        "z": np.zeros((3, m)), "h": np.zeros(n), "g": np.zeros((n, n)), "n": n, "m": m,
    }  # fmt: skip


def check(data: st.DataObject) -> None:
    text = data.draw(programs(), label="program")
    seed = data.draw(st.integers(0, 999), label="seed")
    m, n = (
        data.draw(st.sampled_from((0, 1, 7, 64, 300, 600)), label="m"),
        data.draw(st.sampled_from((1, 4, 9)), label="n"),
    )
    nest = nest_of(text)
    given, expected, found = (arguments(seed, m, n) for _ in range(3))
    with np.errstate(all="ignore"):
        try:
            nest.python(**expected)
        except (IndexError, ValueError, OverflowError):
            with pytest.raises(lw.LapwingError):
                nest(**found)
            check_arrays(found, given)
            return
    try:
        nest(**found)
    except (lw.RefusedError, lw.RunError):  # of NumPy's integers that may wrap, and of what NumPy only warns of
        return
    check_arrays(found, expected)


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())
