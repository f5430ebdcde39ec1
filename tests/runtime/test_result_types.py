"""What a nest returns has the type that the plain loop's result has, also where no iteration assigned to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from loading import load

import lapwing as lw

pytestmark = pytest.mark.usefixtures("little_optimised")

STARTS = ("0", "0.0", "np.float32(0.5)", "np.int64(1)", "1", "np.float64(0.0)")
EVERYDAY = STARTS[:3]
UPDATES = {
    "sum": "s += u[i]",
    "sum of some": "if u[i] > least: s += u[i]",
    "sum of ones": "if u[i] > least: s += 1",
    "maximum": "s = max(s, u[i])",
    "minimum of some": "if u[i] > least: s = min(s, -u[i])",
    "by if": "if u[i] > s: s = u[i]",
    "with its place": "if u[i] > s: s, k = u[i], i",
    "maximum of an index": "s = max(s, i)",
    "number": "if u[i] > least: s = 3",
}
CARRIED = {  # from one iteration to the next: in the loops' own order
    "last": "if u[i] > least: s = u[i]",
    "product": "if u[i] > least: s = s * u[i]",
    "of another": "if u[i] > least: s = k",
    "index": "if u[i] > least: s = i",
    "largest so far": "s = max(s, u[i]); u[i] = s",
}


def nests(updates: dict[str, str], starts: tuple[str, ...], path: Path) -> dict[tuple[str, str], lw.Nest]:
    texts = ["import numpy as np", "import lapwing as lw"]
    keys = list(itertools.product(updates, starts))
    for number, (update, start) in enumerate(keys):
        texts += [
            "@lw.nest", f"def f{number}(u, least):", f"    s = {start}", "    k = 7", "    for i in range(u.shape[0]):",
            f"        {updates[update]}", "    return s, k" if "k" in updates[update] else "    return s",
        ]  # fmt: skip
    path.write_text("\n".join(texts) + "\n")
    module = load(path)
    return {key: getattr(module, f"f{number}") for number, key in enumerate(keys)}


def outcome(call: Callable[..., Any], u: np.ndarray, least: float) -> str:
    with np.errstate(all="ignore"):
        return repr(call(u.copy(), least))


@pytest.mark.parametrize("dtype", everyday(["float64", "float32", "int32", "int64"], ["float64"]))
@pytest.mark.parametrize("starts", everyday([EVERYDAY, STARTS], [EVERYDAY]), ids=["some", "all"])
@pytest.mark.parametrize("updates", [UPDATES, CARRIED], ids=["reductions", "carried"])
def test_types(updates: dict[str, str], starts: tuple[str, ...], dtype: str, tmp_path: Path) -> None:
    tried = 0
    for key, nest in list(nests(updates, starts, tmp_path / "their.py").items()):
        if dtype != "float64" and key[1] not in ("0", "0.0"):
            continue  # each of these is a nest to be compiled
        for values, least in (([], 0.5), ([0, 0], 0.5), ([0, 2, 1], 0.5), ([0, 2], 9.0), ([1, -1, 0], -2.0)):
            u = np.array(values, dtype)
            try:
                found = outcome(nest, u, least)
            except lw.RefusedError:
                continue
            assert found == outcome(nest.python, u, least), (key, values, least)
            tried += 1
    assert tried > 20


@lw.nest
def sum_of_some(u, total):
    for i in range(u.shape[0]):
        if u[i].real > 5:
            total += u[i] / (3 - 1j)
    return total


@pytest.mark.parametrize("start", [0.5, 1, 1j, np.complex64(3)])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_sum_of_nothing_is_what_it_began_with(start: complex, dtype: str) -> None:
    for u in (np.zeros(3, dtype), np.array([1, 9 + 1j, 2], dtype)):
        assert repr(sum_of_some(u, start)) == repr(sum_of_some.python(u, start))
