// Cuts a step into slices, between which communication progresses.
#pragma once

#include <algorithm>

#include "lapwing.h"

namespace lapwing {

// Runs f(slice) over a box in slices that last about `target` seconds each, by what earlier ones took: f returns the
// seconds it computed, or `stop`. Where the pauses between slices are expensive, slices are longer, so that pauses cost
// less than one part in a hundred. Slices are whole multiples of `grain` rows of one loop, because tiles work on that
// many rows together; where even those take much longer, they are cut along the innermost loop as well.
class Slicer {
public:
    static constexpr double stop = -1;

    Slicer(const lw_phase &phase, double target)
        : rows_(phase.slice_loop), grain_(phase.slice_grain), columns_(phase.loops - 1),
          whole_rows_(columns_ == rows_ || phase.slices_rows == 0), shortest_(target), target_(target) {}

    // How long a pause took.
    void note_pause(double seconds) {
        mean_pause_ += 0.05 * (seconds - mean_pause_);
        target_ = std::clamp(slices_per_pause * mean_pause_, shortest_, longest_stretch * shortest_);
    }

    template <class Compute>
    void run(const lw_box &box, Compute compute) {
        lw_box slice = box;
        for (std::int64_t row = box.lo[rows_]; row < box.hi[rows_];) {
            const double per_row = seconds_per_point_ * static_cast<double>(volume(box) / extent(box, rows_));
            slice.lo[rows_] = row;
            slice.hi[rows_] = row = std::min(row + thickness(per_row), box.hi[rows_]);
            const std::int64_t wide = width(box, per_row * static_cast<double>(extent(slice, rows_)));
            for (std::int64_t column = box.lo[columns_]; column < box.hi[columns_];) {
                if (columns_ != rows_) {
                    slice.lo[columns_] = column;
                    slice.hi[columns_] = std::min(column + wide, box.hi[columns_]);
                }
                column += wide;
                const double seconds = compute(slice);
                if (seconds == stop) return;
                seconds_per_point_ = 0.5 * seconds_per_point_ + 0.5 * seconds / static_cast<double>(volume(slice));
            }
        }
    }

    // Iterations of a box, were the loops' bounds rectangular.
    std::int64_t volume(const lw_box &box) const {
        std::int64_t points = 1;
        for (std::int64_t loop = 0; loop <= columns_; ++loop) points *= std::max<std::int64_t>(1, extent(box, loop));
        return points;
    }

private:
    static constexpr std::int64_t shortest_row = 512;
    static constexpr double slices_per_pause = 200, longest_stretch = 10;

    static std::int64_t extent(const lw_box &box, std::int64_t loop) { return box.hi[loop] - box.lo[loop]; }

    std::int64_t thickness(double seconds_per_row) const {
        const double grains = target_ / std::max(seconds_per_row * static_cast<double>(grain_), 1e-12);
        return grain_ * std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(grains, 1e9)));
    }

    std::int64_t width(const lw_box &box, double seconds) const {
        const std::int64_t whole = std::max<std::int64_t>(1, extent(box, columns_));
        if (whole_rows_ || seconds < 2 * target_) return whole;
        return std::max(shortest_row, static_cast<std::int64_t>(static_cast<double>(whole) * target_ / seconds));
    }

    std::int64_t rows_, grain_, columns_;
    bool whole_rows_;
    double shortest_, target_;
    double mean_pause_ = 0;
    double seconds_per_point_ = 1e-9;
};

} // namespace lapwing
