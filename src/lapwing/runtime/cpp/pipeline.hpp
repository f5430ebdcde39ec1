// The pipeline: for every sweep and step, receive, compute in slices, send. Everything else hangs off these few lines.
#pragma once

#include <algorithm>

#include "courier.hpp"
#include "transport.hpp"

namespace lapwing {

// Runs f(slice) over a box in slices that last about `target` seconds each, by what earlier ones took. Slices are whole
// multiples of `grain` rows of one loop, because tiles work on that many rows together; where even those take much
// longer, they are cut along the innermost loop as well.
class Slicer {
public:
    Slicer(const lw_program &program, double target)
        : rows_(program.slice_loop), grain_(program.slice_grain), columns_(program.loops - 1), target_(target) {}

    template <class Compute>
    bool run(const lw_box &box, Compute compute) {
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
                const double start = now();
                if (!compute(slice)) return false;
                seconds_per_point_ =
                    0.5 * seconds_per_point_ + 0.5 * (now() - start) / static_cast<double>(volume(slice));
            }
        }
        return true;
    }

private:
    static constexpr std::int64_t shortest_row = 512;

    static std::int64_t extent(const lw_box &box, std::int64_t loop) { return box.hi[loop] - box.lo[loop]; }

    std::int64_t volume(const lw_box &box) const {
        std::int64_t points = 1;
        for (std::int64_t loop = 0; loop <= columns_; ++loop) points *= std::max<std::int64_t>(1, extent(box, loop));
        return points;
    }

    std::int64_t thickness(double seconds_per_row) const {
        const double grains = target_ / std::max(seconds_per_row * static_cast<double>(grain_), 1e-12);
        return grain_ * std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(grains, 1e9)));
    }

    std::int64_t width(const lw_box &box, double seconds) const {
        const std::int64_t whole = std::max<std::int64_t>(1, extent(box, columns_));
        if (columns_ == rows_ || seconds < 2 * target_) return whole;
        return std::max(shortest_row, static_cast<std::int64_t>(static_cast<double>(whole) * target_ / seconds));
    }

    std::int64_t rows_, grain_, columns_;
    double target_;
    double seconds_per_point_ = 1e-9;
};

class Pipeline {
public:
    Pipeline(const lw_program &program, const lw_module &module, lw_tile &tile, Courier &courier, Transport &transport,
             lw_progress progress)
        : program_(program), module_(module), tile_(tile), courier_(courier), transport_(transport),
          progress_(progress) {}

    // slice_seconds is how long to compute between two polls; a dry run computes nothing.
    int run(double slice_seconds, bool dry) {
        const double begin = now();
        lw_times &times = courier_.times();
        Slicer slicer(program_, slice_seconds);
        double first = begin, last = begin, exposed_before = 0, exposed_until_last = 0;
        bool started = false;
        next_report_ = begin + report_interval;
        transport_.start();
        for (Position at{0, 0}; at.sweep < program_.sweeps; ++at.sweep) {
            transport_.before_sweep(at.sweep);
            for (at.step = 0; at.step < program_.steps; ++at.step) {
                transport_.before_step(at);
                if (!started) {
                    started = true;
                    first = now();
                    exposed_before = times.exposed;
                }
                if (!dry) {
                    if (const int status = compute(at, slicer); status != LW_DONE) return status;
                }
                last = now();
                exposed_until_last = times.exposed;
                transport_.after_step(at);
            }
        }
        transport_.finish();
        const double end = now();
        times.total = end - begin;
        times.fill = first - begin;
        times.drain = end - last;
        times.exposed = exposed_until_last - exposed_before;
        return LW_DONE;
    }

private:
    static constexpr double report_interval = 0.1;

    int compute(Position at, Slicer &slicer) {
        const lw_box box = courier_.in_sweep(program_.step_boxes[at.step], at.sweep);
        bool goes_on = true;
        slicer.run(box, [&](const lw_box &slice) {
            {
                Stopwatch watch(courier_.times().compute);
                module_.compute(&tile_, &slice);
            }
            transport_.poll();
            goes_on = tile_.trap == 0 && !stop_requested(at);
            return goes_on;
        });
        if (tile_.trap != 0) return LW_TRAPPED;
        return goes_on ? LW_DONE : LW_STOPPED;
    }

    bool stop_requested(Position at) {
        if (progress_ == nullptr || now() < next_report_) return false;
        next_report_ = now() + report_interval;
        return progress_(at.sweep * program_.steps + at.step, program_.sweeps * program_.steps) != 0;
    }

    const lw_program &program_;
    const lw_module &module_;
    lw_tile &tile_;
    Courier &courier_;
    Transport &transport_;
    lw_progress progress_;
    double next_report_ = 0;
};

} // namespace lapwing
