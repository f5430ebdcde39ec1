// The papers' programs, written by hand as the papers print them, for a simulated cluster (SimGrid's SMPI): what P0's
// and P1's authors ran, with nothing of Lapwing in it. Compute and messages take as long as the options say.
//
//     by_hand PROGRAM I J K LENGTH HEIGHT COMPUTE BYTES_I BYTES_J BYTES_K COST COST WHAT
//
// PROGRAM: blocking (P0 ProcB), overlap (P0 ProcNB and P4's algorithm 4, OVRLP), standard (P4's algorithm 3, STD),
// sci-blocking, sci-overlap (P1 table 1). I, J, K: the grid. LENGTH: points (in P4 sweeps) along the mapping dimension,
// HEIGHT of them a tile. COMPUTE, BYTES: seconds of a tile, and bytes of a message to each neighbour, per point of its
// height. The two costs are for P0's and P4's programs CPU seconds of a message at either end, and the same per byte;
// for P1's t_start_dma and t_sci_interrupt. WHAT: total, the slowest rank's seconds, or compute, the seconds in
// compute() of the rank that spent most there, with what interrupts add.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 3, DATA = 0, READY = 3, ARRIVED = 6 }; // tags, plus the axis
enum { BUFFERS = 2 };

static double costs[2], seconds_per_height;
static int next[AXES], prev[AXES], length, height, steps, bytes_per_height[AXES];
static char *sent[AXES][BUFFERS], *received[AXES][BUFFERS];
static double in_compute, compute_begin, compute_end; // P1: all of it, and the last compute()
static int interrupts;                                // that were serviced during compute()

static void spend(double seconds) {
    const double flops_per_second = 1e9; // of a host (lapwing/export/smpi.py)
    if (seconds > 0) smpi_execute_flops(seconds * flops_per_second);
}

static int height_of(int k) { return (k + 1) * height <= length ? height : length - k * height; }
static int bytes_of(int k, int a) { return height_of(k) * bytes_per_height[a]; }
static double compute_of(int k) { return height_of(k) * seconds_per_height; }

// -- P0, section 5.3 --------------------------------------------------------------------------------------------------

static void spend_message(int k, int a) { spend(costs[0] + bytes_of(k, a) * costs[1]); }

