"""Python's integers that have no more than 64 bits in compiled loops, and as many as it takes where they have more: random
arithmetic in loops in their own order gives what the plain loop gives.

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

pytestmark = pytest.mark.usefixtures("little_optimised")
ENDS = (2**63 - 1, -(2**63), 2**62, -(2**62), 2**31, 2**50, 3037000500)
NUMBERS = st.one_of(st.integers(-9, 9), st.sampled_from(ENDS), st.integers(-(2**63), 2**63 - 1))


@st.composite
def expressions(draw: st.DrawFn, depth: int) -> str:
    """An integer of Python's."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(("x", "y", "int(a[k])", "int(b[k])", "k", "n", "3", "1664525", "2**31")))
    one, other = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    kind = draw(st.integers(0, 11))
    if kind < 7:
        return f"({one} {'+-*+-*^'[kind]} {other})"
    if kind == 7:
        return f"(-{one})"
    if kind == 8:
        return f"abs({one})"
    if kind == 9:
        return f"({one} & {draw(st.sampled_from(('255', '0xFFFFFFFF', '(2**50 - 1)')))})"
    if kind == 10:
        return f"({one} % {draw(st.sampled_from(('7', '1000003', '2**31', '-5')))})"
    return f"({draw(st.sampled_from(('min', 'max')))}({one}, {other}))"


@st.composite
def bodies(draw: st.DrawFn) -> str:
    indent, found = "        ", []
    for _ in range(draw(st.integers(1, 4))):
        kind, value = draw(st.integers(0, 4)), draw(expressions(draw(st.integers(1, 3))))
        if kind == 0:
            found.append(f"{indent}out[k] = {value} % 1009")
        elif kind == 1:
            found += [f"{indent}if {value} < {draw(expressions(1))}:", f"{indent}    out[k] += 1"]
        elif kind == 2:
            found += [
                f"{indent}for j in range(({value}) % 5 - 1, {draw(expressions(1))} % 4):",
                f"{indent}    out[k] += j",
            ]
        else:
            found.append(f"{indent}{draw(st.sampled_from('xy'))} = {value}")
    return "\n".join([*found, f"{indent}out[k] += x % 1009 + y % 1009"])


def check(data: st.DataObject) -> None:
    body = data.draw(bodies(), label="body")
    text = (
        "import lapwing as lw\n@lw.nest\ndef nest(a, b, out, n, x):\n    y = n\n"
        f"    for k in range(a.shape[0]):\n{body}\n    return x, y\n"
    )
    a, b = (data.draw(st.lists(NUMBERS, min_size=3, max_size=3), label=name) for name in "ab")
    n, x = (data.draw(st.one_of(st.integers(-9, 9), st.just(2**40)), label=name) for name in "nx")
    kind = data.draw(st.sampled_from(("int64", "float64")), label="type")
    nest = nest_of(text)

    def arguments() -> dict[str, Any]:
        return {"a": np.array(a, np.int64), "b": np.array(b, np.int64), "out": np.zeros(3, kind), "n": n, "x": x}

    expected, found = arguments(), arguments()
    right = nest.python(**expected)
    try:
        result = nest(**found)
    except lw.RefusedError:
        return
    check_arrays(found, expected)
    assert result == right


def test_what_the_plain_loop_does() -> None:
    search(check, wanted(8), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_the_plain_loop_does_at_length() -> None:
    search(check, wanted(4000), first_seed())
