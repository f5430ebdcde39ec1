// Which sweeps share a pass over the steps.
//
// `pass_sweeps` of them do. Where there is an opening sweep, it is sweep 0 and belongs to the first pass besides those:
// it computes nothing, and its messages bring every rank what its neighbours' elements are at the beginning.
#pragma once

#include <algorithm>

#include "lapwing.h"

namespace lapwing {

class Passes {
public:
    explicit Passes(const lw_program &program)
        : sweeps_(program.sweeps), together_(program.pass_sweeps), opening_(program.opening_sweeps) {}

    std::int64_t pass_of(std::int64_t sweep) const { return sweep < opening_ ? 0 : (sweep - opening_) / together_; }
    std::int64_t first_of(std::int64_t pass) const { return pass == 0 ? 0 : opening_ + pass * together_; }
    std::int64_t end_of(std::int64_t pass) const { return std::min(opening_ + (pass + 1) * together_, sweeps_); }

    // The place of a sweep in its pass: all sweeps of a place have the same channels.
    std::int64_t place_of(std::int64_t sweep) const {
        return sweep < opening_ ? sweep : opening_ + (sweep - opening_) % together_;
    }

    // How many of the first so many sweeps have a place.
    std::int64_t count(std::int64_t place, std::int64_t sweeps) const {
        if (place < opening_) return sweeps > place ? 1 : 0;
        return std::max<std::int64_t>(0, (sweeps - place + together_ - 1) / together_);
    }

private:
    std::int64_t sweeps_, together_, opening_;
};

} // namespace lapwing
