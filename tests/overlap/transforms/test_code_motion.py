"""What moves, what stays, and why: small programs through the whole of `rewrite`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lapwing.overlap.languages.c.reading import read_c, read_c_text
from lapwing.overlap.languages.fortran.reading import read_text
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options, Outcome

pytestmark = pytest.mark.usefixtures("own_header")

STENCIL = """\
#include <mpi.h>
static double u[66][66], v[66][66];
void step(int up, int down) {
  int i, j;
  MPI_Request r[4];
  MPI_Irecv(&u[0][1], 64, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[0]);
  MPI_Irecv(&u[65][1], 64, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &r[1]);
  MPI_Isend(&u[1][1], 64, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &r[2]);
  MPI_Isend(&u[64][1], 64, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[3]);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  for (i = 1; i <= 64; i++)
    for (j = 1; j <= 64; j++) v[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  step(MPI_PROC_NULL, MPI_PROC_NULL);
  MPI_Finalize();
  return 0;
}
"""


def changed(outcome: Outcome) -> str:
    return "".join(change.after.decode() for change in outcome.changes)


def transformations(outcome: Outcome) -> set[str]:
    return {action.transformation for communication in outcome.communications for action in communication.actions}


def test_interior_covers_the_exchange() -> None:
    text = changed(rewrite(read_c_text(STENCIL), Options(progress_calls=False)))
    interior, wait = text.index("for (i = 2; i <= 63; i++)"), text.index("MPI_Waitall")
    assert interior < wait < text.index("if (i >= 2 && i <= 63) { i = 63; continue; }")


def test_a_buffer_that_is_one_element_longer_keeps_the_neighbouring_row() -> None:
    # 67 elements from u[0][1] on reach into row 1.
    text = changed(rewrite(read_c_text(STENCIL.replace("&u[0][1], 64", "&u[0][1], 67")), Options()))
    assert "i = 2;" not in text


@pytest.mark.parametrize(
    "transformation", ["split-loop", "wait-later", "nonblocking", "clone-buffer", "progress-calls"]
)
def test_a_transformation_that_is_left_out_is_not_made(transformation: str) -> None:
    every = {"nonblocking", "start-earlier", "wait-later", "together", "clone-buffer", "split-loop", "progress-calls"}
    assert transformation not in transformations(
        rewrite(read_c_text(STENCIL), Options(transformations=frozenset(every - {transformation})))
    )


def test_interior_needs_a_loop_without_dependences() -> None:
    dependent = STENCIL.replace("v[i][j] = 0.25 * (u[i - 1][j]", "v[i][j] = v[i - 1][j] + 0.25 * (u[i - 1][j]")
    assert not rewrite(read_c_text(dependent), Options()).changes


ROW_ARGUMENT = """\
#include <mpi.h>
void step(double (*a)[64], double *b, int up) {
  int j;
  MPI_Status status;
  MPI_Request r;
  MPI_Irecv(a[0], 64, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r);
  MPI_Wait(&r, &status);
  for (j = 0; j < 64; j++) b[j] = a[0][j];
}
"""


def test_a_row_of_a_pointer_to_rows_is_received_into() -> None:
    text = changed(rewrite(read_c_text(ROW_ARGUMENT), Options()))
    assert not text or text.index("b[j] = a[0][j]") > max(
        text.find("MPI_Wait("), text.find("lapwing_arrive(&lapwing_slots")
    )


@pytest.mark.parametrize(
    "statement",
    [
        "MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);",
        "if (MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != 0) return 1;",
        "int e = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); (void)e;",
    ],
)
def test_programs_that_see_errors_stay(statement: str) -> None:
    program = STENCIL.replace("MPI_Init(&argc, &argv);", f"MPI_Init(&argc, &argv);\n  {statement}")
    assert not rewrite(read_c_text(program), Options()).changes


@pytest.mark.parametrize(
    "start",
    [
        "int p; MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &p);",
        "int p, level = argc; MPI_Init_thread(&argc, &argv, level, &p);",
        "extern void begin(int); begin(MPI_THREAD_SERIALIZED);",
    ],
)
def test_programs_whose_threads_may_communicate_stay(start: str) -> None:
    outcome = rewrite(read_c_text(STENCIL.replace("MPI_Init(&argc, &argv);", start)), Options())
    assert not outcome.changes
    assert all(r.obligation == "one thread calls MPI" for c in outcome.communications for r in c.refusals)
    assert all(c.refusals for c in outcome.communications)


def test_programs_with_threads_that_do_not_communicate_change() -> None:
    start = "int p; MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &p);"
    assert rewrite(read_c_text(STENCIL.replace("MPI_Init(&argc, &argv);", start)), Options()).changes


STRANGER = """\
#include <mpi.h>
void helper(void);
int largest(int n) { int m; MPI_Allreduce(&n, &m, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD); return m; }
int main(int argc, char **argv) {
  int n;
  MPI_Init(&argc, &argv);
  helper();
  n = largest(argc);
  MPI_Finalize();
  return n;
}
"""


def test_the_function_that_is_not_known_is_named() -> None:
    (call,) = rewrite(read_c_text(STRANGER), Options()).communications
    (refusal,) = call.refusals
    assert refusal.found.endswith("helper, whose source is not given, may call largest")
    assert refusal.place is not None
    assert refusal.place.text == "helper();"


CASE = """\
#include <mpi.h>
static double a[900], b[900], c[900];
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  switch (argc) {
    case 1:
      MPI_Recv(a, 900, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < 900; i++) c[i] = 0.5 * b[i];
      break;
    default:
      for (int i = 0; i < 900; i++)
        for (int j = 0; j < 900; j++)
          b[i] += c[j];
  }
  MPI_Finalize();
  return (int)(a[0] + c[0]);
}
"""


def test_what_begins_a_case_is_indented_once() -> None:
    (change,) = rewrite(read_c_text(CASE), Options()).changes
    assert b"case 1:\n      /* lapwing: MPI_Recv starts here (1) */\n      MPI_Irecv(a, 900, " in change.after


@pytest.mark.parametrize(
    "start",
    [
        "double *p; MPI_Win w; MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &w);",
        "extern void *mmap(void *, unsigned long, int, int, int, long); mmap(0, 8, 1, MAP_SHARED, 0, 0);",
        "MPI_Win w; MPI_Win_create(u, 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &w); MPI_Win_lock_all(0, w);",
        "extern void *shmat(int, const void *, int); shmat(1, 0, 0);",
    ],
)
def test_programs_whose_ranks_share_memory_stay(start: str) -> None:
    program = "#define MAP_SHARED 1\n" if "MAP_SHARED" in start else ""
    program += STENCIL.replace("MPI_Init(&argc, &argv);", f"MPI_Init(&argc, &argv); {start}")
    outcome = rewrite(read_c_text(program), Options())
    assert not outcome.changes
    assert all(any(r.obligation == "ranks share no memory" for r in c.refusals) for c in outcome.communications)


LEVELS = 'static const char *name(int level) { return level == MPI_THREAD_MULTIPLE ? "many" : "one"; }\n'


@pytest.mark.parametrize(("asks", "changes"), [("", True), ("int p; MPI_Query_thread(&p); name(p);", False)])
def test_a_level_of_threads_that_nobody_asks_for_decides_nothing(asks: str, changes: bool) -> None:
    program = STENCIL.replace("MPI_Init(&argc, &argv);", f"MPI_Init(&argc, &argv);\n  {asks}")
    program = program.replace("int main", f"{LEVELS}int main")
    assert bool(rewrite(read_c_text(program), Options()).changes) == changes


def test_functions_of_headers_stay(tmp_path: Path) -> None:
    """Two files that include a header with a drain would define it twice; each would have slots of its own."""
    start, end = STENCIL.index("static double"), STENCIL.index("int main")
    (tmp_path / "step.h").write_text("#include <mpi.h>\n" + STENCIL[start:end].replace("void", "static void"))
    path = tmp_path / "main.c"
    path.write_text('#include "step.h"\n' + STENCIL[end:])
    assert rewrite(read_c_text(STENCIL), Options()).changes
    outcome = rewrite(read_c([path]), Options())
    assert not outcome.changes
    assert any(r.obligation == "its file is compiled by itself" for c in outcome.communications for r in c.refusals)


def test_files_with_missing_includes_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text('#include "nowhere.h"\n' + STENCIL)
    outcome = rewrite(read_c([path]), Options())
    assert not outcome.changes
    assert any("included file was not found" in r.found for c in outcome.communications for r in c.refusals)


def test_nothing_moves_across_preprocessor_lines() -> None:
    fenced = STENCIL.replace(
        "  for (i = 1; i <= 64; i++)\n    for (j", "#ifdef NOWHERE\n#endif\n  for (i = 1; i <= 64; i++)\n    for (j"
    )
    assert "i = 2;" not in changed(rewrite(read_c_text(fenced), Options()))


def test_comments_beside_replaced_calls_stay() -> None:
    commented = ROW_ARGUMENT.replace("MPI_COMM_WORLD, &r);", "MPI_COMM_WORLD, &r); /* the row */")
    commented = commented.replace("MPI_Wait(&r, &status);", "MPI_Wait(&r, &status); // it is here")
    work = "  for (j = 0; j < 64; j++) b[j] = j;\n"
    text = changed(rewrite(read_c_text(commented.replace("  MPI_Irecv", f"{work}  MPI_Irecv")), Options()))
    assert "lapwing_post(" in text
    assert "  /* the row */\n" in text
    assert "  // it is here\n" in text


def test_comments_beside_replaced_calls_do_not_become_code() -> None:
    received = "call MPI_Recv(a, 2000, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)"
    program = "subroutine s(a, b)\nuse mpi\nimplicit none\nreal(8) :: a(2000), b(2000)\ninteger :: i, ierr\n"
    program += f"{received} !$ b(1) = 9\ndo i = 1, 2000\nb(i) = i\nend do\nb = b + a\nend subroutine\n"
    text = changed(rewrite(read_text(program), Options()))
    assert "_receive_1(" in text
    assert "! $ b(1) = 9\n" in text


GOTO = """\
program p
  use mpi
  implicit none
  integer :: step, i, ierr, r
  real(8) :: a(2000), b(2000)
  call MPI_Init(ierr)
  b = 0
  step = 0
