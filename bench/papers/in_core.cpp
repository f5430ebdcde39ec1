// P3's in-core program: the mean filter over a matrix that the system's virtual memory brings from disk and back, with
// nothing of Lapwing in it.
//
//     in_core FILE N SWEEPS HEIGHT
//
// FILE holds N x N doubles, row after row; all ranks map it. Each has a block of columns, and goes down it in slabs of
// HEIGHT rows, a sweep after the other. A rank may compute on a slab once its left neighbour has done so in the same
// sweep, and its right neighbour in the one before. Frontiers are in the mapped file as well, so that the top frontier,
// which the paper's program reads and sends before each sweep, costs nothing here.
//
// Rank 0 prints the seconds from the first access until all is on disk.
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

enum Tag { from_left, from_right };

void wait_for(int rank, Tag tag) { MPI_Recv(nullptr, 0, MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

void tell(int rank, Tag tag) { MPI_Send(nullptr, 0, MPI_BYTE, rank, tag, MPI_COMM_WORLD); }

void filter(double *u, long n, long top, long bottom, long left, long right) {
    for (long i = top; i < bottom; ++i) {
        double *here = u + i * n;
        for (long j = left; j < right; ++j)
            here[j] = 0.2 * (here[j] + here[j - n] + here[j - 1] + here[j + n] + here[j + 1]);
    }
}

int fail(const char *what) {
    std::perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) return fail("in_core FILE N SWEEPS HEIGHT");
    const long n = std::atol(argv[2]), sweeps = std::atol(argv[3]), height = std::atol(argv[4]);

    const int file = open(argv[1], O_RDWR);
    if (file < 0) return fail(argv[1]);
    const std::size_t bytes = sizeof(double) * n * n;
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return fail(argv[1]);
    double *u = static_cast<double *>(mapped);
    const long left = 1 + (n - 2) * rank / ranks, right = 1 + (n - 2) * (rank + 1) / ranks;
    const bool first = rank == 0, last = rank == ranks - 1;

    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (long sweep = 0; sweep < sweeps; ++sweep) {
        for (long top = 1; top < n - 1; top += height) {
            if (!first) wait_for(rank - 1, from_left);
            if (!last && sweep > 0) wait_for(rank + 1, from_right);
            filter(u, n, top, std::min(top + height, n - 1), left, right);
            if (!last) tell(rank + 1, from_left);
            if (!first && sweep < sweeps - 1) tell(rank - 1, from_right);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (first && (msync(mapped, bytes, MS_SYNC) != 0 || fsync(file) != 0)) return fail(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (first) std::printf("%.6f\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
