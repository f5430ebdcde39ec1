// The calls of an exported program of several nests: of nests over ranks, and of what one rank does by itself.
#pragma once

#include <mpi.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver.h"
#include "job.hpp"
#include "memory.hpp"
#include "reductions.hpp"

namespace lapwing {

using Memories = std::vector<std::unique_ptr<Memory>>;
using Registers = std::vector<lw_scalar>;

// A number of the program's, or a register.
struct Word {
    std::int64_t is_register, value;

    lw_scalar in(const Registers &registers) const {
        if (is_register != 0) return registers[static_cast<std::size_t>(value)];
        return {.i = value};
    }
};

// A reduction of a phase, the register that gets it, and the one that is told whether it is what it began with; noted
// is the reduction that knows whether there was a term. -1: none.
struct Result {
    std::int64_t phase, reduction, target, kept, noted;
};

// Where a tile finds an array: a part of a memory, of whose axes some have a fixed index.
struct Place {
    explicit Place(const Numbers &numbers) : memory(numbers.at(0)) {
        for (std::size_t k = 1; k + 1 < numbers.size(); k += 2) axes.push_back({numbers[k], numbers[k + 1]});
    }

    lw_array in(const Memories &memories) const {
        const lw_array &whole = memories[static_cast<std::size_t>(memory)]->array();
        lw_array found{};
        std::int64_t offset = 0;
        std::size_t at = 0;
        for (std::size_t k = 0; k < axes.size(); ++k) {
            offset += axes[k].low * whole.stride[k];
            if (axes[k].extent < 0) continue;
            found.stride[at] = whole.stride[k];
            found.shape[at++] = axes[k].extent;
        }
        const std::int64_t itemsize = memories[static_cast<std::size_t>(memory)]->kind().itemsize;
        found.base = static_cast<char *>(whole.base) + offset * itemsize;
        return found;
    }

    struct Axis {
        std::int64_t low, extent; // below 0: a fixed index
    };
    std::int64_t memory;
    std::vector<Axis> axes;
};

// What all ranks know of a nest that is called: its tile, and what that is given.
struct Phase {
    explicit Phase(Part &part) {
        const std::int64_t number = part.list().at(0);
        module = &lw_this_driver.module[number];
        for (std::int64_t k = 0; k < module->nest->arrays; ++k) places.emplace_back(part.list());
        words = part.rows<Word>();
        starts = part.rows<Word>();
    }

    const lw_nest &nest() const { return *module->nest; }

    const lw_driver_module *module;
    std::vector<Place> places;
    std::vector<Word> words, starts;
};

// An array that a tile wants in an order of its own, if it does: what it needs is put there, and brought back from
// there.
struct Private {
    Private(Part &part, const lw_nest_array &kind) : kind(&kind) {
        const Numbers head = part.list(), strides = part.list();
        loaded = part.rows<lw_box>();
        stored = part.rows<lw_box>();
        if (strides.empty()) return;
        for (std::size_t k = 0; k < strides.size(); ++k) array.stride[k] = strides[k];
        array.base = room.allocate(head.at(0), head.at(1), kind.itemsize, kind.name);
    }

    // Where the tile finds the array.
    lw_array begin(const lw_array &there) {
        if (array.base == nullptr) return there;
        for (std::int64_t k = 0; k < kind->axes; ++k) array.shape[k] = there.shape[k];
        for (const lw_box &box : loaded) copy_elements(box, kind->axes, there, array, kind->itemsize);
        return array;
    }

    void end(const lw_array &there) const {
        if (array.base == nullptr) return;
        for (const lw_box &box : stored) copy_elements(box, kind->axes, array, there, kind->itemsize);
    }

