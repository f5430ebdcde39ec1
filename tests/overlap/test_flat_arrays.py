"""Flat arrays as rows of elements, pointers that lead to memory of their own, and variables that keep their values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from _transformed import transformed

from lapwing.affine.intersection import may_intersect
from lapwing.affine.sections import Linear, Product, Range, Section
from lapwing.overlap.analysis.invariants import invariants
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.dataflow.call_graph import CallGraph
from lapwing.overlap.ir.expressions import Symbol
from lapwing.overlap.ir.program import Program
from lapwing.overlap.languages.c.reading import read_c_text

pytestmark = pytest.mark.usefixtures("own_header")

# ---- sections -------------------------------------------------------------------------------------------------------------

ROWS, COLUMNS = Linear.term("m"), Linear.term("n")
ONE = Linear.number(1)


def number(value: int) -> Linear:
    return Linear.number(value)


def between(name: str, low: Linear, high: Linear) -> tuple[tuple[tuple[tuple[Linear, str], ...], ...], ...]:
    own = Linear.term(name)
    return (((own.plus(low, -1), ">="),),), (((high.plus(own, -1), ">="),),)


def element(row: Linear, place: Linear, length: Linear, *ranges: tuple[str, Linear, Linear]) -> Section:
    """The elements row · length + place, while the variables run over their ranges."""
    subscript = Linear.term("p").plus(place)
    conditions = tuple(condition for r in ranges for condition in between(*r))
    bound = ("p", *(name for name, _, _ in ranges))
    return Section((subscript,), bound, conditions, (Product("p", (Linear.term("r"), length)),)).substitute({"r": row})


def run(start_row: Linear, place: Linear, length: Linear, count: Linear) -> Section:
    """``count`` elements from there on."""
    start = Linear.term("q").plus(place)
    section = Section(
        (Range(start, start.plus(count).plus(ONE, -1)),), ("q",), (), (Product("q", (Linear.term("r"), length)),)
    )
    return section.substitute({"r": start_row})


def test_rows_are_apart() -> None:
    i, j, length = Linear.term("i"), Linear.term("j"), COLUMNS.plus(number(2))
    inner = (("i", number(2), ROWS.plus(ONE, -1)), ("j", ONE, COLUMNS))
    for halo in (run(number(0), ONE, length, COLUMNS), run(ROWS.plus(ONE), ONE, length, COLUMNS)):
        for row, place in ((i, j), (i.plus(ONE, -1), j), (i.plus(ONE), j), (i, j.plus(ONE, -1)), (i, j.plus(ONE))):
            assert not may_intersect(element(row, place, length, *inner), halo)
    assert may_intersect(
        element(i.plus(ONE, -1), j, length, ("i", ONE, ROWS), ("j", ONE, COLUMNS)), run(number(0), ONE, length, COLUMNS)
    )


def test_a_place_may_lie_in_another_row() -> None:
    """Where columns run beyond the row, nothing is certain."""
    i, j = Linear.term("i"), Linear.term("j")
    inner = (("i", number(2), ROWS.plus(ONE, -1)), ("j", ONE, COLUMNS.plus(ONE)))
    assert may_intersect(element(i, j, COLUMNS, *inner), element(ROWS, number(0), COLUMNS))


def elements(section: Section, m: int, n: int) -> set[int]:
    """Those of a section with these values, by trying all that is bound."""
    reach = range(-2, 9)
    names = [name for name in section.bound if all(o.term != name for o in section.origins)]
    found = set()
    for chosen in itertools.product(reach, repeat=len(names)):
        values = {"m": m, "n": n, **dict(zip(names, chosen, strict=True))}
        for origin in section.origins:
            assert isinstance(origin, Product)
            one, other = (worth(factor, values) for factor in origin.factors)
            values[origin.term] = one * other
        if all(worth(linear, values) >= 0 for c in section.conditions for part in c for linear, _ in part):
            (subscript,) = section.subscripts
            if isinstance(subscript, Linear):
                found.add(worth(subscript, values))
            else:
                assert isinstance(subscript, Range)
                assert subscript.lower is not None
                assert subscript.upper is not None
                found |= set(range(worth(subscript.lower, values), worth(subscript.upper, values) + 1))
    return found


def worth(linear: Linear, values: dict[str, int]) -> int:
    return linear.constant + sum(factor * values[name] for name, factor in linear.terms)


def random_section(random: Random) -> Section:
    i, j = Linear.term("i"), Linear.term("j")
    length = COLUMNS.plus(number(random.randint(-1, 2)))
    rows = random.choice((number(0), ONE, ROWS, ROWS.plus(ONE)))
    if random.random() < 0.4:
        return run(rows, number(random.randint(-1, 2)), length, random.choice((COLUMNS, length, number(2), ROWS)))
    row = random.choice((i, i.plus(ONE), i.plus(ONE, -1), rows))
    place = random.choice((j, j.plus(ONE), j.plus(ONE, -1), number(0), ONE, COLUMNS))
    ranges = (
        ("i", number(random.randint(0, 2)), ROWS.plus(number(random.randint(-1, 1)))),
        ("j", number(random.randint(0, 1)), COLUMNS.plus(number(random.randint(-1, 1)))),
    )
    return element(row, place, length, *ranges)


@pytest.mark.parametrize("seed", range(150))
def test_what_does_not_meet_has_no_element_in_common(seed: int) -> None:
    random = Random(seed)
    one, other = random_section(random), random_section(random)
    if not may_intersect(one, other):
        for m, n in itertools.product(range(-1, 5), repeat=2):
            assert elements(one, m, n).isdisjoint(elements(other, m, n)), (m, n)


def test_most_of_it_is_not_empty() -> None:
    """What was found to be apart is worth nothing if there is nothing of it."""
    pairs = [(random_section(r), random_section(r)) for r in map(Random, range(150))]
    apart = [(a, b) for a, b in pairs if not may_intersect(a, b)]
    assert sum(bool(elements(a, 4, 4)) and bool(elements(b, 4, 4)) for a, b in apart) > 10


# ---- pointers -------------------------------------------------------------------------------------------------------------

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
    assert aliases_of(program).are_distinct(u, v, later=False) is expected


def test_exchanged_pointers_are_told_apart_at_one_time_only() -> None:
    text = f"{HEAD}\nint main(void) {{ double *u = made(9), *v = made(9); double *t = u; u = v; v = t; return 0; }}\n"
    program = read_c_text(text, "p.c")
    u, v = symbol(program, "main", "u"), symbol(program, "main", "v")
    assert not aliases_of(program).are_distinct(u, v, later=True)


def test_arguments_that_are_always_distinct() -> None:
    calls = "take(u, v); take(v, u); twice(u, v); twice(u, u); apart(u, v);"
    text = f"{HEAD}\nint main(void) {{ double *u = made(9), *v = made(9); double *t = u; u = v; v = t; {calls} return 0; }}\n"
    program = read_c_text(text, "p.c")
    found = aliases_of(program)
    told = {
        name: found.are_distinct(symbol(program, name, "a"), symbol(program, name, "b"), later=False)
        for name in ("take", "twice", "apart")
    }
    assert told == {"take": True, "twice": False, "apart": True}


# ---- variables ------------------------------------------------------------------------------------------------------------


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


# ---- programs -------------------------------------------------------------------------------------------------------------

PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size, i, j, step, m = 20, n = 30;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) n = atoi(argv[1]);
  int ld = n + 2, low = rank ? rank - 1 : MPI_PROC_NULL, high = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  double *u = malloc(8 * (m + 2) * ld), *v = malloc(8 * (m + 2) * ld);
  for (i = 0; i < (m + 2) * ld; i++) v[i] = u[i] = i % 13;
  for (step = 0; step < 4; step++) {
    MPI_Sendrecv(&u[ld], n, MPI_DOUBLE, low, 1, &u[(m + 1) * ld], n, MPI_DOUBLE, high, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 1; i <= m; i++)
      for (j = 0; j < @columns@; j++) v[i * ld + j] = u[i * ld + j] + u[(i + 1) * ld + j];
    @last@
  }
  printf("%d %a\\n", rank, u[ld]);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize(
    ("columns", "last", "divided"),
    [
        ("n", "double *t = u; u = v; v = t;", True),
        ("ld", "double *t = u; u = v; v = t;", True),
        ("n + 5", "double *t = u; u = v; v = t;", False),  # a row's end may be in the next one
        ("n", "u = v;", False),
        ("n", "ld = n + 2;", False),
    ],
)
def test_nests_over_flat_arrays_are_divided(columns: str, last: str, divided: bool, tmp_path: Path) -> None:
    text = PROGRAM.replace("@columns@", columns).replace("@last@", last)
    result = transformed(text, "flat.c", tmp_path)
    assert ("turns that need nothing" in result.text) is divided
