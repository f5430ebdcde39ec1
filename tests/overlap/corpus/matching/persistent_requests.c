#include <mpi.h>
#include <stdio.h>
#define N 200
static double in[N], out[N], u[N], w[N];
int main(int argc, char **argv) {
  int rank, size, i; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size; MPI_Request r[2];
  MPI_Send_init(out, N, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &r[0]);
  MPI_Recv_init(in, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, &r[1]);
  for (i = 0; i < N; i++) u[i] = rank * 3 + i, w[i] = 1;
  for (int it = 0; it < 6; it++) {
    for (i = 0; i < N; i++) out[i] = u[i] * 0.5;
    MPI_Startall(2, r);
    for (i = 0; i < N; i++) w[i] = w[i] * 0.5 + it;
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(w, N, MPI_DOUBLE, next, 1, u, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) w[i] = w[i] + in[i];
    for (i = 0; i < N; i++) u[i] = u[i] * 0.5 + in[i] + w[N - 1 - i];
    MPI_Start(&r[1]); MPI_Start(&r[0]);
    MPI_Sendrecv(u, N, MPI_DOUBLE, next, 1, w, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  }
  double h = 0; for (i = 0; i < N; i++) h = 0.5 * h + u[i] + w[i] + in[i]; printf("%a\n", h);
  MPI_Request_free(&r[0]); MPI_Request_free(&r[1]); MPI_Finalize(); return 0;
}
