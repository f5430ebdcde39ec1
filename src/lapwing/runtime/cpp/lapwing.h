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

/* The state one generated module works on. trap is 0, or the number of the first place where Python would have raised;
 * trap_sweep and trap_step, set by the runtime, say when. moves, set by the runtime as well: by how much the ends of a
 * box of several sweeps lie lower in each of them than in the one before. raises_nothing is 1 where lw_tile_inspect has
 * found LW_INSIDE for all that will be computed, else 0. */
typedef struct lw_tile {
    const lw_array *arrays;
    const lw_scalar *scalars;
    lw_scalar *accumulators;
    int64_t trap, trap_sweep, trap_step;
    lw_box moves;
    int64_t raises_nothing;
} lw_tile;

/* What lw_tile_inspect finds, which a module offers where it does not depend on what iterations compute:
 *     int64_t lw_tile_inspect(const lw_tile *tile, const lw_box *iterations);
 * all indices that are looked up are from the start of an axis, and nothing raises; some count from the end; something
 * may raise. */
enum { LW_INSIDE = 0, LW_FROM_END = 1, LW_MAY_RAISE = 2 };

/* What a generated module exports, under the names lw_tile_compute, lw_tile_pack, ...
 * A face is an array as written by one kind of access: its box is in iteration space. */
typedef struct lw_module {
    void (*compute)(lw_tile *tile, const lw_box *iterations);
    void (*pack)(const lw_tile *tile, int32_t face, const lw_box *iterations, void *out);
    void (*unpack)(lw_tile *tile, int32_t face, const lw_box *iterations, const void *in);
    /* Stores a face straight into a neighbour's arrays, which are mapped here. */
    void (*put)(const lw_tile *tile, int32_t face, const lw_box *iterations, const lw_array *there);
} lw_module;

/* A part of a message: the elements one face wrote in a box of iterations. Ranges of sweep loops are filled in by the
 * runtime with the sweep that wrote them. */
typedef struct lw_part {
    int64_t face, bytes;
    lw_box box;
} lw_part;

/* One message of a sweep. step is the step that produces it (outgoing) or the first that needs it (incoming).
 * free_step, of outgoing ones, says when the message may overwrite what its elements hold at the receiver: when that
 * has done so many of its steps, counted from the beginning of the sweep the message is made in (below 0: of the sweep
 * before). bytes are those of one sweep. */
typedef struct lw_message {
    int64_t step, free_step;
    int64_t bytes;
    int64_t first_part, parts;
} lw_message;

/* The messages of one direction between two ranks, in order: faces of one phase. lag is 0 when a sweep's messages are
 * used in the same sweep (flow dependences), 1 when in the next one (old values). depth is how many are in flight at
 * most. there are the arrays of the peer an outgoing channel leads to, as the phase numbers them, where they are mapped
 * into this process; else null. exchange is the phase before which all messages of a sweep may be exchanged at once,
 * because the steps that make them come before that phase and those that need them do not; or -1. */
typedef struct lw_channel {
    int64_t peer, phase, lag, exchange, depth;
    int64_t largest; /* bytes of the largest message of a sweep */
    int64_t first_message, messages;
    const lw_array *there;
    int64_t pass_sweep; /* which of the sweeps that share a pass its messages come from */
    int64_t peer_steps; /* the steps of a sweep of the peer's */
} lw_channel;

/* One of the nests that a sweep does in turn, with a module and a tile of its own. Its steps are those of a sweep from
 * first_step on, at least one; the ranges of sweep loops in their boxes are filled in from sweep_points, a row of
 * sweep_depth coordinates a sweep. */
typedef struct lw_phase {
    int64_t loops, sweep_depth;
    int64_t slice_grain; /* rows of slice_loop that tiles work on together */
    int64_t slice_loop;  /* steps are cut along this loop, so that communication progresses in between */
    int64_t slices_rows; /* whether they may be cut along the innermost loop as well */
    const int64_t *sweep_points;
    int64_t first_step;
    int64_t rewrites; /* whether its first step writes elements that messages of the step before it carry */
} lw_phase;

