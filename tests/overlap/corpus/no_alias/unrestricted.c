/* Pointers to one memory: the temporary of an exchange, and arguments of a type that is only named like restrict. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef double unrestricted;

static void relax(unrestricted *a, unrestricted *b, int nx, int ny)
{
    const int ld = nx + 2;
    for (int j = 1; j <= ny; j++)
        for (int i = 1; i <= nx; i++) b[j * ld + i] = 0.5 * (a[(j - 1) * ld + i] + a[(j + 1) * ld + i]);
}

int main(int argc, char **argv)
{
    int rank, size, nx = 40, ny = 20, step;
    double sum = 0, *t;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int up = (rank + size - 1) % size, down = (rank + 1) % size;
    if (argc > 5) nx = 50, ny = 30;
    const int ld = nx + 2;
    double *u = calloc(ld * (ny + 2), sizeof *u), *v = calloc(ld * (ny + 2), sizeof *v);
    for (int i = 0; i < ld * (ny + 2); i++) u[i] = v[i] = i % 7 + rank + 1;
    t = u; u = v; v = t;
    for (step = 0; step < 3; step++) {
        MPI_Sendrecv(&v[ld], ld, MPI_DOUBLE, up, 1, &v[(ny + 1) * ld], ld, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int j = 1; j <= ny; j++)
            for (int i = 1; i <= nx; i++) t[j * ld + i] = 0.5 * (v[(j - 1) * ld + i] + v[(j + 1) * ld + i]);
    }
    for (step = 0; step < 3; step++) {
        MPI_Sendrecv(&u[ld], ld, MPI_DOUBLE, up, 2, &u[(ny + 1) * ld], ld, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        relax(u, u, nx, ny);
    }
    for (int i = 0; i < ld * (ny + 2); i++) sum += (v[i] + u[i]) * (i + 1);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