    const lw_nest_array *kind;
    lw_array array{};
    std::vector<lw_box> loaded, stored;
    Room room;
};

// The words of a phase's accumulators on this rank.
inline Words begin_words(const lw_nest &nest, const std::vector<lw_scalar> &starts) {
    Words words(static_cast<std::size_t>(nest.words) + 1);
    for (std::int64_t k = 0; k < nest.reductions; ++k) {
        const lw_nest_reduction &reduction = nest.reduction[k];
        if (reduction.operation == std::string("+")) continue;
        words[static_cast<std::size_t>(reduction.first_word)] = starts[static_cast<std::size_t>(k)];
    }
    return words;
}

// Whether nothing has been assigned to a reduction.
inline bool is_kept(const lw_nest &nest, const Result &result, const Words &all, lw_scalar start, const Merged &value) {
    const lw_nest_reduction &reduction = nest.reduction[result.reduction];
    if (reduction.leader >= 0) {
        const std::size_t rank = rank_with_extremum(nest, reduction.leader, all);
        for (std::int64_t k = 0; k < nest.reductions; ++k) {
            const lw_nest_reduction &loop = nest.reduction[k];
            if (loop.leader != reduction.leader || loop.operation != std::string("at")) continue;
            return words_of(nest, loop, all)[rank]->i == std::numeric_limits<std::int64_t>::min();
        }
    }
    if (reduction.exact) {
        for (const lw_scalar *row : words_of(nest, reduction, all)) {
            for (int k = 0; k < LW_EXACT_HEADER; ++k) {
                if (row[k].i != 0) return false;
            }
        }
        return true;
    }
    if (result.noted >= 0) return merged(nest, nest.reduction[result.noted], all, {.i = 0}).whole == 0;
    return reduction.kind == 'f' ? value.number == start.f : value.whole == start.i;
}

// Puts the results of a phase into registers. all: the words of the ranks that have done it.
inline void give(const lw_nest &nest, const Result &result, const Words &all, const std::vector<lw_scalar> &starts,
                 Registers &registers) {
    const lw_nest_reduction &reduction = nest.reduction[result.reduction];
    const lw_scalar start = starts[static_cast<std::size_t>(result.reduction)];
    const Merged value = merged(nest, reduction, all, start);
    lw_scalar &target = registers[static_cast<std::size_t>(result.target)];
    const bool kept = result.kept >= 0 && is_kept(nest, result, all, start, value);
    if (result.kept >= 0) registers[static_cast<std::size_t>(result.kept)].i = kept ? 1 : 0;
    if (kept) {
        target = start;
    } else if (reduction.kind == 'f') {
        target.f = value.number;
    } else {
        if (value.whole > INT64_MAX || value.whole < INT64_MIN) {
            throw Failure(std::string(reduction.name) + " is an integer of more than 64 bits");
        }
        target.i = static_cast<std::int64_t>(value.whole);
    }
}

inline std::vector<lw_scalar> values_of(const std::vector<Word> &words, const Registers &registers) {
    std::vector<lw_scalar> found;
    for (const Word &word : words) found.push_back(word.in(registers));
    found.emplace_back(); // never empty, so that its address is always good
    return found;
}

// Communicators of the first ranks, each made once: the messages on them are those of calls alone.
class Communicators {
public:
    // Collective.
    void make(std::int64_t ranks) {
        if (found_.contains(ranks)) return;
        const int rank = rank_of(MPI_COMM_WORLD);
        MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &found_[ranks]);
    }

    // Null on the other ranks.
    MPI_Comm of(std::int64_t ranks) const { return found_.at(ranks); }

private:
    std::map<std::int64_t, MPI_Comm> found_;
};

// One nest, or several through one pipeline, on the first ranks.
class NestCall {
public:
    NestCall(Part &common, Part &own) {
        const Numbers head = common.list();
        ranks_ = head.at(0);
        seconds_per_point_ = std::bit_cast<double>(head.at(1));
        const auto count = static_cast<std::size_t>(head.at(2));
        std::vector<Numbers> shapes;
        for (std::size_t k = 0; k < count; ++k) {
            phases_.emplace_back(common);
            shapes.push_back(common.list());
            points_.push_back(common.table(std::max<std::int64_t>(1, shapes.back().at(1))));
        }
        results_ = common.rows<Result>();
        if (rank_of(MPI_COMM_WORLD) >= ranks_) return;
        const Numbers program = own.list();
        for (std::size_t k = 0; k < count; ++k) {
            const Numbers place = own.list();
            const Numbers &shape = shapes[k];
            c_phases_.push_back({shape.at(0), shape.at(1), shape.at(2), shape.at(3), shape.at(4), points_[k].data(),
                                 place.at(0), place.at(1)});
            std::vector<Private> &here = privates_.emplace_back();
            for (std::int64_t a = 0; a < phases_[k].nest().arrays; ++a) {
                here.emplace_back(own, phases_[k].nest().array[a]);
            }
        }
        tables_ = Tables(own);
        program_ = tables_.program(static_cast<std::int64_t>(count), program.at(0), program.at(1), program.at(2),
                                   c_phases_.data());
    }

    std::int64_t ranks() const { return ranks_; }

