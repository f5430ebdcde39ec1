// The pipeline: for every sweep, phase and step, receive, compute in slices, send. Everything else hangs off these few
// lines.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "courier.hpp"
#include "delays.hpp"
#include "interrupt.hpp"
#include "order.hpp"
#include "progress.hpp"
#include "simulated.hpp"
#include "slicer.hpp"
#include "storage.hpp"

namespace lapwing {

class Pipeline {
public:
    Pipeline(const lw_program &program, const lw_module *modules, lw_tile *tiles, const Courier &courier,
             Progress &progress, Storage &storage, Trace &trace, lw_progress report, double grace_seconds)
        : program_(program), modules_(modules), tiles_(tiles), courier_(courier), progress_(progress),
          storage_(storage), trace_(trace), report_(report), grace_seconds_(grace_seconds) {}

    // slice_seconds is how long to compute between two polls; a dry run computes nothing.
    //
    // Where Python would raise, here or on another rank that has said so, nothing more is computed, but messages go on,
    // here for grace_seconds: all ranks come to their end and can agree on what happened.
    int run(double slice_seconds, bool dry) {
        const double begin = trace_.restart(), cpu_begin = cpu_now();
        std::vector<Slicer> slicers;
        for (std::int64_t phase = 0; phase < program_.phases; ++phase) {
            slicers.emplace_back(program_.phase[phase], progress_.slices_steps() ? slice_seconds : quiet_slice_seconds);
        }
        const double began_at = trace_.stamp();
        double first = begin, last = begin, exposed_before = 0, exposed_until_last = 0;
        bool started = false;
        next_report_ = begin + report_interval;
        progress_.start();
        storage_.start();
        Order order(program_);
        Position at = order.first(), end_of_all{0, 0};
        for (bool more = true; more; more = order.advance(at), ++done_) {
            if (at.step == program_.phase[at.phase].first_step) progress_.before_phase(at);
            if (const int status = wait_for_disk(at); status != LW_DONE) return status;
            progress_.before_step(at);
            if (!started) {
                started = true;
                first = trace_.mark();
                exposed_before = trace_.times().exposed;
            }
            if (trapped_) {
                const double left = trapped_at_ + grace_seconds_ - now();
                if (left <= 0) return LW_TRAPPED;
                progress_.hurry(left);
            } else if (is_computed_here(at) && !passes_on_ && (!dry || simulated)) {
                if (const int status = compute(at, slicers[static_cast<std::size_t>(at.phase)], dry); status != LW_DONE)
                    return status;
            }
            if (trapped_ || passes_on_) storage_.abandon(std::min(at.sweep, stopped_sweep_));
            last = trace_.mark();
            exposed_until_last = trace_.times().exposed;
            progress_.after_step(at);
            storage_.release(at, trace_);
            end_of_all = at;
        }
        progress_.finish(end_of_all);
        if (const int status = wait_for([&] { return storage_.has_finished(trace_); }, end_of_all); status != LW_DONE) {
            return status;
        }
        const double end = now(), cpu = cpu_now() - cpu_begin;
        lw_times &times = trace_.times();
        times.begin = began_at;
        times.total = end - begin;
        times.fill = first - begin;
        times.drain = end - last;
        times.exposed = exposed_until_last - exposed_before;
        times.cpu_lost = std::clamp(end - begin - cpu - slept_, 0.0, end - begin);
        return LW_DONE;
    }

private:
    static constexpr double report_interval = 0.1;
    static constexpr double quiet_slice_seconds = 20e-3; // only progress reports and interrupts are served in between

