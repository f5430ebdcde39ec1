/* The peer of bench/overlap/overlap.py: the pipeline a good programmer writes by hand, as in P0.
 *
 * ProcNB: receives for the next tile and sends of the previous one are started, the tile is computed, and only then are
 * they waited for, with two buffers a neighbour. MPI is not called inside a tile. ProcB: receive, compute, synchronous
 * send.
 *
 * It computes, packs and unpacks with Lapwing's own generated tile, and is called in the place of Lapwing's runtime
 * (lw_run with LW_OVERLAP or LW_BLOCKING), so that nothing but the communication differs.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lapwing.h"

enum { BUFFERS = 2 };

/* One neighbour in one direction: two buffers, and the requests of the messages in them. */
typedef struct neighbour {
    const lw_channel *channel;
    char *buffer[BUFFERS];
    int rank;
} neighbour;

typedef struct pipeline {
    const lw_program *program;
    const lw_module *module;
    lw_tile *tile;
    MPI_Comm comm;
    int64_t part_bytes; /* messages travel in parts of at most this size; 0: whole */
    int64_t tiles;
    neighbour *from, *to;
    MPI_Request *requests;
    int open;
    lw_times *times;
    double mark;
} pipeline;

static char failure[200];

/* Adds the time since the last call to an activity. */
static void lap(pipeline *p, lw_activity activity) {
    const double now = lw_clock();
    p->times->activity[activity] += now - p->mark;
    p->mark = now;
}

static const lw_message *message_of(const pipeline *p, const lw_channel *channel, int64_t tile) {
    return p->program->messages + channel->first_message + tile % p->program->steps;
}

/* The sweeps of a tile: many where time is the mapping dimension, else one. */
static int64_t first_sweep(const pipeline *p, int64_t tile) { return tile / p->program->steps * p->program->batch; }

static int64_t sweeps_of(const pipeline *p, int64_t tile) {
    const int64_t left = p->program->sweeps - first_sweep(p, tile);
    return left < p->program->batch ? left : p->program->batch;
}

static int64_t bytes_of(const pipeline *p, const lw_channel *channel, int64_t tile) {
    return message_of(p, channel, tile)->bytes * sweeps_of(p, tile);
}

static lw_box in_sweep(const pipeline *p, lw_box box, int64_t sweep) {
    const lw_phase *phase = p->program->phase; /* the only one */
    for (int64_t k = 0; k < phase->sweep_depth; ++k) {
        box.lo[k] = phase->sweep_points[sweep * phase->sweep_depth + k];
        box.hi[k] = box.lo[k] + 1;
    }
    return box;
}

/* Calls pack or unpack for one sweep of a message. */
static void copy_faces(pipeline *p, const neighbour *n, int64_t tile, int64_t sweep, lw_activity activity) {
    const lw_message *message = message_of(p, n->channel, tile);
    char *at = n->buffer[tile % BUFFERS] + (sweep - first_sweep(p, tile)) * message->bytes;
    for (int64_t k = 0; k < message->parts; ++k) {
        const lw_part *part = p->program->parts + message->first_part + k;
        const lw_box box = in_sweep(p, part->box, sweep);
        if (activity == LW_PACK) {
            p->module->pack(p->tile, (int32_t)part->face, &box, at);
        } else {
            p->module->unpack(p->tile, (int32_t)part->face, &box, at);
        }
        at += part->bytes;
    }
    lap(p, activity);
}

static void compute(pipeline *p, int64_t tile) {
    const int64_t first = first_sweep(p, tile);
    for (int64_t sweep = first; sweep < first + sweeps_of(p, tile); ++sweep) {
        for (int64_t k = 0; k < p->program->incoming; ++k) copy_faces(p, p->from + k, tile, sweep, LW_UNPACK);
        const lw_box box = in_sweep(p, p->program->step_boxes[tile % p->program->steps], sweep);
        p->module->compute(p->tile, &box);
        lap(p, LW_COMPUTE);
        for (int64_t k = 0; k < p->program->outgoing; ++k) copy_faces(p, p->to + k, tile, sweep, LW_PACK);
    }
}

static void receive(pipeline *p, int64_t tile) {
    if (tile >= p->tiles) return;
    for (int64_t k = 0; k < p->program->incoming; ++k) {
        const int64_t bytes = bytes_of(p, p->from[k].channel, tile), most = p->part_bytes > 0 ? p->part_bytes : bytes;
        for (int64_t at = 0; at < bytes; at += most) {
            MPI_Irecv(p->from[k].buffer[tile % BUFFERS] + at, (int)(bytes - at < most ? bytes - at : most), MPI_BYTE,
                      p->from[k].rank, 0, p->comm, p->requests + p->open++);
        }
    }
    lap(p, LW_POST);
}

static void send(pipeline *p, int64_t tile) {
    if (tile < 0) return;
    for (int64_t k = 0; k < p->program->outgoing; ++k) {
        const int64_t bytes = bytes_of(p, p->to[k].channel, tile), most = p->part_bytes > 0 ? p->part_bytes : bytes;
        for (int64_t at = 0; at < bytes; at += most) {
            MPI_Isend(p->to[k].buffer[tile % BUFFERS] + at, (int)(bytes - at < most ? bytes - at : most), MPI_BYTE,
                      p->to[k].rank, 0, p->comm, p->requests + p->open++);
        }
        p->times->messages += 1;
        p->times->bytes += bytes;
    }
    lap(p, LW_POST);
}

