/* Lapwing's one C ABI: what a generated tile module offers, and what the runtime does with it.
 *
 * The runtime moves bytes and keeps time; only the generated module knows what an element or a layout is.
 */
#ifndef LAPWING_H
#define LAPWING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LW_MAX_LOOPS = 8 };

/* A half-open box: lo[k] <= x[k] < hi[k]. Of iterations it is in normalised coordinates, where every loop ascends. */
typedef struct lw_box {
    int64_t lo[LW_MAX_LOOPS];
    int64_t hi[LW_MAX_LOOPS];
} lw_box;

/* An array in a rank's memory. base is the address element (0, ..., 0) would have, inside the allocation or not;
 * strides are in elements and the last one is 1; shape is that of the whole array. */
typedef struct lw_array {
    void *base;
    int64_t stride[LW_MAX_LOOPS];
    int64_t shape[LW_MAX_LOOPS];
} lw_array;

typedef union lw_scalar {
    int64_t i;
    double f;
} lw_scalar;

/* The state one generated module works on. trap is 0, or the number of the first place where Python would have raised.
 */
typedef struct lw_tile {
    const lw_array *arrays;
    const lw_scalar *scalars;
    lw_scalar *accumulators;
    int64_t trap;
} lw_tile;

/* What a generated module exports, under the names lw_tile_compute, lw_tile_pack, ...
 * A face is an array as written by one kind of access: its box is in iteration space. */
typedef struct lw_module {
    void (*compute)(lw_tile *tile, const lw_box *iterations);
    void (*pack)(const lw_tile *tile, int32_t face, const lw_box *iterations, void *out);
    void (*unpack)(lw_tile *tile, int32_t face, const lw_box *iterations, const void *in);
} lw_module;

/* A part of a message: the elements one face wrote in a box of iterations. Ranges of sweep loops are filled in by the
 * runtime with the sweep that wrote them. */
typedef struct lw_part {
    int64_t face, bytes;
    lw_box box;
} lw_part;

/* One message of a sweep. step is the step that produces it (outgoing) or that needs it (incoming). */
typedef struct lw_message {
    int64_t step;
    int64_t bytes;
    int64_t first_part, parts;
} lw_message;

/* The messages of one direction between two ranks, in order. lag is 0 when a sweep's messages are used in the same
 * sweep (flow dependences), 1 when in the next one (old values). depth is how many are in flight at most. */
typedef struct lw_channel {
    int64_t peer, lag, depth;
    int64_t slot_bytes;
    int64_t first_message, messages;
} lw_channel;

/* All a rank does in one run. Step boxes cover the rank's block in order; the ranges of sweep loops in them are filled
 * in from sweep_points, sweeps rows of sweep_depth coordinates. */
typedef struct lw_program {
    int64_t loops, sweep_depth, sweeps, steps;
    int64_t slice_grain; /* rows of slice_loop that tiles work on together */
    int64_t slice_loop;  /* steps are cut along this loop, so that communication progresses in between */
    const int64_t *sweep_points;
    const lw_box *step_boxes;
    int64_t incoming, outgoing;
    const lw_channel *incoming_channels, *outgoing_channels;
    const lw_message *messages;
    const lw_part *parts;
} lw_program;

/* Where the time of one rank went, in seconds. wait is all waiting; exposed the part of it, between the first and the
 * last computation, in which a message was on its way: waiting for a rank that has not sent yet is not communication.
 * fill is what came before the first computation, drain what came after the last. */
typedef struct lw_times {
    double total, compute, pack, unpack, wait, poll, fill, drain, exposed;
    int64_t messages, bytes;
} lw_times;

/* Called now and then with the steps done and their number; a non-zero answer stops the run. */
typedef int (*lw_progress)(int64_t done, int64_t total);

typedef enum lw_engine { LW_BLOCKING = 0, LW_OVERLAP = 1 } lw_engine;
typedef enum lw_status { LW_DONE = 0, LW_TRAPPED = 1, LW_STOPPED = 2 } lw_status;

/* Runs a program of one rank. In the MPI build comm is the Fortran handle of a communicator of all its ranks, in the
 * serial build it is not looked at. clock_offset, in seconds, makes this rank's clock agree with the others'. With dry
 * set nothing is computed or packed: the messages alone are timed. */
int lw_run(const lw_program *program, const lw_module *module, lw_tile *tile, int engine, int64_t comm,
           double clock_offset, int dry, lw_progress progress, lw_times *times);

/* Seconds of the clock that runs are timed with. */
double lw_clock(void);

/* The MPI library this was built against, to be compared with mpi4py's; empty in the serial build. */
void lw_library_version(char *out, int64_t size);

#ifdef __cplusplus
}
#endif

#endif
