/* Branches of conditional compilation that are decided, with code in the others that must stay where it is, and is never read. */
#include <mpi.h>
#include <stdio.h>

#define N 3000

static double a[N], b[N], c[N], d[N], e[N];
static int rank, size, next, previous;

static void exchange(int tag)
{
#if 1
    MPI_Sendrecv(a, N, MPI_DOUBLE, next, tag, b, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
    int broken = b[; // } never closed
#endif
}

static int receive(int tag)
{
    MPI_Status status;
    int count;
#if 1
    MPI_Recv(b, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    return count;
#else
    return wrong(count);
#endif
}

int main(int argc, char **argv)
{
    int i, step;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    for (i = 0; i < N; i++) a[i] = c[i] = i % 17 + rank;
    for (step = 0; step < 3; step++) {
#if 0
        MPI_Send(c, N, MPI_DOUBLE, next, 9, MPI_COMM_WORLD);
#else
        MPI_Request request;
        MPI_Irecv(b, N, MPI_DOUBLE, previous, 3, MPI_COMM_WORLD, &request);
        MPI_Send(a, N, MPI_DOUBLE, next, 3, MPI_COMM_WORLD);
#endif
        for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + c[i];
#if 1
        MPI_Wait(&request, MPI_STATUS_IGNORE);
#elif 0
        for (i = 0; i < N; i++) { d[i] = 0;
#endif
        for (i = 0; i < N; i++) e[i] = 0.5 * e[i] + b[i] + d[i];
        exchange(4);
        for (i = 0; i < N; i++) {
            d[i] += c[i];
#if 0
            c[i] = b[i] * broken;
#else
            c[i] += 1;
#endif
        }
        for (i = 0; i < N; i++) a[i] = 0.5 * a[i] + b[i];
        if (rank % 2 == 0) {
#if 1
            MPI_Send(a, N, MPI_DOUBLE, next, 5, MPI_COMM_WORLD);
            for (i = 0; i < N; i++) d[i] += 1;
            sum += receive(5);
#else
            barrier(
#endif
        } else {
            sum += receive(5);
            MPI_Send(a, N, MPI_DOUBLE, next, 5, MPI_COMM_WORLD);
        }
        for (i = 0; i < N; i++) e[i] += b[i];
    }
    for (i = 0; i < N; i++) sum = 0.5 * sum + a[i] + b[i] + c[i] + d[i] + e[i];
    printf("%a\n", sum);
#if 1
    MPI_Finalize();
#endif
    return 0;
}
