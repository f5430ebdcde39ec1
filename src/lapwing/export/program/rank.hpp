// What one rank has in memory: its program, its parts of the arrays, its accumulators.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "nest.h"
#include "npy_file.hpp"
#include "program_file.hpp"

namespace lapwing {

// What is the same on all ranks: the part `common` of program.bin (lapwing/export/tables.py).
struct Problem {
    explicit Problem(Part part) {
        const Numbers head = part.list();
        engine = head.at(0);
        loops = head.at(1), sweep_depth = head.at(2), sweeps = head.at(3), batch = head.at(4);
        slice_grain = head.at(5), slice_loop = head.at(6);
        slice_seconds = std::bit_cast<double>(head.at(7));
        sweep_points = part.table(std::max<std::int64_t>(1, sweep_depth));
        for (std::int64_t k = 0; k < lw_this_nest.arrays; ++k) shapes.push_back(part.list());
        scalars = part.rows<lw_scalar>();
        words = part.rows<lw_scalar>();
        initial = part.rows<lw_scalar>();
        const bool fits = static_cast<std::int64_t>(scalars.size()) == lw_this_nest.scalars &&
                          static_cast<std::int64_t>(words.size()) == lw_this_nest.words;
        if (!fits) throw Failure("program.bin is of another nest than this program. Export the program again");
    }

    std::int64_t engine, loops, sweep_depth, sweeps, batch, slice_grain, slice_loop;
    double slice_seconds; // between two polls
    Numbers sweep_points;
    std::vector<Numbers> shapes;
    std::vector<lw_scalar> scalars, words, initial; // of every reduction, what it begins with
};

class Rank {
public:
    Rank(const Problem &problem, Part part) : problem_(problem), words_(problem.words) {
        const Numbers head = part.list();
        for (std::int64_t k = 0; k < lw_this_nest.arrays; ++k) arrays_.emplace_back(problem, k, part);
        tables_ = Tables(part);
        phase_ = {problem.loops,
                  problem.sweep_depth,
                  problem.slice_grain,
                  problem.slice_loop,
                  1,
                  problem.sweep_points.data(),
                  0,
                  head.at(1)};
        program_ = tables_.program(1, problem.sweeps, problem.batch, head.at(0), &phase_);
    }

    void load(const std::string &folder) {
        for (Local &local : arrays_) {
            local.allocate();
            const NpyFile file = local.file(folder, false);
            for (const lw_box &box : local.loaded) file.read(box, local.array);
        }
    }

    // Of several writes to an element, those of later rounds count: all ranks end one before they begin the next.
    std::int64_t rounds() const {
        std::int64_t most = 0;
        for (const Local &local : arrays_) {
            for (const std::int64_t round : local.rounds) most = std::max(most, round + 1);
        }
        return most;
    }

    void store(const std::string &folder, std::int64_t round) const {
        for (const Local &local : arrays_) {
            if (local.written.empty()) continue;
            const NpyFile file = local.file(folder, true);
            for (std::size_t k = 0; k < local.written.size(); ++k) {
                if (local.rounds[k] == round) file.write(local.written[k], local.array);
            }
        }
    }

    lw_tile tile() {
        here_.clear();
        for (const Local &local : arrays_) here_.push_back(local.array);
        return {here_.data(), problem_.scalars.data(), words_.data(), 0};
    }

    const lw_program &program() const { return program_; }
    const std::vector<lw_scalar> &words() const { return words_; }

private:
    // A part of an array, with room between rows as program.bin has it.
    struct Local {
        Local(const Problem &problem, std::int64_t number, Part &part)
            : kind(lw_this_nest.array[number]), shape(problem.shapes.at(static_cast<std::size_t>(number))) {
            const Numbers place = part.list();
            elements = place.at(0), origin = place.at(1);
            const Numbers strides = part.list();
            loaded = part.rows<lw_box>();
            rounds = part.list();
            written = part.rows<lw_box>();
            for (std::size_t axis = 0; axis < shape.size(); ++axis) {
                array.stride[axis] = strides.at(axis);
                array.shape[axis] = shape[axis];
            }
        }

        void allocate() {
            constexpr std::size_t line = 64;
            const auto bytes = static_cast<std::size_t>(elements * kind.itemsize);
            memory.reset(static_cast<char *>(std::aligned_alloc(line, (bytes + line) / line * line)));
            if (!memory) throw Failure("no memory for " + std::to_string(bytes) + " bytes of " + kind.name);
            // Element (0, ..., 0) may lie outside of what is allocated.
            const auto address = reinterpret_cast<std::intptr_t>(memory.get()) + origin * kind.itemsize;
            array.base = reinterpret_cast<void *>(address);
        }

        NpyFile file(const std::string &folder, bool writable) const {
            return NpyFile(folder + "/" + kind.name + ".npy", kind.element, shape, kind.itemsize, writable);
        }

        const lw_nest_array &kind;
        Numbers shape;
        lw_array array{};
        std::int64_t elements, origin; // allocated; and from there to element (0, ..., 0)
        Numbers rounds;                // of each box written
        std::vector<lw_box> loaded, written;
        std::unique_ptr<char, decltype(&std::free)> memory{nullptr, &std::free};
    };

    const Problem &problem_;
    std::vector<Local> arrays_;
    std::vector<lw_array> here_;
    std::vector<lw_scalar> words_;
    Tables tables_;
    lw_phase phase_{};
    lw_program program_{};
};

} // namespace lapwing
