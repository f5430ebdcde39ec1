"""Which loops of a driver are the sweeps of one phased nest, and that they have the bits of plain Python."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusal_cases import load

from lapwing.api import sweeps as api_sweeps

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
    "the index is read after": swept(RELAX, BACK, after="return t"),
    "the index counts, and arrays change places": swept(RELAX.replace("0.25", "(0.25 + t)"), "u, v = v, u"),
    "phases of different loops": swept(RELAX, "for i in range(4):\n    u[i, 0] = v[i, 0]", "u[0, 0] = 1.0"),
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
    original: Callable[..., Any] = api_sweeps.run_phases_alone

    def run(*args: Any, **kwargs: Any) -> Any:
        runs.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(api_sweeps, "run_phases_alone", run)


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
