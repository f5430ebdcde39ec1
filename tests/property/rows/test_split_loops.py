"""Loops split at the one iteration that stores what others look at: random nests in their own order have the bits of the plain
loop.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms

DTYPES = ("float64", "float64", "int64", "int32", "float32", "uint8")
BESIDE = ("d[i, k]", "d[i, k]", "d[i, k]", "d[i, k + 1]", "d[i, 2]", "d[k, k]", "e[i, k]", "e[k, k]", "x[k]", "d[0, k]")
OWN = (
    "d[k, j]",
    "d[k, j]",
    "d[i, j]",
    "d[i + 1, j]",
    "e[k, j]",
    "e[i, j]",
    "x[j]",
    "j",
    "d[k, j + 1]",
    "d[i, j + 1]",
    "d[i, j - 1]",
)
TARGETS = ("d[i, j]", "d[i, j]", "d[i, j]", "d[i, j + 1]", "d[i + 1, j]", "e[i, j]", "d[i, n - j]", "d[j, i]")
BOUNDS = (
    "n",
    "n",
    "n",
    "k, n",
    "k + 1",
    "k + 1, n",
    "k + 1, n",
    "k",
    "1, n",
    "k",
    "i, n",
    "max(0, k - 2), min(n, k + 3)",
    "5, 2",
    "n - 1, -1, -1",
    "0, n, 2",
)


@st.composite
def bodies(draw: st.DrawFn) -> list[str]:
    def one(*options: str) -> str:
        return draw(st.sampled_from(options))

    own, beside, target = one(*OWN), one(*BESIDE), one(*TARGETS)
    value = one("{0} + {1}", "{1} - {0}", "min({0}, {1})", "{1} * {0} + {2}", "({0} if {1} > {2} else {1})").format(
        own, beside, one(*OWN, *BESIDE)
    )
    match one("store", "shorter", "shorter", "two", "index", "early"):
        case "store":
            return [f"{target} = {value}"]
        case "shorter":
            return [
                f"v = {value}",
                f"if v < {one(target, own)}:",
                f"    {target} = v",
                f"    s[i, j] = {one('s[i, k]', 'k')}",
            ]
        case "two":
            return [f"{target} = {value}", f"{one(*TARGETS)} = {one(*BESIDE)} - {one(*OWN)}"]
        case "index":
            return [f"if j {one('!=', '<', '>')} k:", f"    {target} = {value}"]
        case _:
            return [f"if {own} > {beside}:", "    continue", f"{target} = {value}"]


@st.composite
def nests(draw: st.DrawFn) -> str:
    lines = [f"for j in range({draw(st.sampled_from(BOUNDS))}):", *(f"    {line}" for line in draw(bodies()))]
    head = [
        "import numpy as np",
        "import lapwing as lw",
        "@lw.nest",
        "def nest(d, e, s, x, n):",
        "    for k in range(n):",
    ]
    head += ["        x[k] = x[k] + d[k, k]", "        for i in range(n):"]
    return "\n".join([*head, *(f"            {line}" for line in lines)]) + "\n"


def arrays(seed: int, n: int, dtype: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)

    def made(*shape: int) -> np.ndarray:
        if dtype.startswith("float"):
            few = random.choice((0.0, -0.0, 1.0, np.nan, np.inf, 5e-324), shape)
            return np.where(random.random(shape) < 0.1, few, random.standard_normal(shape)).astype(dtype)
        return random.integers(0, 9, shape).astype(dtype)

    return {"d": made(n + 3, n + 3), "e": made(n + 3, n + 3), "s": np.zeros((n, n + 3), np.int64), "x": made(n + 3)}


def check(data: st.DataObject) -> None:
    text, dtype = data.draw(nests(), label="nest"), data.draw(st.sampled_from(DTYPES), label="dtype")
    n, seed = (
        data.draw(st.sampled_from((1, 2, 3, 7, 9, 17, 20)), label="n"),
        data.draw(st.integers(0, 99), label="seed"),
    )
    nest = nest_of(text)
    expected, found = arrays(seed, n, dtype), arrays(seed, n, dtype)
    with np.errstate(all="ignore"):
        try:
            nest.python(**expected, n=n)
        except (IndexError, OverflowError):
            return
    try:
        nest(**found, n=n)
    except (lw.RefusedError, lw.RunError):  # the latter where NumPy's result would be undefined
        return
    check_arrays(found, expected)


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(3000), first_seed())


@lw.nest
def shortest(d, s):
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                through = d[i, k] + d[k, j]
                if through < d[i, j]:
                    d[i, j] = through
                    s[i, j] = s[i, k]


@lw.nest
def swept(d, s):
    """Each iteration goes on with what the one before it has stored."""
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(1, d.shape[0]):
                d[i, j] = 0.5 * d[i, j - 1] + s[k, j]
                s[i, j] = k


@lw.nest
def at_two_places(d, s):
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                d[i, j] = 0.5 * (d[i, k] - d[i, 0] + d[k, j])
                s[i, j] = k


@pytest.mark.parametrize("nest", [shortest, swept, at_two_places])
@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_weak_zero_dependences(nest: lw.Nest, n: int) -> None:
    random = np.random.default_rng(n)
    expected = {"d": random.random((n, n)) - 0.5 * (n == 9), "s": np.tile(np.arange(n), (n, 1))}
    found = {name: array.copy() for name, array in expected.items()}
    nest.python(**expected)
    nest(**found)
    check_arrays(found, expected)
    region = lw.Nest(nest.python)
    region.source = replace(region.source, sequential=True)
    bound = region.bind(region.arguments(**expected))
    text = tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])
    _, _, inside = text.partition("for (int64_t i =")
    assert ("#pragma GCC ivdep" in inside.partition("lw_tile_compute")[0]) == (nest is shortest)
