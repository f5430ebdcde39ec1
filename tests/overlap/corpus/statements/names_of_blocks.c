/* Types, enumerators and functions that a block declares, which mean others before. */
#include <mpi.h>
#include <stdio.h>

#define R 12
#define C 300

typedef double real;
enum { SHIFT = 3 };
static double u[R + 2][C], w[R + 2][C], row[C];
static int rank, size, up, down;

static void exchange(void)
{
    for (int j = 0; j < C; j++) u[1][j] += (real)j / 7;
    typedef float real;
    enum { LAST = R };
    for (int j = 0; j < C; j++) u[LAST][j] += (real)j / 3;
    MPI_Sendrecv(u[LAST], C, MPI_DOUBLE, down, 1, u[0], C, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int j = 0; j < C; j++) u[0][j] += (real)j / 3 + LAST;
}

int main(int argc, char **argv)
{
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = (rank + size - 1) % size;
    down = (rank + 1) % size;
    for (int i = 0; i < R + 2; i++)
        for (int j = 0; j < C; j++) u[i][j] = (i * 5 + j * 3 + rank) % 31;
    for (int t = 0; t < 4; t++) {
        exchange();
        MPI_Sendrecv(u[R], C, MPI_DOUBLE, down, 5, row, C, MPI_DOUBLE, up, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int j = 0; j < C; j++) w[1][j] += row[j];
        typedef float real;
        enum turn { SHIFT = 11 } turn = SHIFT;
        extern double later;
        for (int i = 2; i <= R; i++)
            for (int j = 0; j < C; j++) w[i][j] = 2 * u[i][j] + (real)j / SHIFT + later + turn;
        for (int i = 1; i <= R; i++)
            for (int j = 0; j < C; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * w[i][j];
    }
    for (int i = 0; i < R + 2; i++)
        for (int j = 0; j < C; j++) sum += u[i][j] * (7 * i + j + 1) + w[i][j] * (3 * i + j);
    printf("%d %a\n", rank, sum);
    MPI_Finalize();
    return 0;
}

double later = 0.5;
