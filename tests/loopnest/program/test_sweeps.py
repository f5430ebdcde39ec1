"""Which loops of a driver are the sweeps of one phased nest, and that they have the bits of plain Python."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusal_cases import load

from lapwing.loopnest.program import short_loops
from lapwing.loopnest.program.sweeps import Sweeps
from lapwing.runtime.phased_alone import PreparedPhases
from lapwing.tiling.phased import fusion

pytestmark = pytest.mark.usefixtures("little_optimised")

RELAX = """
for i in range(1, u.shape[0] - 1):
    for j in range(1, u.shape[1] - 1):
        v[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
"""
BACK = """
for i in range(u.shape[0] - 2, 0, -1):
    for j in range(u.shape[1] - 2, 0, -1):
        u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + v[i, j + 1])
"""
EDGE = """
for j in range(u.shape[1]):
    u[0, j] = v[1, j]
"""


def swept(*parts: str, after: str = "", before: str = "", head: str = "for t in range(n):") -> str:
    inside = "".join(textwrap.indent(textwrap.dedent(part).strip("\n") + "\n", "    ") for part in parts)
    text = f"{before}\n{head}\n{inside}{after}\n"
    return "@lw.nest\ndef f(u, v, n=3):\n" + textwrap.indent(text, "    ")


def arrays() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.random((9, 8)), random.random((9, 8))


def made(source: str, directory: Path) -> Any:
    return load(source, directory / "nests.py").f


SWEEPS = {  # with the number of phases of a sweep
    "one after the other": (swept(RELAX, BACK), 2),
    "arrays that change places": (swept(RELAX, "u, v = v, u", after="return u"), 2),
    "three phases, and arrays that change places": (swept(RELAX, BACK, RELAX, "u, v = v, u"), 6),
    "a number that nothing reads": (swept("for c in (0, 1):\n" + textwrap.indent(RELAX, "    ")), 2),
    "bounds of the sweeps": (swept(RELAX, BACK, head="for t in range(1, 2 * n, 2):"), None),
}
OTHERS = {
    "a statement between": swept(RELAX, "x = u[1, 1]", BACK),
    "the index counts, and arrays change places": swept(RELAX.replace("0.25", "(0.25 + t)"), "u, v = v, u"),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_bits_of_plain_python(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, phases = SWEEPS[name]
    nest = made(source, tmp_path)
    runs: list[int] = []
    counted(monkeypatch, runs)
    for n in range(5):
        mine, plain = arrays(), arrays()
        returned, expected = nest(*mine, n), nest.python(*plain, n)
        assert all(np.array_equal(x, y) for x, y in zip(mine, plain, strict=True)), n
        assert (returned is None) == (expected is None)
        assert expected is None or np.array_equal(returned, expected)
    if phases is None:
        return
    assert [len(loop.phases) for loop in nest.program.program.sweeps] == [phases]
    assert runs, "no sweep ran through one pipeline"


def counted(monkeypatch: pytest.MonkeyPatch, runs: list[int]) -> None:
    monkeypatch.setattr(short_loops, "BUDGET", 0)  # or regions are compiled with the loop around them
    monkeypatch.setattr(
        Sweeps, "is_loop", True
    )  # or nests that are done once are called one by one where there are no ranks
    original: Callable[..., Any] = PreparedPhases.run

    def run(*args: Any, **kwargs: Any) -> Any:
        runs.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(PreparedPhases, "run", run)


FORWARD = """
for i in range(1, u.shape[0] - 1):
    for j in range(1, u.shape[1] - 1):
        v[i, j] = 0.25 * (w[i - 1, j] + u[i, j - 1] + u[i + 1, j] + w[i, j + 1])
"""
BACKWARD = """
for i in range(u.shape[0] - 2, 0, -1):
    for j in range(1, u.shape[1] - 1):
        u[i, j] = 0.5 * (v[i + 1, j] - v[i, j])
