/* A wait of a null request, under a condition that the head of another statement has changed since the receive. */
#include <mpi.h>
#include <stdio.h>
#define N 400
static double w[N], v[N], u[N];
static MPI_Request sent;
int left, right;
static double receive(int step, int kind)
{
    int c = step & 1, i;
    double base = 0;
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Isend(v, N, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, &sent);
    if (c > 0) MPI_Irecv(w, N, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, &q);
    for (i = 0; i < N; i++) u[i] += 1;
    if (kind == 0) { if (c++ > 5) base++; }
    else if (kind == 1) { while (c++ < 3) base++; }
    else { for (c = 0; c < 2; c++) base += c; }
    if (c > 0) MPI_Wait(&q, MPI_STATUS_IGNORE);
    if (!(step & 1)) MPI_Recv(w, N, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    return base + w[3] * step + u[2];
}
int main(int argc, char **argv)
{
    int rank, size, i, step;
    double base = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (i = 0; i < N; i++) v[i] = i + rank;
    for (step = 0; step < 12; step++) base += receive(step, step % 3);
    printf("%a\n", base);
    MPI_Finalize();
    return 0;
}
