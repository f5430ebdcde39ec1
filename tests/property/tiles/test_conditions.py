"""Statements under conditions in independent loops, which become values: random nests have the bits of the plain loop."""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from loading import load
from randomness import first_seed, wanted
from searching import search

TESTS = "u[i] > 0.5|v[i] < w[i]|u[i] == v[i]|p > s|i % 3 == 0|w[i] > 0.2 and u[i] > 0.1|w[i] != w[i]".split("|")
VALUES = "u[i] / w[i]|v[i] * 2.0|s|p / v[i]|u[i] - p|(u[i] + s) / (v[i] - u[i])|0.0|abs(w[i])|p / t|x[i]".split("|")


@st.composite
def nests(draw: st.DrawFn) -> str:
    lines = ["import lapwing as lw", "@lw.nest", "def nest(u, v, w, x, s, t):", "    for i in range(u.shape[0]):"]
    lines.append(f"        p = {draw(st.sampled_from(['u[i] + v[i]', 'w[i] / u[i]', 's']))}")
    lines += textwrap.indent("\n".join(draw(condition(2))), " " * 8).split("\n")
    lines.append(f"        x[i] = p + {draw(st.sampled_from(VALUES))}")
    return "\n".join(lines) + "\n"


@st.composite
def condition(draw: st.DrawFn, depth: int) -> list[str]:
    lines = [f"if {draw(st.sampled_from(TESTS))}:", *draw(arm(depth))]
    if draw(st.booleans()):
        lines += [f"elif {draw(st.sampled_from(TESTS))}:", *draw(arm(depth))]
    if draw(st.booleans()):
        lines += ["else:", *draw(arm(depth))]
    return lines


@st.composite
def arm(draw: st.DrawFn, depth: int) -> list[str]:
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.integers(0, 3)) == 0:
            lines += draw(condition(depth - 1))
        else:
            target = draw(st.sampled_from(["u[i]", "v[i]", "x[i]", "p", "p"]))
            lines.append(f"{target} = {draw(st.sampled_from(VALUES))}")
    return [f"    {line}" for line in lines]


def check(data: st.DataObject) -> None:
    text = data.draw(nests(), label="nest")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(text)
        nest = load(path).nest
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n = data.draw(st.sampled_from([1, 5, 37]))
    arrays = [rng.choice([0.0, -0.0, 0.25, 0.5, 0.75, 1.0, -2.0, np.inf], n) for _ in range(4)]
    mine, right = ([array.copy() for array in arrays] for _ in range(2))
    s, t = data.draw(st.sampled_from([(0.5, 2.0), (0.25, 0.125), (-1.0, 3.0)]))
    with np.errstate(all="ignore"):
        nest.python(*right, s, t)
    nest(*mine, s, t)
    for found, expected in zip(mine, right, strict=True):
        assert np.array_equal(found, expected, equal_nan=True)
        assert np.array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(expected)]))


@pytest.mark.timeout(900)
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(12), first_seed())


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(2000), first_seed())
