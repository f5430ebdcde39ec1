"""Statements under conditions in independent loops, which become values: random nests have the bits of the plain loop, also where
elements have several sizes."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hypothesis import strategies as st
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw

TESTS = "u[i] > 0.5|v[i] < w[i]|u[i] == v[i]|p > s|i % 3 == 0|w[i] > 0.2 and u[i] > 0.1|w[i] != w[i]".split("|")
VALUES = "u[i] / w[i]|v[i] * 2.0|s|p / v[i]|u[i] - p|(u[i] + s) / (v[i] - u[i])|0.0|abs(w[i])|p / t|x[i]".split("|")


# Of labels k, of a narrow type, and flags m beside the numbers.
NARROW_TESTS = (
    "k[i] == 2|m[i]|k[i] > k[i - 1]|k[i] < 1 or u[i] > 0.5|m[i] and not m[i - 1]|k[i] + k[i] > 3|k[i] != l[i]".split(
        "|"
    )
)
NARROW_VALUES = {
    "k[i]": "0|3|k[i] + 1|k[i] - l[i]|l[i]|k[i] * k[i]|-k[i]|l[i - 1] if u[i] > v[i] else k[i]".split("|"),
    "m[i]": "True|u[i] > v[i]|k[i] == 1|not m[i]".split("|"),
    "p": "u[i] * k[i]|k[i] if m[i] else u[i]|w[i] + l[i]".split("|"),
}


@st.composite
def nests(draw: st.DrawFn, is_mixed: bool) -> str:
    head = f"def nest(u, v, w, x, s, t{', k, l, m' if is_mixed else ''}):"
    lines = ["import lapwing as lw", "@lw.nest", head, "    for i in range(1, u.shape[0]):"]
    lines.append(f"        p = {draw(st.sampled_from(['u[i] + v[i]', 'w[i] / u[i]', 's']))}")
    lines += textwrap.indent("\n".join(draw(condition(2, is_mixed))), " " * 8).split("\n")
    lines.append(f"        x[i] = p + {draw(st.sampled_from(VALUES))}")
    return "\n".join(lines) + "\n"


@st.composite
def condition(draw: st.DrawFn, depth: int, is_mixed: bool) -> list[str]:
    tests = [*TESTS, *NARROW_TESTS * 2] if is_mixed else TESTS
    lines = [f"if {draw(st.sampled_from(tests))}:", *draw(arm(depth, is_mixed))]
    if draw(st.booleans()):
        lines += [f"elif {draw(st.sampled_from(tests))}:", *draw(arm(depth, is_mixed))]
    if draw(st.booleans()):
        lines += ["else:", *draw(arm(depth, is_mixed))]
    return lines


@st.composite
def arm(draw: st.DrawFn, depth: int, is_mixed: bool) -> list[str]:
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.integers(0, 3)) == 0:
            lines += draw(condition(depth - 1, is_mixed))
            continue
        if is_mixed and draw(st.booleans()):
            target = draw(st.sampled_from([*NARROW_VALUES]))
            lines.append(f"{target} = {draw(st.sampled_from(NARROW_VALUES[target]))}")
            continue
        target = draw(st.sampled_from(["u[i]", "v[i]", "x[i]", "p", "p"]))
        lines.append(f"{target} = {draw(st.sampled_from(VALUES))}")
    return [f"    {line}" for line in lines]


def check(data: st.DataObject) -> None:
    check_nest(data, is_mixed=False)


def check_mixed(data: st.DataObject) -> None:
    check_nest(data, is_mixed=True)


def check_nest(data: st.DataObject, is_mixed: bool) -> None:
    text = data.draw(nests(is_mixed), label="nest")
    nest = nest_of(text)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n = data.draw(st.sampled_from([1, 5, 37]))
    arrays = [rng.choice([0.0, -0.0, 0.25, 0.5, 0.75, 1.0, -2.0, np.inf], n) for _ in range(4)]
    dtype = data.draw(st.sampled_from(["float64", "float64", "float32"]) if is_mixed else st.just("float64"))
    arrays = [array.astype(dtype) for array in arrays]
    narrow = []
    if is_mixed:
        dtypes = [data.draw(st.sampled_from("int8|uint8|int16|int32|uint16|uint32".split("|"))) for _ in range(2)]
        ends = [[np.iinfo(d).min, np.iinfo(d).max, np.iinfo(d).max // 2 + 1] for d in dtypes]
        narrow = [rng.choice([0, 1, 2, 3, *end], n).astype(d) for d, end in zip(dtypes, ends, strict=True)]
        narrow.append(rng.integers(0, 2, n).astype(bool))
    mine, right = ([array.copy() for array in (*arrays, *narrow)] for _ in range(2))
    s, t = data.draw(st.sampled_from([(0.5, 2.0), (0.25, 0.125), (-1.0, 3.0)]))
    with np.errstate(all="ignore"):
        try:
            nest.python(*right[:4], s, t, *right[4:])
        except (OverflowError, ValueError):  # a number that an element does not hold
            return
    try:
        nest(*mine[:4], s, t, *mine[4:])
    except lw.RefusedError:
        assert is_mixed
        return
    for found, expected in zip(mine, right, strict=True):
        assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")
        if found.dtype.kind == "f":
            assert np.array_equal(np.signbit(found[~np.isnan(found)]), np.signbit(expected[~np.isnan(expected)]))


@pytest.mark.timeout(900)
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(6), first_seed())


@pytest.mark.timeout(900)
def test_bits_of_the_plain_loop_with_elements_of_several_sizes() -> None:
    search(check_mixed, wanted(12), first_seed())


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(2000), first_seed())


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_the_plain_loop_with_elements_of_several_sizes_at_length() -> None:
    search(check_mixed, wanted(2000), first_seed())
