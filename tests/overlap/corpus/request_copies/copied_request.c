/* Requests that have gone to other variables: by an assignment, with a structure, as bytes, by value. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#define N 40
static double u[N + 2], r[N], z[4];
static void complete(MPI_Request request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }
int main(int argc, char **argv)
{
    struct halo { MPI_Request request; int tag; } mine, theirs;
    MPI_Request a[4], b, c;
    int rank, size, left, right;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 0; i < N + 2; i++) u[i] = i + 100 * rank;
    for (int step = 0; step < 3; step++) {
        MPI_Irecv(&z[0], 1, MPI_DOUBLE, left, 4, MPI_COMM_WORLD, &a[0]);
        MPI_Irecv(&z[1], 1, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, &mine.request);
        MPI_Irecv(&z[2], 1, MPI_DOUBLE, left, 6, MPI_COMM_WORLD, &a[2]);
        MPI_Irecv(&z[3], 1, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, &a[3]);
        b = a[0];
        theirs = mine;
        memcpy(&c, &a[2], sizeof c);
        for (int k = 0; k < 4; k++) MPI_Send(&u[k + 1], 1, MPI_DOUBLE, right, 4 + k, MPI_COMM_WORLD);
        MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, left, 1, &u[N + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&b, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) r[i] += z[0];
        MPI_Wait(&theirs.request, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) r[i] += 2 * z[1];
        MPI_Wait(&c, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) r[i] += 3 * z[2];
        complete(a[3]);
        for (int i = 0; i < N; i++) r[i] += 4 * z[3];
        for (int i = 0; i < N; i++) u[i + 1] += 0.25 * r[i] + u[N + 1];
    }
    for (int i = 0; i < N; i++) printf("%d %d %a %a\n", rank, i, u[i + 1], r[i]);
    MPI_Finalize();
}
