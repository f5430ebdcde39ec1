"""Which collectives all ranks execute uniformly. In the programs, a call marked "apart" is one that they do not; all others
they do."""

from __future__ import annotations

import re

import pytest
from _surveyed import read

from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.ranks.communicators import Communicators
from lapwing.overlap.analysis.ranks.divergence import Memories, RankDivergence
from lapwing.overlap.analysis.ranks.uniformity import Uniformity
from lapwing.overlap.ir.statements import Call, Loop

pytestmark = pytest.mark.usefixtures("own_header")

C_HEAD = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
double x[4];
int n, m, rank, size, flags[3];
struct { int steps; double end; } setup;
MPI_Comm half, copy;
"""
C_MAIN = """
int main(int argc, char **argv) {
  int i, k, local = 0;
  double most = 1.0, mine;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
"""
C_BCAST = "MPI_Bcast(x, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);"
FORTRAN_HEAD = """
program p
use mpi
implicit none
integer :: n, rank, np, i, ierr, sub
double precision :: x(4), y(4)
common /shared/ n, y
call MPI_Init(ierr)
call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
"""
FORTRAN_BCAST = "call MPI_Bcast(x, 4, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)"


def broadcasts(text: str, name: str) -> tuple[list[int], list[int]]:
    """Lines of broadcasts that are said not to be executed uniformly, and of those marked so."""
    program = read(text, name)
    uniformity = Uniformity(Analysis(program))
    found = []
    for procedure in program.procedures.values():
        for statement in procedure.body.walk():
            if isinstance(statement, Call) and (statement.name or "").lower() == "mpi_bcast":
                site = uniformity.site(statement, procedure)
                if site is None or site.divergence is not None:
                    found.append(program.sources[0].line_of(statement.span.start))
    marked = [number for number, line in enumerate(text.splitlines(), 1) if "apart" in line]
    return sorted(found), marked


def check_c(body: str, before: str = "") -> None:
    body, before = (re.sub(r"\bB;", C_BCAST, text) for text in (body, before))
    found, marked = broadcasts(f"{C_HEAD}{before}{C_MAIN}{body}\n  MPI_Finalize();\n  return 0;\n}}\n", "a.c")
    assert found == marked


def check_fortran(body: str, after: str = "") -> None:
    body, after = body.replace("BCAST", FORTRAN_BCAST), after.replace("BCAST", FORTRAN_BCAST)
    found, marked = broadcasts(f"{FORTRAN_HEAD}{body}\ncall MPI_Finalize(ierr)\nend program\n{after}\n", "a.f90")
    assert found == marked


@pytest.mark.parametrize(
    "body",
    [
        "B;",
        "for (i = 0; i < 10; i++) B;",
        "for (i = 0; i < size; i++) B;",
        "if (size > 2) B; else { B; }",
        "n = atoi(argv[1]);\nfor (i = 0; i < n; i++) B;",
        # What a broadcast, or a reduction for all, brings is the same everywhere.
        "if (rank == 0) n = 5;\nMPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);\nfor (i = 0; i < n; i++) B;",
        "while (most > 0.1) {\nmine = rank;\nMPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);\nB;\n}",
        "setup.steps = rank;\nMPI_Bcast(&setup, sizeof setup, MPI_BYTE, 0, MPI_COMM_WORLD);\nif (setup.steps) B;",
        "flags[0] = rank;\nMPI_Bcast(flags, 3, MPI_INT, 0, MPI_COMM_WORLD);\nif (flags[1]) B;",
        "MPI_Comm_dup(MPI_COMM_WORLD, &copy);\nn = rank;\nMPI_Bcast(&n, 1, MPI_INT, 0, copy);\nif (n) B;",
        # A rank that stops takes all others with it; one that has nothing more to do may go.
        "if (rank == 77) MPI_Abort(MPI_COMM_WORLD, 1);\nB;",
        "if (rank >= 4) { MPI_Finalize(); return 0; }\nB;",
        "if (rank >= 4) goto done;\nB;\ndone:",
        'if (rank == 0) printf("%d\\n", size);\nB;',
        "double *a = malloc(8 * size);\nif (a == NULL) return 1;\nB;",
        "for (i = 0; i < 3; i++) { if (i == 1) continue; B; }",
        # Own groups: the same within each.
        "MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);\nMPI_Bcast(x, 4, MPI_DOUBLE, 0, half);",
        "MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);\nn = rank;\nMPI_Bcast(&n, 1, MPI_INT, 0, half);\n"
        "if (n) MPI_Bcast(x, 4, MPI_DOUBLE, 0, half);",
        "n = rank; n = 3;\nif (n) B;",
    ],
)
def test_executed_uniformly(body: str) -> None:
    check_c(body)


@pytest.mark.parametrize(
    "body",
    [
        "if (rank == 0)\nB; /* apart */\nelse\nB; /* apart */",
        "k = rank + 1;\nm = 2 * k;\nif (m > 2)\nB; /* apart */",
        "if (rank == 0) local = 1;\nif (local)\nB; /* apart */",
        "for (i = 0; i < rank; i++)\nB; /* apart */",
        "for (i = 0; i < 9; i++) {\nif (i == rank) break;\nB; /* apart */\n}\nB;",
        "for (i = 0; i < 9; i++) {\nB; /* apart */\nif (x[0] > rank) break;\n}\nB;",
        "for (i = 0; i < 9; i++) {\nif (i == rank) continue;\nB; /* apart */\n}",
        "MPI_Recv(&n, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\nif (n)\nB; /* apart */",
        "mine = rank;\nMPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);\nwhile (most > 1)\nB; /* apart */",
        "if (MPI_Wtime() > 3)\nB; /* apart */",
        'scanf("%d", &n);\nif (n)\nB; /* apart */',
        'if (getenv("N"))\nB; /* apart */',
        "flags[rank % 3] = 1;\nif (flags[1])\nB; /* apart */",
        "int *q = &n; *q = rank;\nif (n)\nB; /* apart */",
        "n = (rank == 0 && (k = 1));\nm = 0;\nif (rank == 0) m++;\nif (m)\nB; /* apart */",
        "switch (rank) {\ncase 0:\nB; /* apart */\nbreak;\ndefault:\nbreak;\n}",
        # Of an array only a part is made the same.
        "flags[0] = rank;\nMPI_Bcast(flags, 1, MPI_INT, 0, MPI_COMM_WORLD);\nif (flags[1])\nB; /* apart */",
        "setup.steps = rank;\nMPI_Bcast(&setup, 2, MPI_BYTE, 0, MPI_COMM_WORLD);\nif (setup.steps)\nB; /* apart */",
        # The same within groups is not the same for all.
        "MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);\nn = rank;\nMPI_Bcast(&n, 1, MPI_INT, 0, half);\n"
        "if (n)\nB; /* apart */",
        "MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);\ncopy = MPI_COMM_WORLD;\n"
        "if ((copy = half) == MPI_COMM_NULL) return 1;\nn = rank;\nMPI_Bcast(&n, 1, MPI_INT, 0, copy);\nif (n)\nB; /* apart */",
        "if (rank < 2) copy = MPI_COMM_SELF; else copy = MPI_COMM_WORLD;\nMPI_Bcast(x, 4, MPI_DOUBLE, 0, copy); /* apart */",
        # Ranks that go, but come to a collective again.
        "if (rank >= 4) goto done;\nB; /* apart */\ndone:\nB;",
        "again: B; /* apart */\nif (rank == n++) goto again;",
        "if (rank == 0) n = 5;\nif (rank < 9) MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD); /* apart */\nif (n)\nB; /* apart */",
    ],
)
def test_not_executed_uniformly(body: str) -> None:
    check_c(body)


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("void f(void) { B; }\n", "f();\nfor (i = 0; i < 3; i++) f();"),
        ("void f(void) {\nB; /* apart */\n}\n", "if (rank == 0) f();"),
        ("void f(int k) {\nif (k)\nB; /* apart */\n}\n", "f(1);\nf(rank);"),
        ("void f(int k) { if (k) B; }\n", "f(1);\nf(size);"),
        ("int f(void) { return rank; }\n", "if (f())\nB; /* apart */"),
        ("int f(void) { if (rank == 0) return 1; return 0; }\n", "if (f())\nB; /* apart */"),
        ("int f(void) { if (size == 1) return 1; return 0; }\n", "if (f()) B;"),
        ("void f(void) {\nif (rank == 0) return;\nB; /* apart */\n}\n", "f();\nB;"),
        ("void f(int *k) { *k = rank; }\n", "f(&local);\nif (local)\nB; /* apart */"),
        ("void f(int *k) { *k = size; }\n", "local = rank;\nf(&local);\nif (local > 2) m = 1;\nB;"),
        (
            "void f(void) { if (rank == 0) n = 7; MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD); }\n",
            "f();\nwhile (n--) B;",
        ),
        ("void f(void) { n = rank; }\nvoid g(void) { f(); }\n", "n = 1;\ng();\nif (n)\nB; /* apart */"),
        ("void f(int k) {\nif (k > 0) f(k - 1);\nB; /* apart */\n}\n", "f(rank);"),
        ("void f(int k) { if (k > 0) f(k - 1); B; }\n", "f(3);"),
        ("void f(void) {\nB; /* apart */\n}\nvoid (*p)(void) = f;\n", "p();"),
        ("void f(void) {\nB; /* apart */\n}\n", "B;"),  # never called
        ("void f(MPI_Comm c) {\nMPI_Bcast(x, 4, MPI_DOUBLE, 0, c);\n}\n", "f(MPI_COMM_WORLD);"),
        ("static int twice(int k) { return 2 * k; }\n", "n = twice(size);\nm = twice(4);\nif (n > m) B;"),
    ],
)
def test_through_procedures(before: str, body: str) -> None:
    check_c(body, before)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("BCAST", ""),
        ("do i = 1, 3\nBCAST\nend do", ""),
        ("if (rank == 0) then\nBCAST ! apart\nend if\nBCAST", ""),
        ("if (rank == 0) read *, n\ncall MPI_Bcast(n, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)\n"
         "do i = 1, n\nBCAST\nend do", ""),
        ("read *, n\ndo i = 1, n\nBCAST ! apart\nend do", ""),
        ("call s(rank)\ncall s(2)", "subroutine s(k)\nuse mpi\ninteger :: k, ierr\nreal(8) :: x(4)\n"
         "if (k > 1) then\nBCAST ! apart\nend if\nend"),
        ("call s(np)", "subroutine s(k)\nuse mpi\ninteger :: k, ierr\nreal(8) :: x(4)\nif (k > 1) then\nBCAST\nend if\nend"),
        ("call s\nif (n > 0) then\nBCAST ! apart\nend if", "subroutine s\nuse mpi\ninteger :: k, ierr\ncommon /shared/ k\n"
         "call MPI_Comm_rank(MPI_COMM_WORLD, k, ierr)\nend"),
        ("if (rank > 3) goto 9\nBCAST\n9 continue", ""),
        ("do i = 1, 9\nif (i == rank) exit\nBCAST ! apart\nend do\nBCAST", ""),
        ("call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), 0, sub, ierr)\ncall MPI_Bcast(x, 4, MPI_REAL8, 0, sub, ierr)", ""),
        ("call other(n)\nif (n > 0) then\nBCAST ! apart\nend if", ""),
        ("if (ierr /= MPI_SUCCESS) stop 1\nif (ierr == 0) then\nBCAST\nend if", ""),
        ("x(1) = rank\ny = x\nif (y(2) > 0) then\nBCAST ! apart\nend if", ""),
        ("if (f(rank) > 0) then\nBCAST ! apart\nend if\nif (f(2) > 0) then\nBCAST ! apart\nend if",
         "integer function f(k)\ninteger :: k\nf = k + 1\nend"),
    ],
)  # fmt: skip
def test_fortran(body: str, after: str) -> None:
    check_fortran(body, after)


def test_two_main_programs_run_side_by_side() -> None:
    text = FORTRAN_HEAD + "call MPI_Bcast(x, 4, MPI_REAL8, 0, MPI_COMM_WORLD, ierr) ! apart\nend program\n"
    found, marked = broadcasts(text + text.replace("program p", "program q"), "a.f90")
    assert found == marked


def test_a_library_may_be_called_by_any_rank() -> None:
    found, marked = broadcasts(
        C_HEAD + "void f(void) {\nMPI_Bcast(x, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* apart */\n}\n", "a.c"
    )
    assert found == marked


def test_another_program_may_take_part() -> None:
    program = read(
        C_HEAD + C_MAIN + "MPI_Comm_get_parent(&half);\nMPI_Bcast(x, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);\nreturn 0; }\n",
        "a.c",
    )
    apart = Uniformity(Analysis(program)).divergent_sites("MPI_Bcast")
    assert [site.name for site in apart] == [None]


def test_code_that_cannot_be_seen_is_a_site_of_any_kind() -> None:
    for call, count in (("if (rank == 0) unseen();", 1), ("unseen();", 0)):
        program = read("void unseen(void);\n" + C_HEAD + C_MAIN + call + "\nreturn 0; }\n", "a.c")
        assert len(Uniformity(Analysis(program)).divergent_sites("MPI_Bcast")) == count, call


def test_values() -> None:
    text = C_HEAD + C_MAIN + "n = rank;\nm = size;\nfor (i = 0; i < m; i++) x[i] = n;\nreturn 0; }\n"
    program = read(text, "a.c")
    main = program.procedures["main"]
    uniformity = Uniformity(Analysis(program))
    loop = next(s for s in main.body.walk() if isinstance(s, Loop))
    assert uniformity.same_value(loop.upper, loop, main) is None
    assign = loop.body.statements[0]
    divergence = uniformity.same_value(assign.expressions()[1], assign, main)
    assert divergence is not None
    assert "n is not proved to be the same" in divergence.what
    assert uniformity.executed_uniformly(loop, main) is None


def test_the_reason_names_the_variable_and_the_place() -> None:
    text = C_HEAD + C_MAIN + "if (rank == 0)\nMPI_Bcast(x, 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);\nreturn 0; }\n"
    program = read(text, "a.c")
    (site,) = Uniformity(Analysis(program)).divergent_sites("MPI_Bcast")
    assert site.divergence is not None
    assert site.divergence.what == "rank is not proved to be the same on all ranks"
    assert site.divergence.where is not None
    assert program.sources[0].text(site.divergence.where).startswith("if (rank == 0)")


def test_says_which_unknown_code_may_run_a_collective() -> None:
    main = f"{FORTRAN_HEAD}call outside(n)\ncall spread\nend\n"
    text = f"{main}subroutine spread\nuse mpi\ninteger :: ierr\ndouble precision :: x(4)\n{FORTRAN_BCAST}\nend\n"
    program = read(text, "a.f90")
    uniformity = Uniformity(Analysis(program))
    spread = program.procedures["spread"]
    call = next(s for s in spread.body.walk() if isinstance(s, Call))
    site = uniformity.site(call, spread)
    assert site is not None
    assert site.divergence is not None
    assert site.divergence.what == "outside, whose source is not given, may call spread"


GROUPS = """
MPI_Comm half;
int a, b, c, shared, rank;
void note(int v) {{ shared = v; if (shared) MPI_Barrier(MPI_COMM_WORLD); }}
void inner(void) {{ if (b) MPI_Barrier(MPI_COMM_WORLD); }}
void same(void) {{ MPI_Bcast(&b, 1, MPI_INT, 0, MPI_COMM_WORLD); inner(); b = rank; inner(); }}
void within(void) {{ a = rank; MPI_Bcast(&a, 1, MPI_INT, 0, half); if (a) MPI_Barrier(half); note(a); }}
int answer(void) {{ int l = rank; MPI_Bcast(&l, 1, MPI_INT, 0, half); return l; }}
int main(int argc, char **argv) {{
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  c = 0;
  {calls}
  MPI_Finalize();
  return 0;
}}
"""


@pytest.mark.parametrize(
    "calls",
    [
        "same(); within(); same();",
        "within(); same(); note(c);",
        "within(); c = a; if (c) same();",
        "for (c = 0; c < 3; c++) { same(); note(rank); within(); }",
        "if (answer()) same();",
        "same(); if (answer()) inner();",
        "within(); for (c = 0; c < a; c++) { same(); note(b); }",
    ],
)
def test_among_the_ranks_of_a_group_taken_over_or_analysed(calls: str) -> None:
    """What is taken over from all ranks' answers is what a walk for the group alone finds."""
    program = read("#include <mpi.h>\n" + GROUPS.format(calls=calls), "a.c")
    analysis, memories = Analysis(program), Memories()
    communicators = Communicators(analysis)
    group = next(key for key in program.globals if key.endswith("half"))

    def variance(among: str, parents: tuple[str, ...], world: RankDivergence | None) -> RankDivergence:
        return RankDivergence(analysis, program, communicators, memories, among, parents, world)

    world = variance("MPI_COMM_WORLD", (), None)
    alone, faster = (variance(group, ("MPI_COMM_WORLD",), known) for known in (None, world))
    statements = [(s, p) for p in program.procedures.values() for s in p.body.walk()]
    for statement, procedure in statements:
        assert faster.statement(statement, procedure) == alone.statement(statement, procedure)
    assert all(faster.call(key) == alone.call(key) for key in alone.collectives)
    assert any(world.statement(s, p) != alone.statement(s, p) for s, p in statements)
