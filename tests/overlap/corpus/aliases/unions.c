#include <mpi.h>
#include <stdio.h>
#include <string.h>
#define N 400
typedef union { double d[N]; long long l[N]; unsigned char b[8 * N]; } U;
struct msg { int head; U u; double tail; };
static struct msg a, b; static U w;
int main(int argc, char **argv) {
  int rank, size, i; MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  for (i = 0; i < N; i++) { a.u.d[i] = i * 0.5 + rank; b.u.l[i] = i; w.d[i] = 1.0; }
  long long sum = 0; double acc = 0;
  for (int it = 0; it < 5; it++) {
    MPI_Request r;
    MPI_Irecv(b.u.d, N, MPI_DOUBLE, prev, it, MPI_COMM_WORLD, &r);
    MPI_Send(a.u.d, N, MPI_DOUBLE, next, it, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) w.d[i] = w.d[i] * 0.5 + i;
    for (i = 0; i < N; i++) sum += b.u.l[i] >> 40;
    for (i = 0; i < 8 * N; i++) acc += b.u.b[i];
    a.u.b[8 * it] ^= 0x5; a.u.d[N - 1 - it] = acc;
    memmove(a.u.d + 1, a.u.d, (N - 1) * sizeof(double));
  }
  printf("%lld %a %a\n", sum, acc, w.d[7]);
  MPI_Finalize(); return 0;
}
