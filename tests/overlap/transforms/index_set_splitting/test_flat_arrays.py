"""Nests over flat arrays, which are taken as rows of elements."""

from __future__ import annotations

from pathlib import Path

import pytest
from _transformed import transformed

pytestmark = pytest.mark.usefixtures("own_header")

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