/* All a rank does in one run: sweep after sweep, all phases one after the other. Step boxes cover the rank's block of
 * every phase in order.
 *
 * A message carries the values of `batch` sweeps: each sweep's are captured right after it and applied right before it,
 * since the next sweep overwrites them in place. With batch > 1 time is the mapping dimension and batch the tile height
 * (P4); there are no channels of lag 1 then.
 *
 * pass_sweeps sweeps are done in one pass over the steps, each pass_skew steps behind the one before; every one of them
 * has channels of its own. Otherwise pass_sweeps is 1. opening_sweeps is 1 where sweep 0 computes nothing and sends
 * what the arrays hold, for what ranks have of their neighbours' elements is not there at the beginning (passes.hpp).
 *
 * Where there are pass_places they are the order of a pass, whatever pass_skew is: sweep of the pass and step, one
 * after the other. A last pass of fewer sweeps leaves out those of the others. There are no messages then.
 *
 * Where joined_sweeps is more than 1, what is called a sweep here is so many of them in a row, and last_joined the last
 * time: one call of a module computes them all, in a box whose ends move as step_moves says (time skewing). Of a
 * program with one phase, one sweep loop and nothing on disk. closing_sweeps is 1 where one more comes after the last,
 * which neither computes nor sends: ranks are given what those after them have left in their elements.
 */
typedef struct lw_program {
    int64_t phases, sweeps, steps, batch;
    int64_t apart; /* whether, inside a phase, a step neither touches what messages for the next one carry nor writes
                    * what messages of the one before carry */
    const lw_phase *phase; /* each of them */
    const lw_box *step_boxes;
    int64_t incoming, outgoing;
    const lw_channel *incoming_channels, *outgoing_channels;
    const lw_message *messages;
    const lw_part *parts;
    int64_t pass_sweeps, pass_skew, opening_sweeps;
    int64_t pass_places;
    const int64_t *places; /* two numbers each */
    int64_t joined_sweeps, last_joined, closing_sweeps;
    const lw_box *step_moves; /* a step; null where no ends move */
} lw_program;

/* Runs of bytes of an array that lie in a file, or in memory that stays: `count` of them along every one of `dims`
 * dimensions. `group` of them lie behind each other in the file without a gap. */
typedef struct lw_extent {
    int64_t file;   /* its number; -1: memory, from the address `offset` on */
    int64_t array;  /* its number among the streamed arrays */
    int64_t offset; /* of the first run, in bytes */
    int64_t row,
        column; /* where the first run lies in the array: an index of the first axis, and bytes from its first */
    int64_t run_bytes, group, dims;
    int64_t count[LW_MAX_LOOPS];
    int64_t file_stride[LW_MAX_LOOPS], memory_stride[LW_MAX_LOOPS]; /* bytes */
} lw_extent;

/* Where the slabs of the streamed arrays are, before a pass or after it. first_extent has an entry a slab and one more.
 */
typedef struct lw_generation {
    const char *const *files;
    const int64_t *first_extent;
    const lw_extent *extents;
    const uint64_t *keys; /* of its files, for their checksums */
} lw_generation;

/* An array of which only some slabs, ranges of its first axis, are in memory. Row r of pass p lies at row
 * (r + p * turn) mod ring_rows of a ring that is mapped twice, one behind the other. */
typedef struct lw_streamed {
    int64_t position; /* among the tile's arrays */
    int64_t written;  /* whether any pass writes it */
    int64_t ring_rows, row_bytes, turn;
    int64_t origin;            /* bytes from the beginning of row 0 in memory to element (0, ..., 0) */
    const int64_t *first_rows; /* of every step, the first row that it touches */
} lw_streamed;

/* What a rank says of a pass, or asks: all of its steps are computed, sum being that of what it has read for them; all
 * of its slabs are written, with the sum of what was; whether slabs of it may be written, which is asked until the
 * answer is not 0. Sums are those of checksum.hpp, over arrays that are written. */
typedef enum lw_event_of_pass {
    LW_PASS_COMPUTED = 0,
    LW_PASS_WRITTEN = 1,
    LW_PASS_MAY_BE_WRITTEN = 2
} lw_event_of_pass;
typedef int (*lw_notice)(int64_t event, int64_t pass, uint64_t sum);

/* The disk ring (P3): slabs are read, computed on and written back at the same time. There is a slab a step. At most
 * `slots` of them are in memory. */
typedef struct lw_disk {
    int64_t streamed, slabs, slots;
    const lw_streamed *arrays;
    const int64_t *slabs_before;    /* a step: how many slabs must have been read before it */
    const int64_t *slabs_after;     /* a step: how many slabs no later step of the sweep touches */
    const lw_generation *frontiers; /* what of the slabs stays in memory */
    int64_t passes;
    const lw_generation *reads, *writes; /* a pass */
    int64_t queue_depth, request_bytes, direct;
    lw_notice notice; /* called by the computing thread when a pass is computed, by another otherwise; or null */
} lw_disk;

/* What a rank did in an interval of its time; LW_TRANSFER is a message on its way, from when it was sent to when this
 * rank saw that it had come. LW_DISK is a wait for the disk, LW_READ and LW_WRITE are slabs on their way from it and to
 * it. */