    // The library progresses while the disk is waited for, and interrupts are served.
    template <class Done>
    int wait_for(Done done, Position at) {
        if (done()) return LW_DONE;
        const double begin = trace_.mark();
        double seconds = 0;
        do {
            const double cpu_begin = cpu_now();
            storage_.rest();
            const double rested = trace_.lap();
            slept_ += std::max(0.0, rested - (cpu_now() - cpu_begin));
            seconds += rested;
            if (progress_.slices_steps()) progress_.between_slices(at);
            if (stop_requested()) return LW_STOPPED;
            if (passes_on_) storage_.abandon(std::min(at.sweep, stopped_sweep_));
            if (trapped_ && now() > trapped_at_ + grace_seconds_) return LW_TRAPPED;
        } while (!done());
        trace_.record(LW_DISK, {at}, begin, trace_.mark(), seconds, 0);
        return LW_DONE;
    }

    // Opening and closing sweeps compute nothing.
    bool is_computed_here(Position at) const {
        return at.sweep >= program_.opening_sweeps && at.sweep < program_.sweeps - program_.closing_sweeps;
    }

    int wait_for_disk(Position at) {
        return wait_for([&] { return storage_.is_ready(at); }, at);
    }

    int compute(Position at, Slicer &slicer, bool dry) {
        lw_tile &tile = tiles_[at.phase];
        lw_box box = courier_.in_sweep(at.phase, program_.step_boxes[at.step], at.sweep);
        if (joins_sweeps()) {
            const bool is_last = at.sweep + program_.closing_sweeps + 1 == program_.sweeps;
            box.hi[0] = box.lo[0] + (is_last ? program_.last_joined : program_.joined_sweeps);
            if (program_.step_moves != nullptr) tile.moves = program_.step_moves[at.step];
        }
        const double begin = trace_.mark();
        double seconds = 0;
        bool goes_on = true;
        const auto compute_slice = [&](const lw_box &slice) {
            dawdle();
            if (!dry) compute_until_interrupted(modules_[at.phase], &tile, &slice);
            spend_computing(slicer.volume(slice));
            const double spent = trace_.lap();
            seconds += spent;
            // A step in one slice is over then, and its messages are seen to anyway.
            if (progress_.slices_steps() && !joins_sweeps()) slicer.note_pause(progress_.between_slices(at));
            goes_on = tile.trap == 0 && !stop_requested();
            return goes_on && !passes_on_ ? spent : Slicer::stop;
        };
        if (joins_sweeps()) {
            compute_slice(box); // sweeps depend on each other across the edges of slices
        } else {
            slicer.run(box, compute_slice);
        }
        trace_.record(LW_COMPUTE, {at}, begin, trace_.mark(), seconds, 0);
        if (tile.trap != 0) {
            tile.trap_sweep = at.sweep;
            tile.trap_step = at.step;
            trapped_ = true;
            trapped_at_ = now();
            if (grace_seconds_ <= 0) return LW_TRAPPED;
            if (report_ != nullptr) report_(-1, program_.sweeps * program_.steps);
            return LW_DONE;
        }
        return goes_on ? LW_DONE : LW_STOPPED;
    }

    bool joins_sweeps() const { return program_.joined_sweeps > 1; }

    bool stop_requested() {
        if (is_interrupted()) return true;
        if (report_ == nullptr || trace_.mark() < next_report_) return false;
        next_report_ = trace_.mark() + report_interval;
        const std::int64_t answer = report_(done_, program_.sweeps * program_.steps);
        passes_on_ = answer >= LW_PASS_ON;
        if (passes_on_) stopped_sweep_ = answer - LW_PASS_ON;
        return answer == LW_STOP;
    }

    const lw_program &program_;
    const lw_module *modules_;
    lw_tile *tiles_;
    const Courier &courier_;
    Progress &progress_;
    Storage &storage_;
    Trace &trace_;
    lw_progress report_;
    double grace_seconds_;
    std::int64_t done_ = 0; // steps
    double next_report_ = 0, trapped_at_ = 0, slept_ = 0;
    bool trapped_ = false;                                                  // here Python would raise
    bool passes_on_ = false;                                                // another rank has met an error
    std::int64_t stopped_sweep_ = std::numeric_limits<std::int64_t>::max(); // there
};

} // namespace lapwing
