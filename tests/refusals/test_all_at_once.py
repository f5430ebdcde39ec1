"""Everything refused of a nest is said at once, and nothing that only follows from something else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusal_cases import HEADING, grid_of, load, two_loops

import lapwing as lw
from lapwing.cli.main import main


def many(source: str, tmp_path: Path, *arguments: Any) -> lw.RefusedError:
    nest = load(source, tmp_path / "their.py").f
    with pytest.raises(lw.RefusedError) as refusal:
        nest(*arguments)
    return refusal.value


def check_marked_lines(source: str, tmp_path: Path, *arguments: Any) -> None:
    """Refused are the lines that are marked, each as often as its mark says."""
    error = many(source, tmp_path, *arguments)
    lines = (HEADING + source).splitlines()
    marked = [number for number, line in enumerate(lines, 1) for _ in range(line.count("<-"))]
    assert [refusal.line for refusal in error.refusals] == marked, str(error)
    assert str(error).splitlines() == [refusal.text for refusal in error.refusals]
    assert all(refusal.text.startswith(f"{refusal.file}:{refusal.line}: ") for refusal in error.refusals)


PROBLEM = "\n\n@f.problem\ndef problem():\n    return dict(u=np.ones((5, 6)))\n"
PARSED: dict[str, str] = {
    "two statements": two_loops("u[i, j] = np.round(u[i, j])  # <-\nu[i, j] = u[i, :]  # <-"),
    "two parts of an expression": two_loops("u[i, j] = np.round(u[i, j]) + u[i, :] * U[i]  # <-<-<-"),
    "arguments of a call": two_loops("u[i, j] = max(np.round(u[i, j]), [1])  # <-<-"),
    "values of several targets": two_loops("a, b = np.round(u[i, j]), u[i, :]  # <-<-\nu[i, j] = a + b"),
    "both sides": two_loops("u[i, u.foo] = foo  # <-<-"),
    "indices": two_loops("u[foo, bar] = 1.0  # <-<-"),
    "a refused temporary": two_loops("a = np.round(u[i, j])  # <-\nb = a + 1.0\nu[i, j] = a * b"),
    "a temporary set in an if": two_loops("if u[i, j] > foo:  # <-\n    a = 1.0\nu[i, j] = a"),
    "temporaries of a loop": two_loops("while foo > 0:  # <-\n    a, b = 1.0, 2.0\nu[i, j] = a + b"),
    "a module imported in the body": two_loops("import cmath  # <-\nu[i, j] = cmath.pi + cmath.exp(1.0)"),
    "a function defined before": two_loops("u[i, j] = g(u[i, j])  # <-", before="def g(x):\n    return x"),
    "before, inside and after": two_loops("u[i, j] = U[i, j]  # <-", before="import math", after="print(u)\nreturn u"),
    "an index that is no name": (
        "@lw.nest\ndef f(u, v):\n    for i in range(5):\n        for k, l in zip(u, v):  # <-\n            u[i, k] = v[l]\n"
    ),
    "a bound and the body": (
        "@lw.nest\ndef f(u, v):\n    for i in range(5):\n        for j in range(i * i):  # <-\n            u[i, j] = U[i]  # <-\n"
    ),
    "statements beside a loop": (
        "@lw.nest\ndef f(u, w):\n    for i in range(5):\n        s = foo  # <-\n        u[i, 0] = bar  # <-\n"
        "        for j in range(6):\n            u[i, j] = s + t  # <-\n"
    ),
    "two written arrays": two_loops("u[j, 2*i] = 1.0  # <-\nv[j, 2*i] = 1.0  # <-", "u, v"),
    "the signature": two_loops("u[i, j] = U[i]  # <-", "u, *a, **b").replace(
        "def f(u, *a, **b):", "def f(u, *a, **b):  # <-<-"
    ),
}


@pytest.mark.parametrize("name", PARSED)
def test_of_the_source(name: str, tmp_path: Path) -> None:
    check_marked_lines(PARSED[name], tmp_path, grid_of(), grid_of(5))


TYPED: dict[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
    "two statements": (two_loops("u[i, j] = ~u[i, j]  # <-\nu[i, j] = i ** j  # <-"), lambda: (grid_of(),)),
    "two operands": (two_loops("u[i, j] = ~u[i, j] + (i ** 30) * -(i > j)  # <-<-<-"), lambda: (grid_of(),)),
    "a refused temporary": (two_loops("a = ~u[i, j]  # <-\nb = a + 1\nu[i, j] = b"), lambda: (grid_of(),)),
    "branches and test": (
        two_loops("u[i, j] = ~u[i, j] if i ** j > 0 else -(i > j)  # <-<-<-"), lambda: (grid_of(),),
    ),
    "arrays": (
        two_loops("u[i, j] = v[i, j] + w[i]", "u, v, w").replace("def f(u, v, w):", "def f(u, v, w):  # <-<-<-"),
        lambda: (grid_of(dtype="clongdouble"), [1.0], None),
    ),
    "memory that is shared": (
        two_loops("u[i, j] = v[i, j] + w[i, j]", "u, v, w").replace("def f(u, v, w):", "def f(u, v, w):  # <-<-"),
        lambda: (u := grid_of(), u, u[::-1]),
    ),
    "scalars": (
        two_loops("u[i, j] = a + b", "u, a, b").replace("def f(u, a, b):", "def f(u, a, b):  # <-<-"),
        lambda: (grid_of(), "x", None),
    ),
    "a refused scalar set before": (
        two_loops("u[i, j] = c + 1.0", "u, a", "b = a / 0  # <-\nc = b + 1\nd = c * 2"), lambda: (grid_of(), 1),
    ),
    "a refused size": (
        two_loops("u[i, j] = w[n]", "u, w", "n = len(w)").replace("def f(u, w):", "def f(u, w):  # <-"),
        lambda: (grid_of(), [1.0]),
    ),
    "indices out of bounds": (two_loops("u[i, j] = u[i+5, j] + u[i, j-9]  # <-<-"), lambda: (grid_of(),)),
    "dimensions and bounds": (
        two_loops("u[i, j] = c[i, j]  # <-\nu[i, j] = u[i+5, j] + c[i, 0]  # <-<-", "u, c"), lambda: (grid_of(), grid_of(5)),
    ),
    "bounds and types": (two_loops("u[i, j] = ~u[i+5, j]  # <-<-"), lambda: (grid_of(),)),
    "bounds of loops": (
        "@lw.nest\ndef f(u, n, m):\n    for i in range(n):  # <-\n        for j in range(m):  # <-\n            u[i, j] = 1.0\n",
        lambda: (grid_of(), 1.5, 2.5),
    ),
    "a reduction": (
        two_loops("s += u[i, j]\nbest = max(best, ~u[i, j])  # <-", before="s = None  # <-\nbest = 0", after="return s, best"),
        lambda: (grid_of(),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_of_the_call(name: str, tmp_path: Path) -> None:
    source, arguments = TYPED[name]
    check_marked_lines(source, tmp_path, *arguments())


def test_the_command_line_shows_them_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "their.py"
    path.write_text(HEADING + PARSED["two statements"] + PROBLEM)
    with pytest.raises(SystemExit) as end:
        main(["plan", str(path)])
    assert end.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["lapwing", "lapwing"]


def test_errors_travel_between_ranks_whole(tmp_path: Path) -> None:
    error = many(PARSED["two statements"], tmp_path, grid_of())
    again = pickle.loads(pickle.dumps(error))
    assert again.refusals == error.refusals
    assert str(again) == str(error)


def test_an_error_about_no_line_has_one_refusal() -> None:
    nest = lw.nest(_halve)
    with pytest.raises(lw.RefusedError) as refusal:
        nest.plan(np.ones(5), ranks=0)
    (only,) = refusal.value.refusals
    assert (only.file, only.line, only.text) == (None, None, str(refusal.value))


def _halve(u):
    for i in range(u.shape[0]):
        u[i] = 0.5 * u[i]
