"""Loops whose indices run one way or the other are a loop for each way, and functions do what they did."""

from __future__ import annotations

import ast
import builtins
import random
from typing import Any

import numpy as np
import pytest
from randomness import first_seed, wanted
from trees import tree

from lapwing.loopnest.normalisation.nests.unswitching import with_unswitched


def meaning(name: str) -> object:
    return getattr(builtins, name, None)


def unswitched(text: str, parameters: str = "u, mu, n, m") -> str:
    return "\n".join(map(ast.unparse, with_unswitched(tree(text, parameters), meaning).body))


def test_what_becomes_of_it() -> None:
    text = "for jj in range(n):\n    j = jj if mu[m] > 0 else n - 1 - jj\n    u[j] = u[j] + j"
    assert unswitched(text) == (
        "if 0 < n and mu[m] > 0:\n    for jj in range(n):\n        u[jj] = u[jj] + jj\n"
        "else:\n    for jj in range(n):\n        u[n - 1 - jj] = u[n - 1 - jj] + (n - 1 - jj)"
    )


def test_ways_of_several_loops() -> None:
    text = (
        "for jj in range(n):\n    if m > 0:\n        j = jj\n    else:\n        j = n - jj\n    s = 0.0\n"
        "    for ii in range(1, n):\n        i = ii if mu[m] > 0 else n - ii\n        s += u[j, i]\n    u[j, 0] = s"
    )
    found = unswitched(text)
    assert found.count("for jj") == 4
    assert "if 0 < n and 1 < n and (mu[m] > 0)" in found
    assert "u[n - jj, n - ii]" in found


@pytest.mark.parametrize(
    "text",
    [
        "for k in range(n):\n    j = k if mu[k] > 0 else n - k\n    u[j] = 1",  # another one in every iteration
        "for k in range(n):\n    j = k if u[m] > 0 else n - k\n    u[j] = 1",  # which the loop may change
        "for k in range(n):\n    u[k] = 1\n    j = k if mu[m] > 0 else n - k\n    u[j] = 1",  # stored before it raises
        "for k in range(n):\n    j = k if mu[m] > 0 else n - k\n    u[j] = 1\nu[j] = 2",  # which is looked at afterwards
        "for k in range(n):\n    j = k if mu[m] > 0 else n - k\n    u[j] = 1\n    j += 1\n    u[j] = 2",
        "for k in range(n):\n    j = k if mu[m] > 0 else n - k\n    n -= 1\n    u[j] = 2",  # what it is made of changes
        "j = 0\nfor k in range(n):\n    u[j] = 1\n    j = k if mu[m] > 0 else n - k",  # of the iteration before
        "for k in range(n):\n    j = k if mu[m] > 0 else n - k\n    x = 2.0 * j",  # no index
        "for k in range(n):\n    j = k if f(m) else n - k\n    u[j] = 1",
        "for k in range(n):\n    f(mu)\n    j = k if mu[m] > 0 else n - k\n    u[j] = 1",
        "for k in range(n):\n    x = u[k]\n    j = k if mu[m] > 0 else n - k\n    u[j] = x",  # which may raise first
        "for k in mu:\n    j = k if m > 0 else n - k\n    u[j] = 1",
    ],
)  # fmt: skip
def test_what_stays(text: str) -> None:
    assert ast.dump(with_unswitched(tree(text, "u, mu, n, m"), meaning)) == ast.dump(tree(text, "u, mu, n, m"))


def test_a_range_of_its_own() -> None:
    text = "for k in range(n):\n    j = k if m > 0 else n - k\n    u[j] = 1"
    found = with_unswitched(tree(text, "u, n, m, range"), meaning)
    assert ast.dump(found) == ast.dump(tree(text, "u, n, m, range"))


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        lines = []
        for _ in range(self.random.randint(1, 2)):
            lines += self.loop(("p", "q"), [])
        return "\n".join(lines)

    def loop(self, left: tuple[str, ...], indices: list[str]) -> list[str]:
        """Loops over the indices that are left."""
        k, *others = left
        bounds = self.random.choice(("n", "n", "1, n", "n - 1, -1, -1", "m"))
        lines, known = [f"for {k} in range({bounds}):"], [*indices, k]
        before = self.random.choice(("", "", "s = 0.0", "s = v[0]", "v[1] += 1.0"))
        lines += [f"    {before}"] if before else []
        if self.random.random() < 0.8:
            name = {"p": "i", "q": "j"}[k]
            lines += [f"    {line}" for line in self.direction(name, k)]
            known[-1] = name
        if others and self.random.random() < 0.8:
            lines += [f"    {line}" for line in self.loop(tuple(others), known)]
        row = known[0]
        lines.append(f"    v[{known[-1]}] += v[{row}] * 0.5 + {self.random.choice(('1.0', row, known[-1]))}")
        lines += [f"    mu[{known[-1]}] = -mu[{row}]"] * (self.random.random() < 0.15)
        return lines

    def direction(self, name: str, k: str) -> list[str]:
        test = self.random.choice(
            ("mu[m] > 0", "mu[m] > 0", "mu[far] > 0", "m > 1", f"mu[{k}] > 0", "not mu[0] < mu[m] <= 1.0")
        )
        other = self.random.choice((f"n - 1 - {k}", f"{k} - 1", "0"))
        if self.random.random() < 0.3:
            return [f"if {test}:", f"    {name} = {k}", "else:", f"    {name} = {other}"]
        return [f"{name} = {k} if {test} else {other}"]


def outcome(function: Any, n: int, m: int, far: int) -> tuple[str, bytes, bytes]:
    v, mu = np.arange(8.0), np.array([1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.1, 0.2])
    try:
        function(v, mu, n, m, far)
    except (IndexError, UnboundLocalError) as error:
        return type(error).__name__, v.tobytes(), mu.tobytes()
    return "", v.tobytes(), mu.tobytes()


def test_random_functions() -> None:
    changed = 0
    for seed in range(first_seed(), first_seed() + wanted(300)):
        text = _Writer(seed).text()
        node = tree(text, "v, mu, n, m, far")
        new = with_unswitched(node, meaning)
        changed += new is not node
        one, other = (_compiled(t) for t in (node, new))
        for n in (0, 1, 5):
            for m in (0, 1, 3):
                for far in (2, 99):
                    assert outcome(one, n, m, far) == outcome(other, n, m, far), text
    assert changed > 50


def _compiled(node: ast.FunctionDef) -> Any:
    names: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([node], [])), "text", "exec"), names)
    return names[node.name]
