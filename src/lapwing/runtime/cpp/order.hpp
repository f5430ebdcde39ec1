// The order in which a rank comes to its tiles.
//
// Sweep by sweep, phase by phase, or, where `pass_sweeps` sweeps share a pass over the data, as a wavefront of them:
// wave w of a pass has step w of its first sweep, step w - skew of its second, and so on (time skewing). Where phases
// are fused, a step of each of them, one after the other, stands for a step there.
#pragma once

#include <algorithm>

#include "lapwing.h"
#include "passes.hpp"
#include "trace.hpp"

namespace lapwing {

class Order {
public:
    explicit Order(const lw_program &program)
        : program_(program), passes_(program), sweeps_(program.sweeps), fused_(program.fused != 0),
          steps_(fused_ ? program.steps / program.phases : program.steps), skew_(program.pass_skew) {}

    // Whether there is a tile after this one; moves to it then.
    bool advance(Position &at) const {
        if (fused_) {
            if (at.phase + 1 < program_.phases) {
                at = {at.sweep, at.step + steps_, at.phase + 1};
                return true;
            }
            at.step -= steps_ * at.phase;
        }
        const std::int64_t pass = passes_.pass_of(at.sweep), first = passes_.first_of(pass);
        const std::int64_t count = passes_.end_of(pass) - first;
        std::int64_t sweep = at.sweep - first;
        for (std::int64_t wave = at.step + skew_ * sweep; wave <= steps_ - 1 + skew_ * (count - 1); ++wave) {
            while (++sweep < count) {
                const std::int64_t step = wave - skew_ * sweep;
                if (step < 0) break;
                if (step >= steps_) continue;
                at = {first + sweep, step, fused_ ? 0 : phase_of(step)};
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
    std::int64_t sweeps_;
    bool fused_;
    std::int64_t steps_, skew_; // of each phase where they are fused
};

} // namespace lapwing
