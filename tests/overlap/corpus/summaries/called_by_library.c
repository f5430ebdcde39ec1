/* Functions of the program that a library calls, or MPI itself. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 400

static double u[N], v[N], h[N], base;
static int rank, size, order[4] = {0, 1, 2, 3};

static int descending(const void *a, const void *b)
{
    double d = h[*(const int *)b] - h[*(const int *)a];
    return d < 0 ? -1 : d > 0;
}

static int counting(const void *a, const void *b)
{
    base += h[5];
    return *(const int *)a - *(const int *)b;
}

static int forgotten(MPI_Comm comm, int key, void *value, void *extra)
{
    base += ((double *)value)[3];
    return MPI_SUCCESS;
}

static void get(int tag)
{
    MPI_Sendrecv(u, N, MPI_DOUBLE, (rank + 1) % size, tag, h, N, MPI_DOUBLE, (rank + size - 1) % size, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int i, key, wanted = 2;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forgotten, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, h);
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    get(1);
    qsort(order, 4, sizeof(int), descending);
    for (i = 0; i < N; i++) v[i] = u[i] * order[0];
    get(2);
    qsort(order, 4, sizeof(int), counting);
    sum += bsearch(&wanted, order, 4, sizeof(int), counting) != NULL;
    for (i = 0; i < N; i++) v[i] += u[i] * base;
    get(3);
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    for (i = 0; i < N; i++) v[i] += u[i] * base;
    for (i = 0; i < N; i++) sum += v[i] * (i + 1) + h[i];
    printf("%a\n", sum);
    MPI_Comm_free_keyval(&key);
    MPI_Finalize();
    return 0;
}
