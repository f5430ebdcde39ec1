// The order in which a rank comes to its tiles.
//
// Sweep by sweep, phase by phase, or, where `pass_sweeps` sweeps share a pass over the data, as a wavefront of them:
// wave w of a pass has step w of its first sweep, step w - skew of its second, and so on (time skewing).
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

    // Whether there is a tile after this one; moves to it then.
    bool advance(Position &at) const {
        const std::int64_t pass = passes_.pass_of(at.sweep), first = passes_.first_of(pass);
        const std::int64_t count = passes_.end_of(pass) - first;
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
    std::int32_t phase_of(std::int64_t step) const {
        auto phase = static_cast<std::int32_t>(program_.phases - 1);
        while (program_.phase[phase].first_step > step) --phase;
        return phase;
    }

    const lw_program &program_;
    Passes passes_;
    std::int64_t sweeps_, steps_, skew_;
};

} // namespace lapwing
