/* std::swap of pointers: it exchanges where they lead to, not what is there. */
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <utility>

#define N 400

int main(int argc, char **argv)
{
    int rank, size, i, step;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int up = (rank + size - 1) % size, down = (rank + 1) % size;
    double *u = (double *)calloc(N, sizeof *u), *v = (double *)calloc(N, sizeof *v), *w = (double *)calloc(N, sizeof *w);
    for (i = 0; i < N; i++) u[i] = v[i] = w[i] = i % 7 + rank + 1;
    for (step = 0; step < 4; step++) {
        MPI_Request q[2];
        MPI_Irecv(&u[N - 20], 20, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &q[0]);
        MPI_Isend(&w[20], 20, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &q[1]);
        std::swap(u, v);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        for (i = 20; i < N - 20; i++) u[i] = 0.25 * (v[i - 20] + v[i + 20]) + 1;
        for (i = 20; i < N - 20; i++) w[i] = u[i] * 0.5 + 1;
    }
    for (i = 0; i < N; i++) sum += (v[i] + u[i] + w[i]) * (i + 1);
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
