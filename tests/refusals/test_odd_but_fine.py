"""What looks odd and works."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from everyday import one_of
from refusal_cases import compare_with_plain_loop, grid_of, load, two_loops

pytestmark = pytest.mark.usefixtures("little_optimised")

C_WORDS = [
    "int", "double", "register", "tile", "box", "INFINITY", "lw_tile", "trap", "NULL", "main", "INT64_MAX",
    "INT64_C", "int64_t", "signbit", "LW_INLINE", "array", "dense", "full", "x0", "elements", "block",
    "lanes", "step", "lane", "isnan", "sqrtf", "u_s0", "minus_i", "out", "HUGE_VAL", "FP_NAN", "UINT8_MAX",
    "f_point", "_", "__", "unix",
]  # fmt: skip
ODD = {
    "a docstring in a loop": two_loops('"""What it does."""\nu[i, j] = 0.5 * u[i-1, j]'),
    "an index after the other": two_loops(
        "u[i][j] = 0.5 * u[i-1][j] + u[i, j-1] + T[K[j]][i]",
        heading=("T = np.ones((3, 9))\nK = np.array([0, 1, 2, 0, 1, 2])"),
    ),
    "the length of a shape": two_loops("u[i, j] = n * u[i-1, j]", before="s = u.shape\nn = len(s)"),
    "nothing to do in a loop": two_loops("pass\n...\na: float\nu[i, j] = 0.5 * u[i-1, j]", before="b: int\npass"),
    "two values swapped": two_loops("a, b = u[i-1, j], u[i, j-1]\na, b = b, a\nu[i, j] = 0.5 * a + b"),
    "elements swapped": two_loops("u[i, j], u[i, j-1] = u[i, j-1], u[i, j]"),
    "a rotation of arrays": two_loops("u[i, j], v[i, j] = v[i-1, j] + 1.0, u[i-1, j]", "u, v=np.ones((5, 6))"),
    "a value and what rests on its old one": two_loops("a = u[i-1, j]\na, b = a + 1.0, a * 2.0\nu[i, j] = a - b"),
    "tuples in tuples": two_loops("(a, (b, c)), [d] = (1.0, (u[i-1, j], 3.0)), [4.0]\nu[i, j] = a + b * c - d"),
    "assigned in a chain": two_loops("a = b = u[i-1, j]\na += 1.0\nu[i, j] = a * b"),
    "a chain of arrays": two_loops("u[i, j] = a = v[i, j] = 0.5 * u[i-1, j]\nu[i, j] += a", "u, v=np.ones((5, 6))"),
    "a chain of tuples": two_loops("a, b = c, d = u[i-1, j], u[i, j-1]\nu[i, j] = a * c + b * d"),
    "a reduction in a tuple": two_loops(
        "a = u[i-1, j]\na, best = 2.0 * a, max(best, a)\nu[i, j] = a", before="best = 0.0", after="return best"
    ),
    "parenthesised targets": two_loops("(a) = 0.5\n((u)[i, j]) = a * u[i-1, j]"),
    "scalars of several kinds before": two_loops(
        "u[i, j] = a * u[i-1, j] + b + c", before="a = b = 2\na += 1\nb, c = a, b\n[d, e] = u.shape\n(f, g) = (1, 2)"
    ),
    "two statements on a line": two_loops("a = 0.5; u[i, j] = a * u[i-1, j]"),
    "an annotated temporary": two_loops("a: float = 0.5\nu[i, j] = a * u[i-1, j]"),
    "a continued line": two_loops("u[i, j] = 0.5 + \\\n    u[i-1, j]"),
    "the end of a C comment": two_loops("u[i, j] = 0.5 * u[i-1, j]  # */"),
    "a temporary called min": two_loops("min = 0.5 * u[i-1, j]\nu[i, j] = max(min, 0.5)"),
    "unicode names": two_loops("γ = 0.5 * u[i-1, j]\nδ = γ + 1.0\nu[i, j] = δ + λ", "u, λ=0.5"),
    "a very long name": two_loops(f"{'a' * 1000} = 0.5 * u[i-1, j]\nu[i, j] = {'a' * 1000}"),
    "a sum of 190 terms": two_loops("u[i, j] = 0.0" + " + 0.5 * u[i-1, j]" * 190),
    "190 calls in each other": two_loops("u[i, j] = " + "max(" * 190 + "u[i-1, j]" + ", 0.5)" * 190),
    "an empty range": two_loops("u[i, j] = u[i+100, j]").replace("range(1, u.shape[1] - 1)", "range(3, 1)"),
    "from the end of a table": two_loops("u[i, j] = T[-1] + u[i-1, j]", heading="T = np.arange(5.0)"),
    "positional and keyword only": two_loops("u[i, j] = a * u[i-1, j]", "u, /, *, a=0.5"),
    "a constant of a module": two_loops("u[i, j] = max(np.pi * u[i-1, j], -math.inf)"),
    "an argument with a default array": two_loops("u[i, j] = a[i] * u[i-1, j]", "u, a=np.arange(5.0)"),
    "a closure": "def make(k):\n"
    + textwrap.indent(two_loops("u[i, j] = k * u[i-1, j]"), "    ")
    + "    return f\nf = make(0.5)\n",
}


@pytest.mark.parametrize("name", one_of(2, ODD))
def test_odd_but_fine(name: str, tmp_path: Path) -> None:
    compare_with_plain_loop(ODD[name], tmp_path)


def test_names_that_mean_something_in_c(tmp_path: Path) -> None:
    """One nest for each way a word is used; the words of one nest take each other's names as well."""
    odd, even = C_WORDS[::2], C_WORDS[1::2]
    terms = " + ".join(f"0.01 * {word}" for word in even)
    assignments = "\n".join(f"{word} = u[i, j-1] + {k}" for k, word in enumerate(odd))
    compare_with_plain_loop(
        two_loops(f"{assignments}\nu[i, j] = {terms} + {' + '.join(odd)}", "u, " + ", ".join(f"{w}=0.5" for w in even)),
        tmp_path,
    )
    reductions = "\n".join(f"{word} = max({word}, u[i, j] + {k})" for k, word in enumerate(C_WORDS))
    compare_with_plain_loop(
        two_loops(
            f"u[i, j] = 0.5 * u[i, j-1]\n{reductions}",
            before="\n".join(f"{word} = 0.0" for word in C_WORDS),
            after=f"return {', '.join(C_WORDS)}",
        ),
        tmp_path,
    )


@pytest.mark.parametrize("words", one_of(3, (C_WORDS[k::3] for k in range(3))), ids=["first", "second", "third"])
def test_arrays_indices_and_functions_with_names_of_c(words: list[str], tmp_path: Path) -> None:
    for word, index in zip(words, [*words[1:], words[0]], strict=True):
        source = two_loops("u[i, j] = 0.5 * u[i, j-1] + i").replace("range(1, u.shape[0] - 1)", "range(3, 0, -1)")
        swapped = re.sub(r"\bu\b", word, re.sub(r"\bi\b", index, source))
        compare_with_plain_loop(re.sub(r"\bf\b", word, swapped) + f"f = {word}\n", tmp_path)


def test_the_sign_of_a_zero_is_not_remembered_from_another_call(tmp_path: Path) -> None:
    nest = load(two_loops("u[i, j] = a", "u, a"), tmp_path / "their.py").f
    for value in (0.0, -0.0, 0, np.float32(0.0), np.float32(-0.0)):
        found, expected = grid_of(), grid_of()
        nest(found, value)
        nest.python(expected, value)
        assert found.tobytes() == expected.tobytes()