10 continue
  step = step + 1
  call MPI_Irecv(a, 2000, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 1, MPI_COMM_WORLD, r, ierr)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
  do i = 1, 2000
    b(i) = b(i) + a(i)
  end do
  if (step < 3) goto 10
  print *, b(1)
  call MPI_Finalize(ierr)
end program
"""


def test_nothing_moves_across_labels_that_are_jumped_to() -> None:
    text = changed(rewrite(read_text(GOTO, name="p.f90"), Options()))
    assert not text or text.index("10 continue") < text.index("call lapwing_p_post")


PRODUCER = """\
#include <mpi.h>
static int counts[4096], totals[4096], other[4096];
void sum(void) {
  int i;
  for (i = 0; i < 4096; i++) counts[i] = i;
  for (i = 0; i < 4096; i++) other[i] = 2 * other[i] + 1;
  MPI_Allreduce(counts, totals, 4096, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  for (i = 0; i < 4096; i++) other[i] += totals[i];
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  sum();
  MPI_Finalize();
  return other[0];
}
"""


def test_a_reduction_starts_where_its_data_are_there() -> None:
    text = changed(rewrite(read_c_text(PRODUCER), Options(progress_calls=False)))
    start, wait = text.index("MPI_Iallreduce("), text.index("MPI_Wait(")
    assert text.index("counts[i] = i") < start < text.index("2 * other[i]") < wait < text.index("+= totals[i]")


def test_a_floating_point_sum_stays_unless_asked_for() -> None:
    sums = PRODUCER.replace("static int", "static double").replace("MPI_INT, MPI_MAX", "MPI_DOUBLE, MPI_SUM")
    assert "MPI_Iallreduce" not in changed(rewrite(read_c_text(sums), Options()))
    assert "MPI_Iallreduce" in changed(rewrite(read_c_text(sums), Options(reassociate=True)))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("v[i][j] = 0.25", "s += v[i][j] = 0.25", "depends on the order of s += v[i][j]"),
        ("v[i][j] = 0.25", "v[0][j] += 0.25", "the loop over i may carry a dependence"),
        ("i <= 64; i++)", "i <= 64; i += 2)", "the loop over i is not recognised as such"),
        (
            "v[i][j] = 0.25",
            "v[i][j] = u[i * j % 66][j] + 0.25",
            "no iterations of the loop over i, j are known to be independent of u",
        ),
    ],
)
def test_work_that_needs_a_message_and_stays_whole_is_reported(old: str, new: str, found: str) -> None:
    text = STENCIL.replace(old, new).replace("v[66][66];", "v[66][66], s;")
    outcome = rewrite(read_c_text(text), Options())
    refusals = [r for c in outcome.communications if c.call == "MPI_Waitall" for r in c.refusals]
    assert any(r.transformation == "split-loop" and found in r.found and r.advice for r in refusals)


def test_nothing_is_said_of_work_that_was_divided() -> None:
    outcome = rewrite(read_c_text(STENCIL), Options())
    assert not any(r.transformation == "split-loop" for c in outcome.communications for r in c.refusals)


def test_rows_of_a_flat_array_that_is_declared() -> None:
    flat = re.sub(r"([uv])\[([^][]+)\]\[([^][]+)\]", r"\1[(\2) * 66 + \3]", STENCIL)
    flat = flat.replace("u[(66) * 66 + 66], v[(66) * 66 + 66]", "u[66 * 66], v[66 * 66]")
    text = changed(rewrite(read_c_text(flat), Options(progress_calls=False)))
    assert text.index("for (i = 2; i <= 63; i++)") < text.index("MPI_Waitall")
    # 67 elements from u[1] on reach to the second one of row 1.
    longer = flat.replace("&u[(0) * 66 + 1], 64", "&u[(0) * 66 + 1], 67")
    assert "for (j = 2; j <= 64; j++)" in changed(rewrite(read_c_text(longer), Options()))
