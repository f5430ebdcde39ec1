#include <mpi.h>
#include <stdio.h>
#define N 400
/* the message changes counts, peers, loop bounds, even the pointer that the next call uses; short messages; status used */
static struct { int n, to; double x[N]; } in, out; static double w[N], z[N]; static double *tab[4] = {w, z, in.x, out.x};
int main(int argc, char **argv) {
  int rank, size, i, got; MPI_Status st; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size; int hdr[16] = {0}, hin[16] = {0};
  for (i = 0; i < N; i++) out.x[i] = i + rank, w[i] = i; for (i = 0; i < 16; i++) hdr[i] = i;
  for (int it = 0; it < 5; it++) {
    hdr[0] = 50 + 10 * rank + it; hdr[1] = (rank + it) % 4;
    MPI_Sendrecv(hdr, 16, MPI_INT, next, 1, hin, 16, MPI_INT, prev, 1, MPI_COMM_WORLD, &st);
    for (i = 0; i < N; i++) w[i] = 0.5 * w[i] + st.MPI_TAG;
    MPI_Sendrecv(out.x, hdr[0], MPI_DOUBLE, next, 2, in.x, hin[0], MPI_DOUBLE, prev, 2, MPI_COMM_WORLD, &st);
    for (i = 0; i < N; i++) z[i] = 0.5 * z[i] + i;
    MPI_Get_count(&st, MPI_DOUBLE, &got);
    for (i = 0; i < got; i++) tab[hin[1]][i] += 1;
    MPI_Sendrecv(tab[hin[1]], N, MPI_DOUBLE, next, 2, tab[(hin[1] + 1) % 4], N, MPI_DOUBLE, prev, 2, MPI_COMM_WORLD, &st);
    for (i = 0; i < N; i++) w[i] = 0.5 * w[i];
    MPI_Sendrecv(w, N / 2, MPI_DOUBLE, next, 3, in.x, N / 2, MPI_DOUBLE, prev, 4 - 1, MPI_COMM_WORLD, &st) ;
    for (i = 0; i < N; i++) out.x[i] = 0.5 * in.x[i] + w[i] + z[i];
  }
  double h = got; for (i = 0; i < N; i++) h = 0.5 * h + in.x[i] + out.x[i] + w[i] + z[i]; printf("%a\n", h);
  MPI_Finalize(); return 0;
}
