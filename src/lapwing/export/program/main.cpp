// The main of an exported program: reads its part of the arrays, runs the pipeline, writes what it computed.
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "options.hpp"
#include "rank.hpp"
#include "reductions.hpp"

namespace lapwing {
namespace {

constexpr double patience_seconds = 600;    // before a rank that keeps others waiting is taken for dead
constexpr double whole_step_seconds = 1e18; // the simulator moves messages without being polled

int rank_of(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

// Collective. What fails on some rank fails on all, and is said once.
template <class Action>
void together(Action action) {
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
bool may_spin(int threads) {
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    const int wanted = threads * size_of(node);
    MPI_Comm_free(&node);
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) >= wanted;
}

double patience() {
    const char *text = std::getenv("LAPWING_PATIENCE");
    return text != nullptr && *text != '\0' ? seconds("LAPWING_PATIENCE", text) : patience_seconds;
}

lw_options run_options(const Options &options, std::int64_t engine, double slice_seconds) {
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

// Runs the pipeline; the seconds of the slowest rank.
double run(Rank &rank, const lw_options &options) {
    const lw_module module = {lw_tile_compute, lw_tile_pack, lw_tile_unpack, lw_tile_put};
    lw_tile tile = rank.tile();
    lw_trace trace{};
    lw_times times{};
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = lw_clock();
    const int status = lw_run(&rank.program(), &module, &tile, &options, nullptr, &trace, &times);
    const double own = lw_clock() - begin;
    if (status != LW_DONE) {
        // The other ranks may be waiting for this one's messages.
        const char *what = status == LW_TRAPPED ? lw_this_nest.trap[tile.trap - 1] : lw_failure();
        std::fprintf(stderr, "%s: rank %d: %s\n", lw_this_nest.name, rank_of(MPI_COMM_WORLD), what);
        // What a launcher has not read when it ends is lost.
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    double slowest = 0;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

// Elements that no iteration writes are as they were.
void prepare_results(const std::string &folder) {
    std::filesystem::create_directories(folder + "/out");
    for (std::int64_t k = 0; k < lw_this_nest.arrays; ++k) {
        const lw_nest_array &array = lw_this_nest.array[k];
        const std::string name = std::string("/") + array.name + ".npy";
        if (!array.written) continue;
        std::filesystem::copy_file(folder + "/data" + name, folder + "/out" + name,
                                   std::filesystem::copy_options::overwrite_existing);
    }
}

void store(const Rank &rank, const std::string &folder) {
    together([&] {
        if (rank_of(MPI_COMM_WORLD) == 0) prepare_results(folder);
    });
    std::int64_t rounds = 0;
    const std::int64_t own = rank.rounds();
    MPI_Allreduce(&own, &rounds, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (std::int64_t round = 0; round < rounds; ++round) {
        together([&] { rank.store(folder + "/out", round); });
    }
}

void print_reductions(const Problem &problem, const Rank &rank) {
    const std::int64_t words = lw_this_nest.words;
    if (words == 0) return;
    const int bytes = static_cast<int>(words * static_cast<std::int64_t>(sizeof(lw_scalar)));
    Words all(static_cast<std::size_t>(words * size_of(MPI_COMM_WORLD)));
    MPI_Gather(rank.words().data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank_of(MPI_COMM_WORLD) != 0) return;
    for (std::int64_t k = 0; k < lw_this_nest.reductions; ++k) {
        const lw_nest_reduction &reduction = lw_this_nest.reduction[k];
        if (reduction.operation == std::string("at") || reduction.operation == std::string("noted")) continue;
        const lw_scalar initial = problem.initial[static_cast<std::size_t>(k)];
        std::printf("%s = %s\n", reduction.name, merged(reduction, all, initial).c_str());
    }
}

void check_ranks(const ProgramFile &file) {
    const int ranks = size_of(MPI_COMM_WORLD);
    if (file.ranks() == ranks) return;
    throw Failure("this program was exported for " + std::to_string(file.ranks()) + " ranks, but there are " +
                  std::to_string(ranks) + ". Start it with mpiexec -n " + std::to_string(file.ranks()) +
                  ", or export it for another number: lapwing export -n");
}

void work(const Options &options) {
    std::unique_ptr<Problem> problem;
    std::unique_ptr<Rank> rank;
    together([&] {
        ProgramFile file(options.folder + "/program.bin");
        check_ranks(file);
        problem = std::make_unique<Problem>(file.common());
        rank = std::make_unique<Rank>(*problem, file.of_rank(rank_of(MPI_COMM_WORLD)));
        if (!options.dry) rank->load(options.folder + "/data");
    });
    const std::int64_t engine = options.engine < 0 ? problem->engine : options.engine;
    const double seconds = run(*rank, run_options(options, engine, problem->slice_seconds));
    if (rank_of(MPI_COMM_WORLD) == 0) {
        const int ranks = size_of(MPI_COMM_WORLD);
        std::printf("%s: %s on %d rank%s, %.9g seconds\n", lw_this_nest.name,
                    engines.at(static_cast<std::size_t>(engine)), ranks, ranks == 1 ? "" : "s", seconds);
    }
    if (options.dry) return;
    print_reductions(*problem, *rank);
    store(*rank, options.folder);
}

} // namespace
} // namespace lapwing

int main(int count, char **words) {
    using namespace lapwing;
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
        if (speaks) std::fprintf(stderr, "%s: %s\n", lw_this_nest.name, wrong.c_str());
        status = 2;
    } else if (options.help) {
        if (speaks) std::printf("%s", usage().c_str());
    } else {
        try {
            work(options);
        } catch (const std::exception &error) {
            // What all ranks failed of together is said by one of them.
            if (*error.what() != '\0') std::fprintf(stderr, "%s: %s\n", lw_this_nest.name, error.what());
            status = EXIT_FAILURE;
        }
    }
    MPI_Finalize();
    return status;
}
