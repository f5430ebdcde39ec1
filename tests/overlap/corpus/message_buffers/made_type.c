/* Variables for types that are basic ones only if nobody writes them otherwise: by their addresses, or in a declaration. */
#include <mpi.h>
#include <stdio.h>

#define N 400

static double u[N], v[N], h[N];
static int rank, size;

int main(int argc, char **argv)
{
    int i;
    double sum = 0;
    MPI_Datatype made, spaced;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(N / 2, 1, 2, MPI_DOUBLE, &made);
    if (argc > 5) made = MPI_DOUBLE;
    MPI_Type_commit(&made);
    MPI_Type_vector(N / 2, 1, 2, MPI_DOUBLE, &spaced);
    MPI_Type_commit(&spaced);
    MPI_Datatype type = spaced;
    if (argc > 5) type = MPI_DOUBLE;
    for (i = 0; i < N; i++) u[i] = i % 7 + rank + 1;
    MPI_Sendrecv(u, 1, made, (rank + 1) % size, 1, h, 1, made, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) v[i] = 2 * u[i];
    for (i = 0; i < N; i++) v[i] += h[i];
    MPI_Sendrecv(v, 1, type, (rank + 1) % size, 2, h, 1, type, (rank + size - 1) % size, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) u[i] = 3 * v[i];
    for (i = 0; i < N; i++) u[i] += h[i];
    for (i = 0; i < N; i++) sum += (v[i] + u[i]) * (i + 1) + h[i];
    printf("%a\n", sum);
    MPI_Finalize();
    return 0;
}
