"""Pointers that lead to memory of their own."""

from __future__ import annotations

import pytest

from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.dataflow.call_graph import CallGraph
from lapwing.overlap.ir.expressions import Symbol
from lapwing.overlap.ir.program import Program
from lapwing.overlap.languages.c.reading import read_c_text

pytestmark = pytest.mark.usefixtures("own_header")

HEAD = """
#include <stdlib.h>
double *kept;
static double *made(int n) { double *p = malloc(8 * n); if (!p) exit(1); return p; }
static double *known(int n) { double *p = malloc(8 * n); kept = p; return p; }
static void take(double *a, double *b) { a[0] = b[0]; }
static void twice(double *a, double *b) { a[0] = b[0]; }
static void apart(double *restrict a, double *b) { a[0] = b[0]; }
"""
DISTINCT = {
    "double *u = malloc(80), *v = malloc(80);": True,
    "double *u = made(10), *v = made(10); double *t = u; u = v; v = t;": True,
    "double *u = made(10), *v = made(10); if (n) { double *t; t = u; u = v; v = t; }": True,
    "double *u, *v; u = made(10); v = n ? NULL : made(10);": False,
    "double *u = made(10), *v = u;": False,
    "double *u = made(10), *v = made(10); u = v;": False,
    "double *u = made(10), *v = made(10); double *t = u; u = v; v = t + 1;": False,
    "double *u = made(10), *v = made(10); double *t = v; u = v; v = t;": False,
    "double *u = known(10), *v = known(10); double *t = u; u = v; v = t;": False,
    "double *u = made(10), *v = made(10); double **w = &u; *w = v;": False,
    "double *u = made(10), *v = realloc(u, 160);": False,
}


def aliases_of(program: Program) -> Aliases:
    return Aliases.of(program, CallGraph.of(program))


def symbol(program: Program, procedure: str, name: str) -> Symbol:
    found = next(p for p in program.procedures.values() if p.name == procedure)
    return found.symbols[name]


@pytest.mark.parametrize(("body", "expected"), DISTINCT.items())
def test_pointers_to_memory_of_their_own(body: str, expected: bool) -> None:
    program = read_c_text(f"{HEAD}\nint main(int n, char **s) {{ {body} u[0] = v[0]; return 0; }}\n", "p.c")
    u, v = symbol(program, "main", "u"), symbol(program, "main", "v")
    assert aliases_of(program).never_alias(u, v, later=False) is expected


def test_exchanged_pointers_are_told_apart_at_one_time_only() -> None:
    text = f"{HEAD}\nint main(void) {{ double *u = made(9), *v = made(9); double *t = u; u = v; v = t; return 0; }}\n"
    program = read_c_text(text, "p.c")
    u, v = symbol(program, "main", "u"), symbol(program, "main", "v")
    assert not aliases_of(program).never_alias(u, v, later=True)


def test_arguments_that_are_never_aliased() -> None:
    calls = "take(u, v); take(v, u); twice(u, v); twice(u, u); apart(u, v);"
    text = f"{HEAD}\nint main(void) {{ double *u = made(9), *v = made(9); double *t = u; u = v; v = t; {calls} return 0; }}\n"
    program = read_c_text(text, "p.c")
    found = aliases_of(program)
    told = {
        name: found.never_alias(symbol(program, name, "a"), symbol(program, name, "b"), later=False)
        for name in ("take", "twice", "apart")
    }
    assert told == {"take": True, "twice": False, "apart": True}
