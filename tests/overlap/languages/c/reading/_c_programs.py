"""Short C programs for the tests of the C front end."""

from __future__ import annotations

from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Assign, Statement
from lapwing.overlap.languages.c.reading import read_c_text

DECLARATIONS = """
struct inner { int depth; };
struct point { double x; int *ids; struct inner in; struct point *next; };
typedef int number;
enum { RED = 3, GREEN };
static const int limit = 7;
static double grid[10][12];
static int shared;
int called(int);
"""
LOCALS = (
    "int i, j, n; double d, v[100]; int *p, **pp; double (*rows)[5]; struct point s, *q; unsigned u; int (*g)(int);"
)


def function(
    body: str, before: str = "", parameters: str = "void", name: str = "program.c"
) -> tuple[Program, Procedure]:
    """The program with one function ``f`` of this body, after the declarations above and ``before``."""
    program = read_c_text(f"{DECLARATIONS}\n{before}\nvoid f({parameters}) {{\n{body}\n}}\n", name)
    return program, program.procedures["f"]


def statements(body: str, before: str = "", name: str = "program.c") -> tuple[Statement, ...]:
    """The statements of a function that declares the variables above."""
    _, procedure = function(f"{LOCALS}\n{body}", before, name=name)
    declared = LOCALS.count(";")
    return procedure.body.statements[declared:]


def statement(body: str, before: str = "", name: str = "program.c") -> Statement:
    found = statements(body, before, name)
    assert len(found) == 1, found
    return found[0]


def expression(text: str, before: str = "", name: str = "program.c") -> Expression:
    """An expression, as what a variable is set to."""
    found = statement(f"d = {text};", before, name)
    assert isinstance(found, Assign), found
    return found.value


def said(program: Program, procedure: Procedure) -> list[str]:
    """Each statement's text with the name of its kind, blocks in order."""
    source = program.sources[procedure.source]
    return [f"{type(s).__name__}: {source.text(s.span)}" for s in procedure.body.walk()]