static void send_synchronously(pipeline *p, int64_t tile) {
    for (int64_t k = 0; k < p->program->outgoing; ++k) {
        const int64_t bytes = bytes_of(p, p->to[k].channel, tile);
        MPI_Ssend(p->to[k].buffer[tile % BUFFERS], (int)bytes, MPI_BYTE, p->to[k].rank, 0, p->comm);
        p->times->messages += 1;
        p->times->bytes += bytes;
    }
    lap(p, LW_WAIT);
}

static void wait_all(pipeline *p) {
    MPI_Waitall(p->open, p->requests, MPI_STATUSES_IGNORE);
    p->open = 0;
    lap(p, LW_WAIT);
}

/* P0's ProcNB; the first tile has to be waited for, and the last one to be sent, with nothing to compute meanwhile. */
static void run_nonblocking(pipeline *p) {
    const double begin = p->mark;
    receive(p, 0);
    wait_all(p);
    p->times->fill = p->mark - begin;
    for (int64_t tile = 0; tile < p->tiles; ++tile) {
        send(p, tile - 1);
        receive(p, tile + 1);
        compute(p, tile);
        if (tile + 1 == p->tiles) break;
        const double before = p->mark;
        wait_all(p);
        p->times->exposed += p->mark - before;
    }
    const double last = p->mark;
    send(p, p->tiles - 1);
    wait_all(p);
    p->times->drain = p->mark - last;
}

/* P0's ProcB. */
static void run_blocking(pipeline *p) {
    const double begin = p->mark;
    for (int64_t tile = 0; tile < p->tiles; ++tile) {
        const double before = p->mark;
        receive(p, tile);
        wait_all(p);
        if (tile == 0) {
            p->times->fill = p->mark - begin;
        } else {
            p->times->exposed += p->mark - before;
        }
        compute(p, tile);
        const double computed = p->mark;
        send_synchronously(p, tile);
        if (tile + 1 == p->tiles) {
            p->times->drain = p->mark - computed;
        } else {
            p->times->exposed += p->mark - computed;
        }
    }
}

/* Whether every tile has one message to and from each neighbour: all that this pipeline is written for. */
static int is_simple(const lw_program *program, const lw_channel *channels, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
        if (channels[k].lag != 0 || channels[k].messages != program->steps) return 0;
        for (int64_t m = 0; m < channels[k].messages; ++m) {
            if (program->messages[channels[k].first_message + m].step != m) return 0;
        }
    }
    return program->batch == 1 || program->steps == 1;
}

static neighbour *neighbours(const lw_program *program, const lw_channel *channels, int64_t count, int64_t part_bytes,
                             size_t *most_requests) {
    neighbour *made = calloc((size_t)count + 1, sizeof *made);
    for (int64_t k = 0; k < count; ++k) {
        const int64_t bytes = channels[k].largest * program->batch;
        made[k].channel = channels + k;
        made[k].rank = (int)channels[k].peer;
        for (int b = 0; b < BUFFERS; ++b) made[k].buffer[b] = malloc((size_t)bytes);
        *most_requests += part_bytes > 0 ? (size_t)(bytes / part_bytes) + 1 : 1;
    }
    return made;
}

static void free_neighbours(neighbour *all, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
        for (int b = 0; b < BUFFERS; ++b) free(all[k].buffer[b]);
    }
    free(all);
}

int lw_run(const lw_program *program, const lw_module *module, lw_tile *tile, const lw_options *options,
           lw_progress progress, lw_trace *trace, lw_times *times) {
    (void)progress;
    if (!is_simple(program, program->incoming_channels, program->incoming) ||
        !is_simple(program, program->outgoing_channels, program->outgoing)) {
        snprintf(failure, sizeof failure, "the peer does only pipelines with one message a tile between neighbours");
        return LW_FAILED;
    }
    memset(times, 0, sizeof *times);
    trace->count = 0;
    size_t most_requests = 1;
    const int64_t part_bytes = options->split_bytes;
    pipeline p = {.program = program, .module = module, .tile = tile, .part_bytes = part_bytes, .times = times};
    p.comm = MPI_Comm_f2c((MPI_Fint)options->comm);
    p.tiles = (program->sweeps + program->batch - 1) / program->batch * program->steps;
    p.from = neighbours(program, program->incoming_channels, program->incoming, part_bytes, &most_requests);
    p.to = neighbours(program, program->outgoing_channels, program->outgoing, part_bytes, &most_requests);
    p.requests = malloc(most_requests * sizeof *p.requests);
    const double begin = p.mark = lw_clock();
    if (options->engine == LW_BLOCKING) {
        run_blocking(&p);
    } else {
        run_nonblocking(&p);
    }
    times->begin = begin + options->clock_offset;
    times->total = p.mark - begin;
    free(p.requests);
    free_neighbours(p.from, program->incoming);
    free_neighbours(p.to, program->outgoing);
    return tile->trap == 0 ? LW_DONE : LW_TRAPPED;
}

const char *lw_failure(void) { return failure; }

double lw_clock(void) { return MPI_Wtime(); }