"""
FUSIONS = {
    "copied": swept("w = u.copy()", FORWARD, "u[1, 2] += v[1, 3]"),
    "three arrays that change places": swept(FORWARD, "u, v, w = v, w, u", before="w = u.copy()", after="return w"),
    "by a third name": swept(FORWARD, BACKWARD, "held = u", "u = v", "v = held", before="w = u.copy()"),
    "single elements": swept(FORWARD, "u[0, 0] = v[1, 1]", "i = 3", "v[i, 2] = 0.5 * v[i - 1, 2] + t", before="w = u.copy()"),
    "slices": swept("w = np.copy(v)", FORWARD, "u[:, 0] = v[:, 1]", "v[-1] = 0.25", "u[:] = v", BACKWARD),
    "several elements of one value": swept(BACKWARD, "v[0, 0] = v[8, 7] = 2.0", FORWARD, before="w = v.copy()"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSIONS)
def test_fused_loops_have_the_bits_of_plain_python(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size, value in (("cached_bytes", lambda: 0), ("BLOCK_BYTES", 128), ("room_bytes", lambda: 4096)):
        monkeypatch.setattr(fusion, size, value)
    runs: list[int] = []
    counted(monkeypatch, runs)
    nest = made("import numpy as np\n" + FUSIONS[name], tmp_path)
    for n in range(8):
        mine, plain = arrays(), arrays()
        returned, expected = nest(*mine, n), nest.python(*plain, n)
        assert all(np.array_equal(x, y) for x, y in zip(mine, plain, strict=True)), n
        assert np.array_equal(returned, expected) if expected is not None else returned is None
    assert len(nest.program.program.fusions + nest.program.program.sweeps) == 1
    assert runs, "no sweep was fused"


@pytest.mark.parametrize("name", OTHERS)
def test_loops_that_are_none(name: str, tmp_path: Path) -> None:
    nest = made(OTHERS[name], tmp_path)
    assert nest.program.program.sweeps == ()
    mine, plain = arrays(), arrays()
    assert nest(*mine, 3) == nest.python(*plain, 3)
    assert all(np.array_equal(x, y) for x, y in zip(mine, plain, strict=True))


def test_arrays_that_share_memory(tmp_path: Path) -> None:
    """They are refused as they are by the regions themselves."""
    nest = made(swept(RELAX, BACK), tmp_path)
    u, _ = arrays()
    with pytest.raises(Exception, match="share memory"):
        nest(u, u[::-1], 2)


WORST = """
for i in range(1, u.shape[0] - 1):
    for j in range(1, u.shape[1] - 1):
        worst = max(worst, abs(u[i, j] - v[i, j]))
        u[i, j] = v[i, j]
"""


def in_function(*parts: str, after: str = "") -> str:
    text = "".join(textwrap.dedent(part).strip("\n") + "\n" for part in parts)
    return "@lw.nest\ndef f(u, v, n=3):\n" + textwrap.indent(f"{text}{after}\n", "    ")


def while_loop(*parts: str) -> str:
    inside = "".join(textwrap.indent(textwrap.dedent(part).strip("\n") + "\n", "    ") for part in parts)
    return f"worst = 1.0\ncount = 0\nwhile worst > 0.02 and count < 9:\n    count += 1\n{inside}"


LEAST = RELAX.replace("v[i, j] =", "least = min(least, v[i, j])\n        v[i, j] =")

RUNS = {  # with the number of phases of each
    "in a loop whose index is read after it": (swept(RELAX, BACK, after="return t"), [2]),
    "in a loop with more behind them": (swept(RELAX, "for i in range(4):\n    u[i, 0] = v[i, 0]", "u[0, 0] = 1.0"), [2]),
    "one behind the other": (in_function(RELAX, BACK), [2]),
    "three, and something behind them": (in_function(RELAX, BACK, EDGE, "u[1, 1] = 2.0", RELAX, BACK), [3, 2]),
    "until it converges": (in_function(while_loop("worst = 0.0", RELAX, WORST), after="return worst, count"), [2]),
    "a number between": (in_function(while_loop(RELAX, "worst = 0.0", WORST), after="return worst"), [2]),
    "with two reductions": (
        in_function("worst, least = 0.0, 9.0", WORST, LEAST, after="return worst, least"), [2]),
}  # fmt: skip
NO_RUNS = {
    "the reduction is read": in_function(
        "worst = 0.0",
        WORST,
        "for i in range(9):\n    for j in range(8):\n        v[i, j] = worst",
        after="return worst",
    ),
    "a scalar that changes": in_function(
        "x = 1.0\nfor t in range(n):\n    x = x + v[1, 1]\n"
        + textwrap.indent(RELAX.replace("0.25", "x") + BACK.replace("0.25", "x"), "    "),
        after="return x",
    ),
    "something between": in_function(RELAX, "u[1, 1] = v[2, 2]", BACK),
}


@pytest.mark.parametrize("name", RUNS)
def test_nests_one_behind_the_other_are_one_sweep(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, phases = RUNS[name]
    monkeypatch.setattr(short_loops, "BUDGET", -1)  # so small nests would be compiled with the loop around them
    nest = made(source, tmp_path)
    runs: list[int] = []
    counted(monkeypatch, runs)
    mine, plain = arrays(), arrays()
    returned, expected = nest(*mine), nest.python(*plain)
    assert (returned, type(returned)) == (expected, type(expected))
    assert all(np.array_equal(x, y) for x, y in zip(mine, plain, strict=True))
    assert [len(loop.phases) for loop in nest.program.program.sweeps] == phases
    assert runs, "no sweep ran through one pipeline"


@pytest.mark.parametrize("name", NO_RUNS)
def test_nests_that_are_no_run(name: str, tmp_path: Path) -> None:
    nest = made(NO_RUNS[name], tmp_path)
    assert nest.program.program.sweeps == ()
    mine, plain = arrays(), arrays()
    assert nest(*mine) == nest.python(*plain)
    assert all(np.array_equal(x, y) for x, y in zip(mine, plain, strict=True))
