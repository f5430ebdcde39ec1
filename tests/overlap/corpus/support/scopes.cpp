// Functions of namespaces and classes, overloaded, with default arguments; MPI's declarations come late and conditionally.
// What is added must stand where MPI is declared, and be linked whatever scope calls it.
/*
#include <nowhere.h>
*/
#include <stdio.h>
#ifdef __cplusplus
#include <mpi.h> /* over
two lines */
#endif

#define N 3000

namespace solver {

static double a[N], b[N], c[N], low[N], high[N], own[N];
static int next, previous;

class Halo {
 public:
  int tag;
  double sum[N];
  void exchange(const double *x);
  void inside(const double *x) {
    MPI_Sendrecv(x, N, MPI_DOUBLE, next, tag + 1, high, N, MPI_DOUBLE, previous, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) own[i] = 0.5 * own[i] + i;
    for (int i = 0; i < N; i++) sum[i] += high[i];
  }
};

void Halo::exchange(const double *x) {
  MPI_Sendrecv(x, N, MPI_DOUBLE, next, tag, low, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) own[i] = 0.5 * own[i] + i;
  for (int i = 0; i < N; i++) sum[i] = 0.5 * sum[i] + low[i];
}

void swap(int tag) {
  MPI_Sendrecv(a, N, MPI_DOUBLE, next, tag, low, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) own[i] = 0.5 * own[i] + i;
  for (int i = 0; i < N; i++) c[i] = 0.5 * c[i] + low[i];
}

void work(double f) {
  for (int i = 0; i < N; i++) b[i] = f * b[i] + i;
}

void end() { MPI_Finalize(); }

}  // namespace solver

static void swap(int tag = 31, double f = 0.5) {
  using namespace solver;
  MPI_Sendrecv(b, N, MPI_DOUBLE, next, tag, high, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) own[i] = 0.5 * own[i] + i;
  for (int i = 0; i < N; i++) a[i] = f * a[i] + high[i];
}

static void scale(double &f) {
  for (int i = 0; i < N; i++) solver::c[i] = f * solver::c[i] + 1;
}

static solver::Halo halo;

int main(int argc, char **argv) {
  int rank, size;
  double f = 0.25;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  solver::next = (rank + 1) % size;
  solver::previous = (rank + size - 1) % size;
  halo.tag = 50;
  for (int i = 0; i < N; i++) solver::a[i] = i % 11 + rank;
  for (int step = 0; step < 3; step++) {
    solver::swap(7);
    solver::work(0.5);
    swap();
    scale(f);
    halo.exchange(solver::a);
    solver::work(0.125);
    halo.inside(solver::b);
    scale(f);
  }
  double sum = 0;
  for (int i = 0; i < N; i++) sum = 0.5 * sum + solver::a[i] + solver::b[i] + solver::c[i] + halo.sum[i];
  printf("%a\n", sum);
  solver::end();
  return 0;
}
