/* Ranks take turns with a file, and only messages say whose turn it is: files and messages keep their order. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define N 100

static double a[N], b[N], c[N], d[N];

static void say(const char *name, const char *what, double x) {
  FILE *f = fopen(name, "a");
  fprintf(f, "%s %a\n", what, x);
  fclose(f);
}

int main(int argc, char **argv) {
  int rank, size, token[20] = {0};
  char name[64] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) snprintf(name, sizeof name, "shared.%d", (int)getpid());
  MPI_Bcast(name, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int i = 0; i < N; i++) a[i] = i + rank;
  for (int it = 0; it < 3; it++) {
    for (int i = 0; i < N; i++) c[i] = 0.5 * c[i] + a[i];
    if (rank > 0) MPI_Recv(token, 20, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    say(name, "turn", c[3]);
    if (rank < size - 1) MPI_Send(token, 20, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) c[i] = 0.5 * c[i] + i;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) a[i] = 0.5 * a[i] + i;
    for (int k = 0; rank == 0 && k < 20000; k++) for (int i = 0; i < N; i++) d[i] = 0.5 * d[i] + i;
    if (rank == 0) say(name, "first", d[4]);
    MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) c[i] = 0.5 * c[i] + i;
    if (rank == size - 1) say(name, "last", b[4]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) {
    char line[99];
    FILE *f = fopen(name, "r");
    while (fgets(line, sizeof line, f) != NULL) printf("%s", line);
    fclose(f);
    unlink(name);
  }
  MPI_Finalize();
  return 0;
}
