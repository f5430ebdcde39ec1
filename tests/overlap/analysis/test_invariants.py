"""Variables that keep their values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.overlap.analysis.invariants import invariants
from lapwing.overlap.languages.c.reading import read_c_text

pytestmark = pytest.mark.usefixtures("own_header")


def kept(body: str) -> Iterator[str]:
    program = read_c_text(f"int called(int *);\nvoid f(int n, int k) {{ {body} }}\n", "p.c")
    return (key.rpartition("::")[2].partition("@")[0] for key in invariants(program))


@pytest.mark.parametrize(
    ("body", "expected"),
    {
        "k = 2; int a = n + 2, b = a * n;": {"n", "a", "b"},
        "int a = n; a++;": {"n", "k"},
        "int a = n; int *p = &a; *p = 3;": {"n", "k"},
        "for (int i = 0; i < n; i++) { int a = i; int b = n + 1; }": {"n", "k", "b"},
        "int m; m = n; m = m + 1; int a = m + 1;": {"n", "k", "a"},
        "int m = n; int a = m + 1; m = 4;": {"n", "k", "a"},
        "again: ; int a = k--; if (n) goto again;": {"n"},
        "int a; called(&a);": {"n", "k"},
    }.items(),
)
def test_variables_that_keep_their_values(body: str, expected: set[str]) -> None:
    assert set(kept(body)) == expected


def test_a_value_is_not_taken_from_a_variable_that_changes_later(tmp_path: Path) -> None:
    """``ld`` is what it was made of then."""
    program = read_c_text("void f(int n) { int m = n; int ld = m + 1; m = 4; }\n", "p.c")
    values = {key.rpartition("::")[2]: value for key, value in invariants(program).items()}
    assert values["ld"] is None
