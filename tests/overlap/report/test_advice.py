"""What is advised where a call is left as it is."""

from __future__ import annotations

from pathlib import Path

from _transformed import Transformed, transformed

PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
{more}
double a[400], b[400], c[400];
{procedure}
int main(int argc, char **argv)
{{
    MPI_Init(&argc, &argv);
    for (int t = 0; t < 3; t++) {{
        {statements}
        MPI_Allgather(a, 100, MPI_DOUBLE, b, 100, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int i = 0; i < 100; i++) c[i] = b[i];
    }}
    printf("%a %a\\n", b[1], c[2]);
    MPI_Finalize();
    return 0;
}}
"""


def advised(folder: Path, name: str, statements: str, procedure: str = "", more: str = "") -> list[str]:
    program = PROGRAM.format(statements=statements, procedure=procedure, more=more)
    result: Transformed = transformed(program, name, folder)
    refusals = result.at("MPI_Allgather").refusals
    return [refusal.advice for refusal in refusals if refusal.transformation != "split-loop"]


def test_statement_that_computes_what_is_sent(tmp_path: Path) -> None:
    (advice,) = advised(tmp_path, "a.c", "for (int i = 0; i < 400; i++) a[i] = i;")
    assert advice.startswith(
        "nothing: this computes what the call needs, and nothing independent stands between the two"
    )


def test_statement_that_needs_what_is_received_over(tmp_path: Path) -> None:
    (advice,) = advised(tmp_path, "a.c", "for (int i = 0; i < 400; i++) c[i] = b[i];")
    assert advice.startswith("use another variable")


def test_recursion_is_not_followed(tmp_path: Path) -> None:
    down = "static void down(int n) { if (n > 0) down(n - 1); c[n] = n; }"
    (advice,) = advised(tmp_path, "a.c", "for (int i = 0; i < 9; i++) down(i);", down)
    assert advice == "nothing: what a procedure that calls itself does is not followed"


def test_library_of_cpp_is_not_followed(tmp_path: Path) -> None:
    (advice,) = advised(
        tmp_path, "a.cpp", "for (int i = 0; i < 9; i++) c[i] = v.size();", "std::vector<int> v;", "#include <vector>"
    )
    assert advice == "C++'s library is not followed: compute with plain arrays and pointers there"


def test_ends_of_mpi(tmp_path: Path) -> None:
    (advice,) = advised(tmp_path, "a.c", "MPI_Init(NULL, NULL);")
    assert advice == "nothing: messages stay between the begin and the end of MPI"


def test_source_that_is_missing(tmp_path: Path) -> None:
    (advice,) = advised(tmp_path, "a.c", "for (int i = 0; i < 9; i++) elsewhere();", "void elsewhere(void);")
    assert advice == "give the source of what is called there"
