/* Local variables that the first half of a function hands on: components, and what pointers lead to. */
#include <mpi.h>
#include <stdio.h>

#define N 40

struct pair { double x, v[3]; };
static double u[N + 2], w[N + 2], big[400], *kept;
static int rank, ranks, left, right;

static void swap(double *a) {
  MPI_Sendrecv(&a[1], 1, MPI_DOUBLE, left, 1, &a[N + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void component(double *a) {
  struct pair t;
  t.v[2] = 2 * a[1];
  a[1] += t.v[2];
  swap(a);
  w[1] += t.v[2] + a[N + 1];
}

static void of_an_array(double *a) {
  struct pair t[4];
  t[2].x = 2 * a[1];
  a[1] += t[2].x;
  swap(a);
  w[1] += t[2].x + a[N + 1];
}

static void kept_address(double *a) {
  double own;
  kept = &own;
  own = 2 * a[1];
  a[1] += own;
  swap(a);
  w[1] += *kept + a[N + 1];
}

static void work(void) {
  for (int i = 0; i < 400; i++) big[i] += i;
}

int main(int argc, char **argv) {
  double sums[3] = {0, 0, 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  left = (rank + ranks - 1) % ranks;
  right = (rank + 1) % ranks;
  for (int i = 0; i < N + 2; i++) u[i] = i + 100 * rank;
  for (int step = 0; step < 3; step++) {
    component(u);
    work();
    of_an_array(u);
    work();
    kept_address(u);
    work();
    for (int i = 1; i <= N; i++) u[i] += 0.25 * u[i + 1];
  }
  for (int i = 0; i < N + 2; i++) sums[0] += u[i], sums[1] += w[i];
  for (int i = 0; i < 400; i++) sums[2] += big[i];
  printf("%d: %a %a %a\n", rank, sums[0], sums[1], sums[2]);
  MPI_Finalize();
  return 0;
}