static void receive_tile(int k) {
    for (int a = 0; a < AXES; ++a) {
        if (prev[a] < 0) continue;
        MPI_Recv(received[a][0], bytes_of(k, a), MPI_BYTE, prev[a], DATA + a, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        spend_message(k, a);
    }
}

static void procedure_blocking(void) {
    for (int k = 0; k < steps; ++k) {
        receive_tile(k);
        spend(compute_of(k));
        for (int a = 0; a < AXES; ++a) {
            if (next[a] < 0) continue;
            spend_message(k, a);
            MPI_Ssend(sent[a][0], bytes_of(k, a), MPI_BYTE, next[a], DATA + a, MPI_COMM_WORLD);
        }
    }
}

// One step: send what the step before computed, receive what the next one needs, compute between.
static void step_overlapped(int k) {
    MPI_Request requests[2 * AXES];
    int open = 0;
    for (int a = 0; a < AXES; ++a) {
        if (next[a] < 0 || k == 0) continue;
        char *made = sent[a][k % BUFFERS];
        spend_message(k - 1, a);
        MPI_Isend(made, bytes_of(k - 1, a), MPI_BYTE, next[a], DATA + a, MPI_COMM_WORLD, &requests[open++]);
    }
    for (int a = 0; a < AXES; ++a) {
        if (prev[a] < 0 || k + 1 >= steps) continue;
        char *needed = received[a][k % BUFFERS];
        MPI_Irecv(needed, bytes_of(k + 1, a), MPI_BYTE, prev[a], DATA + a, MPI_COMM_WORLD, &requests[open++]);
    }
    if (k < steps) spend(compute_of(k));
    MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
    for (int a = 0; a < AXES; ++a) {
        if (prev[a] >= 0 && k + 1 < steps) spend_message(k + 1, a);
    }
}

static void procedure_nonblocking(void) {
    receive_tile(0);
    for (int k = 0; k <= steps; ++k) step_overlapped(k); // the last one sends only
}

// -- P4, algorithm 3 --------------------------------------------------------------------------------------------------

// As algorithm 3 in more dimensions: all receives are started together, and all sends. A send is over when the library
// has the data, so P4's program is no synchronous one as P0's ProcB is.
static void procedure_standard(void) {
    for (int k = 0; k < steps; ++k) {
        MPI_Request incoming[AXES], outgoing[AXES];
        int in = 0, out = 0;
        for (int a = 0; a < AXES; ++a) {
            if (prev[a] < 0) continue;
            MPI_Irecv(received[a][0], bytes_of(k, a), MPI_BYTE, prev[a], DATA + a, MPI_COMM_WORLD, &incoming[in++]);
        }
        MPI_Waitall(in, incoming, MPI_STATUSES_IGNORE);
        for (int a = 0; a < AXES; ++a) {
            if (prev[a] >= 0) spend_message(k, a);
        }
        spend(compute_of(k));
        for (int a = 0; a < AXES; ++a) {
            if (next[a] < 0) continue;
            spend_message(k, a);
            MPI_Isend(sent[a][0], bytes_of(k, a), MPI_BYTE, next[a], DATA + a, MPI_COMM_WORLD, &outgoing[out++]);
        }
        MPI_Waitall(out, outgoing, MPI_STATUSES_IGNORE);
    }
}

// -- P1, table 1 ------------------------------------------------------------------------------------------------------

static int has_any(const int *ranks) {
    for (int a = 0; a < AXES; ++a) {
        if (ranks[a] >= 0) return 1;
    }
    return 0;
}

// Of all that a rank has to tell or to wait for at one point of its loop: t_sync = 4 t_sci_interrupt, four such points.
static void spend_interrupt(const int *ranks) {
    if (has_any(ranks)) spend(costs[1]);
}

// An interrupt tells the time it was triggered at, so that the other side knows whether it was computing then.
static void trigger_interrupt(const int *ranks, int tag) {
    static double times[AXES];
    spend_interrupt(ranks);
    for (int a = 0; a < AXES; ++a) {
        if (ranks[a] < 0) continue;
        times[a] = MPI_Wtime();
        MPI_Send(&times[a], 1, MPI_DOUBLE, ranks[a], tag + a, MPI_COMM_WORLD);
    }
}

static void wait_for_interrupt(const int *ranks, int tag) {
    for (int a = 0; a < AXES; ++a) {
        double triggered;
        if (ranks[a] < 0) continue;
        MPI_Recv(&triggered, 1, MPI_DOUBLE, ranks[a], tag + a, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (triggered >= compute_begin && triggered < compute_end) ++interrupts;
    }
    spend_interrupt(ranks);
}

static int send_dma(int k, MPI_Request *requests) {
    const double start_dma = costs[0];
    int open = 0;
    if (has_any(next)) spend(start_dma);
    for (int a = 0; a < AXES; ++a) {
        if (next[a] < 0) continue;
        char *made = sent[a][k % BUFFERS];
        MPI_Isend(made, bytes_of(k, a), MPI_BYTE, next[a], DATA + a, MPI_COMM_WORLD, &requests[open++]);
    }
    return open;
}

static void compute(int k) {
    compute_begin = MPI_Wtime();
    spend(compute_of(k));
    compute_end = MPI_Wtime();
    in_compute += compute_end - compute_begin;
}

// A DMA transfer that ends while compute() runs interrupts it.
static void wait_for_dma(int open, MPI_Request *requests, int during_compute) {
    for (int a = 0; a < open; ++a) {
        MPI_Wait(&requests[a], MPI_STATUS_IGNORE);
        if (during_compute && MPI_Wtime() <= compute_end) ++interrupts;
    }
}

// The exporter's memory can be written once it has said so: the receive is posted before the interrupt.
static int export_segments(int k, MPI_Request *requests) {
    int open = 0;
    for (int a = 0; a < AXES; ++a) {
        if (prev[a] < 0) continue;
        char *segment = received[a][k % BUFFERS];
        MPI_Irecv(segment, bytes_of(k, a), MPI_BYTE, prev[a], DATA + a, MPI_COMM_WORLD, &requests[open++]);
    }
    return open;
}

// Overlapped: step k computes tile k, sends what step k - 1 made and gets what step k + 1 needs; blocking: the calls of
// compute() and send_dma() are swapped, so that it sends what it has just made.
static void procedure_sci(int overlapped) {
    const int last = overlapped ? steps : steps - 1;
    for (int k = -1; k <= last; ++k) {
        MPI_Request incoming[AXES], outgoing[AXES];
        int in = 0, out = 0;
        const int receives = k + 1 < steps, sends = k >= overlapped, computes = k >= 0 && k < steps;
        if (receives) {
            in = export_segments(k + 1, incoming);
            trigger_interrupt(prev, READY);
        }
        if (computes && !overlapped) compute(k);
        if (sends) wait_for_interrupt(next, READY);
        if (sends) out = send_dma(k - overlapped, outgoing);
        if (computes && overlapped) compute(k);
        wait_for_dma(out, outgoing, computes && overlapped);
        if (sends) trigger_interrupt(next, ARRIVED);
        if (receives) wait_for_interrupt(prev, ARRIVED);
        MPI_Waitall(in, incoming, MPI_STATUSES_IGNORE);
    }
    in_compute += interrupts * costs[1];
}

// ---------------------------------------------------------------------------------------------------------------------

static void place(int rank, const int *grid) {
    int stride = 1;
    for (int a = AXES - 1; a >= 0; stride *= grid[a--]) {
        const int at = rank / stride % grid[a];
        next[a] = at + 1 < grid[a] ? rank + stride : -1;
        prev[a] = at > 0 ? rank - stride : -1;
        for (int b = 0; b < BUFFERS; ++b) {
            sent[a][b] = calloc((size_t)(height * bytes_per_height[a]) + 1, 1);
            received[a][b] = calloc((size_t)(height * bytes_per_height[a]) + 1, 1);
        }
    }
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int grid[AXES] = {1, 1, 1};
    for (int a = 0; argc == 14 && a < AXES; ++a) grid[a] = atoi(argv[2 + a]);
    if (argc != 14 || ranks != grid[0] * grid[1] * grid[2]) {
        fprintf(stderr, "by_hand: its arguments are in by_hand.c, and there must be I x J x K ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *program = argv[1];
    length = atoi(argv[5]);
    height = atoi(argv[6]);
    steps = (length + height - 1) / height;
    seconds_per_height = atof(argv[7]);
    for (int a = 0; a < AXES; ++a) bytes_per_height[a] = atoi(argv[8 + a]);
    costs[0] = atof(argv[11]);
    costs[1] = atof(argv[12]);
    place(rank, grid);

    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (strcmp(program, "blocking") == 0) procedure_blocking();
    if (strcmp(program, "overlap") == 0) procedure_nonblocking();
    if (strcmp(program, "standard") == 0) procedure_standard();
    if (strcmp(program, "sci-blocking") == 0) procedure_sci(0);
    if (strcmp(program, "sci-overlap") == 0) procedure_sci(1);
    const double own = strcmp(argv[13], "compute") == 0 ? in_compute : MPI_Wtime() - begin;

    double slowest = 0;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) printf("by_hand: %s on %d ranks, %.9f seconds\n", argv[13], ranks, slowest);
    MPI_Finalize();
    return 0;
}
