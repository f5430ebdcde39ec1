// The main of an exported program: reads its part of the arrays, runs the pipeline, writes what it computed.
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "job.hpp"
#include "rank.hpp"
#include "reductions.hpp"

namespace lapwing {
namespace {

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
        end_all(lw_this_nest.name, status == LW_TRAPPED ? lw_this_nest.trap[tile.trap - 1] : lw_failure());
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
        const Merged value = merged(lw_this_nest, reduction, all, initial);
        std::printf("%s = %s\n", reduction.name, text_of(reduction, value).c_str());
    }
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
    if (rank_of(MPI_COMM_WORLD) == 0) print_seconds(lw_this_nest.name, engine, seconds);
    if (options.dry) return;
    print_reductions(*problem, *rank);
    store(*rank, options.folder);
}

} // namespace
} // namespace lapwing

int main(int count, char **words) { return lapwing::run_main(count, words, lw_this_nest.name, lapwing::work); }