    void run(const lw_options &options, Memories &memories, Registers &registers) {
        std::vector<Words> words;
        std::vector<std::vector<lw_scalar>> starts;
        for (const Phase &phase : phases_) {
            starts.push_back(values_of(phase.starts, registers));
            words.push_back(begin_words(phase.nest(), starts.back()));
        }
        if (rank_of(MPI_COMM_WORLD) < ranks_) run_here(options, memories, registers, words);
        for (std::size_t k = 0; k < phases_.size(); ++k) merge(k, words[k], starts[k], registers);
    }

private:
    void run_here(const lw_options &options, Memories &memories, const Registers &registers,
                  std::vector<Words> &words) {
        std::vector<lw_module> modules;
        std::vector<std::vector<lw_array>> arrays(phases_.size());
        std::vector<std::vector<lw_scalar>> scalars;
        std::vector<lw_tile> tiles;
        for (std::size_t k = 0; k < phases_.size(); ++k) {
            modules.push_back(phases_[k].module->functions);
            for (std::size_t a = 0; a < privates_[k].size(); ++a) {
                arrays[k].push_back(privates_[k][a].begin(phases_[k].places[a].in(memories)));
            }
            arrays[k].emplace_back();
            scalars.push_back(values_of(phases_[k].words, registers));
            tiles.push_back({arrays[k].data(), scalars[k].data(), words[k].data(), 0, 0, 0});
        }
#ifdef LAPWING_SIMULATED
        if (seconds_per_point_ > 0) costs().seconds_per_point = seconds_per_point_;
#endif
        lw_trace trace{};
        lw_times times{};
        const int status = lw_run(&program_, modules.data(), tiles.data(), &options, nullptr, &trace, &times);
        if (status != LW_DONE) {
            for (std::size_t k = 0; k < tiles.size(); ++k) {
                if (tiles[k].trap != 0) end_all(lw_this_driver.name, phases_[k].nest().trap[tiles[k].trap - 1]);
            }
            end_all(lw_this_driver.name, lw_failure());
        }
        for (std::size_t k = 0; k < phases_.size(); ++k) {
            for (std::size_t a = 0; a < privates_[k].size(); ++a)
                privates_[k][a].end(phases_[k].places[a].in(memories));
        }
    }

    void merge(std::size_t number, const Words &words, const std::vector<lw_scalar> &starts, Registers &registers) {
        const lw_nest &nest = phases_[number].nest();
        bool wanted = false;
        for (const Result &result : results_) wanted = wanted || result.phase == static_cast<std::int64_t>(number);
        if (!wanted) return;
        const int bytes = static_cast<int>(nest.words * static_cast<std::int64_t>(sizeof(lw_scalar)));
        Words all(static_cast<std::size_t>(nest.words * size_of(MPI_COMM_WORLD)));
        MPI_Allgather(words.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
        all.resize(static_cast<std::size_t>(nest.words * ranks_));
        for (const Result &result : results_) {
            if (result.phase == static_cast<std::int64_t>(number)) give(nest, result, all, starts, registers);
        }
    }

    std::int64_t ranks_;
    double seconds_per_point_;
    std::vector<Phase> phases_;
    std::vector<Numbers> points_;
    std::vector<Result> results_;
    std::vector<std::vector<Private>> privates_;
    std::vector<lw_phase> c_phases_;
    Tables tables_;
    lw_program program_{};
};

// Loops in their own order, or what stands between loops: on one rank, or on each for itself.
class LocalCall {
public:
    LocalCall(Part &common, Part &own) : rank_(common.list().at(0)), phase_(common) {
        results_ = common.rows<Result>();
        if (rank_ != rank_of(MPI_COMM_WORLD)) return;
        for (std::int64_t a = 0; a < phase_.nest().arrays; ++a) privates_.emplace_back(own, phase_.nest().array[a]);
    }

    void run(const Memories &memories, Registers &registers) {
        const lw_nest &nest = phase_.nest();
        const std::vector<lw_scalar> starts = values_of(phase_.starts, registers);
        Words words = begin_words(nest, starts);
        if (rank_ < 0 || rank_ == rank_of(MPI_COMM_WORLD)) {
            std::vector<lw_array> arrays;
            for (std::size_t a = 0; a < privates_.size(); ++a) {
                arrays.push_back(privates_[a].begin(phase_.places[a].in(memories)));
            }
            arrays.emplace_back();
            const std::vector<lw_scalar> scalars = values_of(phase_.words, registers);
            lw_tile tile = {arrays.data(), scalars.data(), words.data(), 0, 0, 0};
            lw_box once{};
            once.hi[0] = 1;
            phase_.module->functions.compute(&tile, &once);
            if (tile.trap != 0) end_all(lw_this_driver.name, nest.trap[tile.trap - 1]);
            for (std::size_t a = 0; a < privates_.size(); ++a) privates_[a].end(phase_.places[a].in(memories));
        }
        if (results_.empty()) return;
        if (rank_ >= 0) {
            const int bytes = static_cast<int>(nest.words * static_cast<std::int64_t>(sizeof(lw_scalar)));
            MPI_Bcast(words.data(), bytes, MPI_BYTE, static_cast<int>(rank_), MPI_COMM_WORLD);
        }
        words.resize(static_cast<std::size_t>(nest.words));
        for (const Result &result : results_) give(nest, result, words, starts, registers);
    }

private:
    std::int64_t rank_;
    Phase phase_;
    std::vector<Result> results_;
    std::vector<Private> privates_;
};

} // namespace lapwing
