"""Loops that run to what a struct holds: as long as nothing writes there, it is the same."""

from __future__ import annotations

import pytest

from lapwing.overlap.languages.c.reading import read_c_text
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

PROGRAM = """\
#include <mpi.h>
#include <stdlib.h>
typedef struct { int nx, ny, up, down; MPI_Comm comm; } grid_t;
grid_t spare;
static grid_t own;
int *within;
void change(grid_t *g) { g->nx--; }
void step(double *u, double *v, grid_t *g) {
  int i, j;
  grid_t *h = &spare;
  MPI_Sendrecv(&u[g->nx * g->ny], g->ny, MPI_DOUBLE, g->down, 0, &u[0], g->ny, MPI_DOUBLE, g->up, 0, g->comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(&u[g->ny], g->ny, MPI_DOUBLE, g->up, 1, &u[(g->nx + 1) * g->ny], g->ny, MPI_DOUBLE, g->down, 1, g->comm,
               MPI_STATUS_IGNORE);
  BEFORE
  for (i = 1; i <= g->nx; i++)
    for (j = 1; j < g->ny - 1; j++) {
      v[i * g->ny + j] = u[(i - 1) * g->ny + j] + u[(i + 1) * g->ny + j] + u[i * g->ny + j - 1];
      BODY
    }
}
int main(int argc, char **argv) {
  grid_t grid;
  int t;
  MPI_Init(&argc, &argv);
  grid.up = grid.down = MPI_PROC_NULL;
  grid.comm = MPI_COMM_WORLD;
  grid.nx = grid.ny = 400;
  spare = own = grid;
  OTHERS
  double *u = calloc(402 * 402, sizeof(double)), *v = calloc(402 * 402, sizeof(double));
  for (t = 0; t < 10; t++) {
    step(u, v, &grid);
    step(v, u, &grid);
  }
  MPI_Finalize();
  return 0;
}
"""


def is_split(text: str) -> bool:
    text = text.replace("BEFORE", "").replace("BODY", "").replace("OTHERS", "")
    return any("the other turns" in change.after.decode() for change in rewrite(read_c_text(text), Options()).changes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BODY", ""),
        ("BEFORE", "h->nx = 3;"),
        ("OTHERS", "within = &grid.nx;"),
        ("step(double *u, double *v, grid_t *g)", "step(double *u, double *v, const grid_t *restrict g)"),
        ("g->", "own."),
    ],
)
def test_divided(old: str, new: str) -> None:
    text = PROGRAM.replace("void change(grid_t *g) { g->nx--; }", "") if old == "g->" else PROGRAM
    assert is_split(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BODY", "g->nx = i;"),
        ("BODY", "g->up++;"),
        ("BODY", "change(g);"),
        ("BODY", "*within = 3;"),
        ("BEFORE", "g->nx--;"),
        ("BEFORE", "change(g);"),
        ("BEFORE", "g = h;"),
        ("BEFORE", "if (u[0] > 3) g = h;"),
        ("BEFORE", "*within = 7;"),
        ("BEFORE", "*g = spare;"),
        ("BEFORE", "MPI_Bcast(g, 4, MPI_INT, 0, MPI_COMM_WORLD);"),
        ("BEFORE", "MPI_Comm_size(g->comm, &g->nx);"),
        ("int nx, ny,", "unsigned nx, ny; int"),
        ("int nx, ny,", "volatile int nx; int ny,"),
        ("int nx, ny,", "double nx; int ny,"),
        (
            "grid_t *h = &spare;",
            "volatile grid_t *k = g;",
        ),
    ],
)
def test_whole(old: str, new: str) -> None:
    text = PROGRAM.replace("OTHERS", "within = &grid.nx;").replace(old, new)
    if "*k" in new:
        text = text.replace("g = h", "g = &own").replace("i <= g->nx", "i <= k->nx")
    assert not is_split(text)


def test_what_a_pointer_may_lead_to_is_written_through_another() -> None:
    text = PROGRAM.replace("BEFORE", "h->nx = 3;").replace("step(v, u, &grid)", "step(v, u, &spare)")
    assert not is_split(text)
