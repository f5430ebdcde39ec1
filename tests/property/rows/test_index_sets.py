"""Innermost loops that are split where conditions on indices are known: random ones have the bits of the plain loop, whatever the
conditions compare, in loops whose iterations are independent and in recurrences.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import in_form
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import forms_of, tile_source
from lapwing.tiling.faces import faces_of

COMPARED = ("i", "j", "j", "j", "j + 1", "j - 2", "3 - j", "j - i", "i + j", "j + k")
BOUNDS = ("0", "1", "2", "n - 1", "m - 1", "m - 2", "m", "k", "i", "i + 2", "i - k", "w[i]", "-3", "m // 2", "10**18")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
# Nothing outside of what the conditions around them allow, which are `i > 0 and j > 0`.
INDEPENDENT = (
    "0.0",
    "u[i, j]",
    "0.5 * (u[i - 1, j] + u[i, j])",
    "u[i, j - 1] + k",
    "u[i - 1, j - 1]",
    "-u[i, j]",
    "v[i - 1, j]",
)
RECURRENT = (
    "0",
    "h[i - 1, j - 1] + 1",
    "max(h[i - 1, j], h[i, j - 1])",
    "max(h[i, j - 1] - 2, u[i, j])",
    "h[i - 1, j]",
    "u[i, j]",
)


@st.composite
def nests(draw: st.DrawFn) -> str:
    is_recurrent = draw(st.booleans())
    target, values = ("h", RECURRENT) if is_recurrent else ("v", INDEPENDENT)

    def condition(depth: int = 2) -> str:
        if depth and draw(st.booleans()):
            joined = draw(st.sampled_from((" or ", " and ")))
            return f"({joined.join(condition(depth - 1) for _ in range(2))})"
        match draw(st.integers(0, 15)):
            case 0:
                return "u[i, j] > 1"
            case 1:
                return f"not {condition(0)}"
        one, other = draw(st.sampled_from(COMPARED)), draw(st.sampled_from(BOUNDS))
        one, other = (other, one) if draw(st.integers(0, 4)) == 0 else (one, other)
        return f"{one} {draw(st.sampled_from(COMPARISONS))} {other}"

    def value(at_border: bool = False) -> str:
        found = draw(st.sampled_from(values))
        return ("7" if is_recurrent else "u[i, j]") if at_border and "- 1" in found else found

    def block(depth: int) -> list[str]:
        kind = draw(st.integers(0, 3))
        if depth and kind:
            lines = [f"if {condition()}:", *(f"    {line}" for line in block(depth - 1))]
            return [*lines, "else:", *(f"    {line}" for line in block(depth - 1))]
        if draw(st.integers(0, 4)) == 0:
            return [f"x = {value()}", f"if {condition()}:", f"    x = {value()}", f"{target}[i, j] = x"]
        if draw(st.integers(0, 4)) == 0:
            return [f"{target}[i, j] = {value()} if {condition()} else {value()}"]
        return [f"{target}[i, j] = {value()}"]

    border = draw(st.sampled_from(("i == 0 or j == 0", "i < 1 or j < 1", "not (i > 0 and 0 < j)")))
    lines = [f"if {border}:", f"    {target}[i, j] = {value(True)}", "else:", *(f"    {line}" for line in block(2))]
    reduces = draw(st.sampled_from((None, None, "max")))
    inside = [*lines, *([] if reduces is None else [f"best = max(best, {target}[i, j])"])]
    columns = draw(st.sampled_from(("range(m)", "range(m)", "range(m)", "range(i, m)", "range(min(m, i + 9))")))
    head = ["import lapwing as lw", "@lw.nest", f"def nest({target}, u, w, k):", f"    n, m = {target}.shape"]
    head += [] if reduces is None else ["    best = -100"]
    loops = ["    for i in range(n):", f"        for j in {columns}:"]
    tail = [] if reduces is None else ["    return best"]
    return "\n".join([*head, *loops, *(f"            {line}" for line in inside), *tail]) + "\n"


def check(data: st.DataObject) -> None:
    text = data.draw(nests(), label="nest")
    tile = data.draw(st.none() | st.integers(1, 30), label="tile")
    kinds = st.tuples(st.integers(1, 9), st.integers(1, 40), st.integers(-3, 12), st.integers(0, 99))
    runs = data.draw(st.lists(kinds, min_size=1, max_size=8), label="rows, columns, k, seed")
    which = data.draw(st.integers(0, 99), label="form")
    nest = nest_of(text)
    for rows, columns, k, seed in runs:
        expected, found = (arguments(nest, rows, columns, k, seed) for _ in range(2))
        right = nest.python(**expected)
        try:
            bound, plan = nest.bind(found), nest.using(tile=tile).plan(**found)
        except lw.LapwingError:
            return  # an element that a condition on data alone keeps from being outside
        forms = [form for form in forms_of(bound, nest.dependences) if form.lanes == 1]
        outcome = run(nest, found, plan=in_form(plan, bound, forms[which % len(forms)]))
        check_arrays(found, expected)
        assert right is None or list(outcome.results.values()) == [right]


def arguments(nest: lw.Nest, rows: int, columns: int, k: int, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    target, u, w, scalar = nest.loops.parameters
    dtype = np.int64 if target == "h" else np.float64
    values = generator.integers(-5, 6, (2, rows, columns)).astype(dtype)
    return {target: values[0], u: values[1], w: generator.integers(-2, columns + 2, rows), scalar: k}


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def subsequence(c, x, y):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            if i == 0 or j == 0:
                c[i, j] = 0
            elif x[i - 1] == y[j - 1]:
                c[i, j] = c[i - 1, j - 1] + 1
            else:
                c[i, j] = max(c[i - 1, j], c[i, j - 1])


@lw.nest
def smoothed(v, u):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            if i == 0 or i == n - 1 or j == 0 or j == m - 1:
                v[i, j] = u[i, j]
            else:
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@lw.nest
def unknown(v, u, k):
    for i in range(v.shape[0]):
        for j in range(v.shape[1]):
            if (i + j) % 2 == k:
                v[i, j] = u[i, j]


@pytest.mark.parametrize(("nest", "is_split"), [(subsequence, True), (smoothed, True), (unknown, False)])
def test_which_loops_are_split(nest: lw.Nest, is_split: bool) -> None:
    arrays = {"v": np.zeros((9, 9)), "u": np.zeros((9, 9)), "c": np.zeros((9, 9), np.int64), "k": 1}
    arrays |= {"x": np.zeros(8, np.int64), "y": np.zeros(8, np.int64)}
    bound = nest.bind({name: arrays[name] for name in nest.loops.parameters})
    texts = [tile_source(bound, faces_of(bound), form) for form in forms_of(bound, nest.dependences) if form.lanes == 1]
    assert any("compute_interior" in text for text in texts) == is_split