typedef enum lw_activity {
    LW_COMPUTE = 0,
    LW_PACK = 1,
    LW_UNPACK = 2,
    LW_POST = 3,
    LW_WAIT = 4,
    LW_POLL = 5,
    LW_TRANSFER = 6,
    LW_DISK = 7,
    LW_READ = 8,
    LW_WRITE = 9,
    LW_ACTIVITIES = 10
} lw_activity;

/* Times are seconds of one clock for all ranks. seconds is what was spent: less than end - begin where slices of a step
 * and polls alternate. exposed is the part of a wait in which a message was on its way: waiting for a rank that has not
 * sent yet is not communication. thread is 0 for the computing thread and 1 for the helper, peer a rank or -1, phase
 * the number of the phase, which step belongs to. */
typedef struct lw_event {
    double begin, end, seconds, exposed;
    int64_t sweep, step, bytes;
    int32_t activity, thread, peer, phase;
} lw_event;

/* Room for events; events beyond it are counted, not kept. */
typedef struct lw_trace {
    lw_event *events;
    int64_t capacity, count;
} lw_trace;

/* Where the time of one rank went, in seconds, by lw_activity (transfers apart); exposed counts from the first to the
 * last computation. fill is what came before the first computation, drain what came after the last. messages and bytes
 * are those that were sent, read_bytes and written_bytes those that came from the disk and went there, and disk_busy is
 * how long there were any on their way. cpu_lost is the part of total in which the computing thread, which sleeps for
 * the disk alone, wanted a CPU and had none. */
typedef struct lw_times {
    double begin, total, fill, drain, exposed, disk_busy, cpu_lost;
    double activity[LW_ACTIVITIES];
    int64_t messages, bytes, read_bytes, written_bytes;
} lw_times;

/* What to do next: go on, stop at once, or compute no more but go on sending what is owed to the other ranks, of which
 * one has stopped computing in sweep `answer - LW_PASS_ON`, the first of those known. */
typedef enum lw_answer { LW_GO_ON = 0, LW_STOP = 1, LW_PASS_ON = 2 } lw_answer;

/* Called now and then with the steps done and their number, and with -1 done, whatever the answer, where this rank
 * computes no more because Python would raise and the others are yet to come to their end. */
typedef int64_t (*lw_progress)(int64_t done, int64_t total);

typedef enum lw_engine { LW_BLOCKING = 0, LW_OVERLAP = 1, LW_ONESIDED = 2, LW_HELPER = 3 } lw_engine;

/* How to run. In the MPI build comm is the Fortran handle of a communicator of all ranks of the program, in the serial
 * build it is not looked at. */
typedef struct lw_options {
    int64_t engine;
    int64_t comm;
    int64_t dry;             /* nothing is computed, packed or unpacked: the messages alone are timed */
    int64_t split_bytes;     /* messages are sent in parts of at most this size; 0: whole */
    int64_t helper_cpu;      /* the helper thread runs on this CPU alone; -1: wherever it likes */
    int64_t spin;            /* whether waiting threads have cores of their own to spin on */
    double slice_seconds;    /* how long to compute between two polls */
    double clock_offset;     /* added to this rank's clock to agree with the others' */
    double patience_seconds; /* a wait this long is an error; 0: never */
    double grace_seconds;    /* for the other ranks to come to their end after this one has met an error of the loop */
    int64_t interrupts;  /* whether SIGINT ends a run in the process's main thread at once: LW_STOPPED, or LW_FAILED */
    const lw_disk *disk; /* null where all is in memory */
} lw_options;

typedef enum lw_status { LW_DONE = 0, LW_TRAPPED = 1, LW_STOPPED = 2, LW_FAILED = 3 } lw_status;

/* Runs a program of one rank; modules and tiles are those of its phases. After LW_FAILED lw_failure says why.
 *
 * Where Python would raise, tile->trap says so, and the run ends: LW_TRAPPED. With grace_seconds the rank computes no
 * more but goes on sending what it owes the others, so that all come to their end: LW_DONE, unless that takes longer.
 */
int lw_run(const lw_program *program, const lw_module *modules, lw_tile *tiles, const lw_options *options,
           lw_progress progress, lw_trace *trace, lw_times *times);

/* What went wrong in the last run of this thread that failed: one line. */
const char *lw_failure(void);

/* Ends the process after so many seconds (0: never) with a text on standard error, unless lw_unwatch is called before:
 * for calls of MPI that nobody else can end. */
void lw_watch(double seconds, const char *text);
void lw_unwatch(void);

/* Seconds of the clock that runs are timed with. */
double lw_clock(void);

/* The MPI library this was built against, to be compared with mpi4py's; empty in the serial build. */
void lw_library_version(char *out, int64_t size);

#ifdef __cplusplus
}
#endif

#endif
