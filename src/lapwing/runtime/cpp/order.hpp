// The order in which a rank comes to its tiles.
//
// Sweep by sweep, phase by phase, or, where `pass_sweeps` sweeps share a pass over the data, as a wavefront of them:
// wave w of a pass has step w of its first sweep, step w - skew of its second, and so on (time skewing). Where phases
// are fused, a table says it.
#pragma once

#include <algorithm>

#include "lapwing.h"
#include "passes.hpp"
#include "trace.hpp"

namespace lapwing {

class Order {
public:
    explicit Order(const lw_program &program)
        : program_(program), passes_(program), sweeps_(program.sweeps), steps_(program.steps),
          skew_(program.pass_skew) {}

    Position first() const { return program_.pass_places > 0 ? at_place(0, 0) : Position{0, 0}; }

    // Whether there is a tile after this one; moves to it then.
    bool advance(Position &at) {
        const std::int64_t pass = passes_.pass_of(at.sweep), first = passes_.first_of(pass);
        const std::int64_t count = passes_.end_of(pass) - first;
        if (program_.pass_places > 0) return advance_in_table(at, first, count);
        std::int64_t sweep = at.sweep - first;
        for (std::int64_t wave = at.step + skew_ * sweep; wave <= steps_ - 1 + skew_ * (count - 1); ++wave) {
            while (++sweep < count) {
                const std::int64_t step = wave - skew_ * sweep;
                if (step < 0) break;
                if (step >= steps_) continue;
                at = {first + sweep, step, phase_of(step)};
                return true;
            }
            sweep = -1;
        }
        at = {first + count, 0};
        return at.sweep < sweeps_;
    }

private:
    bool advance_in_table(Position &at, std::int64_t first, std::int64_t count) {
        while (++place_ < program_.pass_places) {
            if (program_.places[2 * place_] >= count) continue;
            at = at_place(first, place_);
            return true;
        }
        place_ = 0;
        at = at_place(first + count, 0);
        return first + count < sweeps_;
    }

    Position at_place(std::int64_t first, std::int64_t place) const {
        const std::int64_t step = program_.places[2 * place + 1];
        return {first + program_.places[2 * place], step, phase_of(step)};
    }

    std::int32_t phase_of(std::int64_t step) const {
        auto phase = static_cast<std::int32_t>(program_.phases - 1);
        while (program_.phase[phase].first_step > step) --phase;
        return phase;
    }

    const lw_program &program_;
    Passes passes_;
    std::int64_t sweeps_, steps_, skew_;
    std::int64_t place_ = 0; // in the table
};

} // namespace lapwing
