"""Inner loops with and without checks of indices: random regions whose loops begin and end at, and whose indices hold, what is
computed on the way, have the bits of plain Python, or an error where it raises one.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from loading import load
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms

BOUNDS = (
    *("half", "half", "half, size", "size", "half // 2, half", "p[i]", "p[i], p[i + 1]", "half + 1"),
    *("half - 1, -1, -1", "size - 1, half - 1, -1", "half, half", "0, half, 2", "-half, half", "half, 0", "1, half"),
)
INDICES = (
    *(
        "j",
        "j",
        "2 * j",
        "2 * j + 1",
        "half + j",
        "half - j",
        "j - half",
        "j - 1",
        "j + 1",
        "size - 1 - j",
        "j - 2 * half",
    ),
    *("i", "half", "q[j]", "j * half", "3 - j", "size - 3 * j", "j % 3", "k", "j + k"),
)


@st.composite
def regions(draw: st.DrawFn) -> str:
    def one(*options: str) -> str:
        return draw(st.sampled_from(options))

    def element(arrays: str = "uuuv") -> str:
        array, index = one(*arrays), one(*INDICES)
        return f"u[{index}]" if array == "u" else f"v[{one('i', 'j', index)}, {one(*INDICES)}]"

    def body() -> list[str]:
        target, value = element(), f"{element()} {one('+', '-')} {element()}"
        match one("store", "store", "sum", "if", "break", "guarded", "counted", "choice"):
            case "sum":
                return [f"s = s + {element()}"]
            case "if":
                return [f"if {element()} > 0.5:", f"    {target} = {value}"]
            case "break":
                return [f"if {element()} > 1.5:", f"    {one('break', 'continue')}", f"{target} = {value}"]
            case "guarded":
                return [f"if 0 <= {one(*INDICES[:11])} < 4:", f"    {target} = {value}", f"u[{one(*INDICES[:4])}] = s"]
            case "counted":
                return [f"{target} = {value}", "k = k + 1"]
            case "choice":
                return [f"{target} = {element()} if {one('j > 1', 's > 1.0')} else {element()}"]
        return [f"{target} = {value}"]

    loops = []
    for _ in range(draw(st.integers(1, 2))):
        loops += [f"for j in range({one(*BOUNDS)}):", *(f"    {line}" for line in body())]
    lines = [
        "import numpy as np",
        "def region(u, v, p, q, size):",
        "    s = 0.0",
        "    k = 0",
        "    for i in range(3):",
    ]
    lines += [f"        half = size // {one('2', '2', '3', '1')}", *(f"        {line}" for line in loops)]
    return (
        "\n".join([*lines, f"        size = {one('half', 'size', 'size - 1', 'half + i')}", "    return s, k"]) + "\n"
    )


def arrays(seed: int, n: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    u, v = random.random(n) + random.integers(0, 2, n), random.random((max(3, n), n + seed % 3))
    return {"u": u, "v": v, "p": np.sort(random.integers(0, n, 4)), "q": random.integers(-1, n, n + 3)}


def region_of(function: object) -> lw.Nest:
    nest = lw.Nest(function)  # type: ignore[arg-type]
    nest.source = replace(nest.source, sequential=True)
    return nest


def check(data: st.DataObject) -> None:
    text, n = data.draw(regions(), label="region"), data.draw(st.sampled_from((1, 4, 9, 16, 33)), label="n")
    size = data.draw(st.sampled_from((n, n, n - 1, n // 2, n + 1, 0)), label="size")
    seed = data.draw(st.integers(0, 99), label="seed")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "region.py"
        path.write_text(text)
        function = load(path).region
        nest = region_of(function)
    expected, found = arrays(seed, n), arrays(seed, n)
    raised: Exception | None = None
    right = None
    try:
        right = function(**expected, size=size)
    except IndexError as error:
        raised = error
    try:
        result = nest(**found, size=size)
    except lw.RefusedError:
        return
    except lw.RunError as error:
        check_arrays(found, arrays(seed, n))
        if raised is None:
            raise AssertionError("the plain loop does not raise") from error
        return
    assert raised is None, f"the plain loop raises {raised!r}"
    check_arrays(found, expected)
    assert result == right


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(3000), first_seed())


def halved(u, v, size):
    for level in range(3):
        half = size // 2
        for j in range(half):
            v[j] = u[2 * j] + u[2 * j + 1]
            v[half + j] = u[2 * j] - u[2 * j + 1]
        for j in range(size - 1, -1, -1):
            u[j] = v[j]
        size = half


def every_other(u, v, size):
    for level in range(3):
        half = size // 2
        for j in range(half):
            v[j] = u[2 * j + 1]
        size = half


def last_versions(region: Callable[..., None]) -> list[int]:
    """How many indices the last inner loop checks, without and with checks at its ends."""
    nest = region_of(region)
    bound = nest.bind(nest.arguments(np.zeros(41), np.zeros(40), 40))
    text = tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])
    loops = text.partition(f"{region.__name__}_point(")[2].partition("lw_tile_compute")[0].split("lw_inside(")
    assert len(loops) > 4
    return [part.count("lw_lookup(") for part in loops[-1].split("} else {")[:2]]


def test_both_versions_are_there() -> None:
    assert last_versions(halved) == [0, 2]


def chosen(u, v, size):
    for level in range(3):
        half = size // 2
        for j in range(half):
            if u[half + j] > 0.5:
                v[j] = v[half + j] + u[j + 1]
        size = half


def test_what_is_touched_under_a_condition() -> None:
    """Where others always are it is checked with them; elsewhere, one by one."""
    assert last_versions(chosen) == [2, 4]


@pytest.mark.parametrize("region", [halved, every_other, chosen])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 40, 42])
def test_inside_and_outside(size: int, region: Callable[..., None]) -> None:
    random = np.random.default_rng(size)
    expected = {"u": random.random(41), "v": random.random(40)}
    found = {name: array.copy() for name, array in expected.items()}
    if size > 40:
        with pytest.raises(IndexError):
            region(**expected, size=size)
        with pytest.raises(lw.RunError):
            region_of(region)(**found, size=size)
        return
    region(**expected, size=size)
    region_of(region)(**found, size=size)
    check_arrays(found, expected)
