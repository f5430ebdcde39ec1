// What exported programs have in common: what fails on one rank fails on all, how runs are made, and the main.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "options.hpp"
#include "program_file.hpp"

namespace lapwing {

constexpr double patience_seconds = 600;    // before a rank that keeps others waiting is taken for dead
constexpr double whole_step_seconds = 1e18; // the simulator moves messages without being polled

inline int rank_of(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

inline int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

// Collective. What fails on some rank fails on all, and is said once.
template <class Action>
inline void together(Action action) {
    std::string what;
    try {
        action();
    } catch (const std::exception &error) {
        what = error.what();
    }
    const int own = what.empty() ? size_of(MPI_COMM_WORLD) : rank_of(MPI_COMM_WORLD);
    int first = 0;
    MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == size_of(MPI_COMM_WORLD)) return;
    throw Failure(first == own ? what : "");
}

// Whether every thread of this node's ranks can have a CPU of its own.
inline bool may_spin(int threads) {
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    const int wanted = threads * size_of(node);
    MPI_Comm_free(&node);
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) >= wanted;
}

inline double patience() {
    const char *text = std::getenv("LAPWING_PATIENCE");
    return text != nullptr && *text != '\0' ? seconds("LAPWING_PATIENCE", text) : patience_seconds;
}

inline lw_options run_options(const Options &options, std::int64_t engine, double slice_seconds) {
    return {.engine = engine,
            .comm = MPI_Comm_c2f(MPI_COMM_WORLD),
            .dry = options.dry,
            .split_bytes = 0,
            .helper_cpu = -1,
            .spin = may_spin(engine == LW_HELPER ? 2 : 1),
            .slice_seconds = simulated ? whole_step_seconds : slice_seconds,
            .clock_offset = 0,
            .patience_seconds = patience(),
            .grace_seconds = 0,
            .interrupts = 0,
            .disk = nullptr};
}

// The other ranks may be waiting for this one's messages.
[[noreturn]] inline void end_all(const char *program, const char *what) {
    std::fprintf(stderr, "%s: rank %d: %s\n", program, rank_of(MPI_COMM_WORLD), what);
    // What a launcher has not read when it ends is lost.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    std::abort();
}

inline void check_ranks(const ProgramFile &file) {
    const int ranks = size_of(MPI_COMM_WORLD);
    if (file.ranks() == ranks) return;
    throw Failure("this program was exported for " + std::to_string(file.ranks()) + " ranks, but there are " +
                  std::to_string(ranks) + ". Start it with mpiexec -n " + std::to_string(file.ranks()) +
                  ", or export it for another number: lapwing export -n");
}

inline void print_seconds(const char *program, std::int64_t engine, double seconds) {
    const int ranks = size_of(MPI_COMM_WORLD);
    std::printf("%s: %s on %d rank%s, %.9g seconds\n", program, engines.at(static_cast<std::size_t>(engine)), ranks,
                ranks == 1 ? "" : "s", seconds);
}

// The main of a program that does this.
template <class Work>
int run_main(int count, char **words, const char *program, Work work) {
    Options options;
    std::string wrong;
    try {
        options = parse(count, words);
    } catch (const std::exception &error) {
        wrong = error.what();
    }
    int level = MPI_THREAD_SINGLE; // the runtime looks at it where it matters
    MPI_Init_thread(&count, &words, simulated ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    int status = EXIT_SUCCESS;
    const bool speaks = rank_of(MPI_COMM_WORLD) == 0;
    if (!wrong.empty()) {
        if (speaks) std::fprintf(stderr, "%s: %s\n", program, wrong.c_str());
        status = 2;
    } else if (options.help) {
        if (speaks) std::printf("%s", usage(program).c_str());
    } else {
        try {
            work(options);
        } catch (const std::exception &error) {
            // What all ranks failed of together is said by one of them.
            if (*error.what() != '\0') std::fprintf(stderr, "%s: %s\n", program, error.what());
            status = EXIT_FAILURE;
        }
    }
    MPI_Finalize();
    return status;
}

} // namespace lapwing
