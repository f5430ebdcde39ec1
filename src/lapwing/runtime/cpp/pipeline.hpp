// The pipeline: for every sweep and step, receive, compute in slices, send. Everything else hangs off these few lines.
#pragma once

#include <algorithm>

#include "courier.hpp"
#include "transport.hpp"

namespace lapwing {

// Runs f(slice) over a box cut along one loop, each slice lasting about `target` seconds by what the last one took.
class Slicer {
public:
    Slicer(std::int64_t loop, double target) : loop_(loop), target_(target) {}

    template <class Compute>
    bool run(const lw_box &box, Compute compute) {
        lw_box slice = box;
        for (std::int64_t at = box.lo[loop_]; at < box.hi[loop_];) {
            slice.lo[loop_] = at;
            slice.hi[loop_] = at = std::min(at + thickness_, box.hi[loop_]);
            const double start = now();
            if (!compute(slice)) return false;
            adapt(slice.hi[loop_] - slice.lo[loop_], now() - start);
        }
        return true;
    }

private:
    void adapt(std::int64_t rows, double seconds) {
        const double wanted = static_cast<double>(rows) * target_ / std::max(seconds, 1e-9);
        const double smooth = 0.5 * static_cast<double>(thickness_) + 0.5 * std::min(wanted, 1e9);
        thickness_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(smooth));
    }

    std::int64_t loop_;
    double target_;
    std::int64_t thickness_ = 64;
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
        Slicer slicer(program_.slice_loop, slice_seconds);
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
