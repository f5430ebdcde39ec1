// What one thread of a rank did and when: every time that is ever reported comes from here.
//
// Intervals are laps: each begins at the mark, where the one before ended, so that a step costs few looks at the clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "lapwing.h"

namespace lapwing {

// Where in a run a rank stands.
struct Position {
    std::int64_t sweep;
    std::int64_t step; // of the sweep
    std::int32_t phase = 0;
};

class Trace {
public:
    // Keeps at most `capacity` events. clock_offset makes this rank's clock agree with the others'.
    Trace(std::int64_t capacity, double clock_offset, std::int32_t thread)
        : capacity_(capacity), clock_offset_(clock_offset), thread_(thread) {}

    lw_times &times() { return times_; }

    // The mark, by the clock of all ranks; and a time of that clock by this rank's.
    double stamp() const { return mark_ + clock_offset_; }
    double here(double stamp) const { return stamp - clock_offset_; }

    double mark() const { return mark_; }
    double restart() { return mark_ = now(); }

    // Moves the mark to now; the seconds since it was there.
    double lap() {
        const double begin = mark_;
        return restart() - begin;
    }

    // What an interval was about.
    struct Subject {
        Position at;
        std::int64_t peer = -1, bytes = 0;
    };

    // Moves the mark to now and records what was done since.
    void lap(lw_activity activity, const Subject &subject) {
        const double begin = mark_;
        record(activity, subject, begin, restart());
    }

    // As lap, of a wait for a message that was sent at a time of this rank's clock: the rest of it is exposed. A
    // transfer is counted by who receives it; a sender that waits may be waiting for a receiver that is late.
    void lap_waiting(const Subject &subject, double sent) {
        const double begin = mark_, end = restart();
        record(LW_WAIT, subject, begin, end, end - begin, std::clamp(end - sent, 0.0, end - begin));
    }

    void record(lw_activity activity, const Subject &subject, double begin, double end) {
        record(activity, subject, begin, end, end - begin, 0);
    }

    // Of the interval only `seconds` were spent in the activity.
    void record(lw_activity activity, const Subject &subject, double begin, double end, double seconds,
                double exposed) {
        times_.activity[activity] += seconds;
        times_.exposed += exposed;
        if (++count_ > capacity_) return;
        events_.push_back({begin + clock_offset_, end + clock_offset_, seconds, exposed, subject.at.sweep,
                           subject.at.step, subject.bytes, activity, thread_, static_cast<std::int32_t>(subject.peer),
                           subject.at.phase});
    }

    void count_message(std::int64_t bytes) {
        times_.messages += 1;
        times_.bytes += bytes;
    }

    // Takes in what another thread of this rank did.
    void join(const Trace &other) {
        for (int activity = 0; activity < LW_ACTIVITIES; ++activity)
            times_.activity[activity] += other.times_.activity[activity];
        times_.exposed += other.times_.exposed;
        times_.messages += other.times_.messages;
        times_.bytes += other.times_.bytes;
        times_.read_bytes += other.times_.read_bytes;
        times_.written_bytes += other.times_.written_bytes;
        const auto room = static_cast<std::size_t>(std::max<std::int64_t>(0, capacity_ - kept()));
        const auto more = std::min(room, other.events_.size());
        events_.insert(events_.end(), other.events_.begin(), other.events_.begin() + static_cast<std::ptrdiff_t>(more));
        count_ += other.count_;
    }

    void copy_to(lw_trace &out) const {
        std::copy(events_.begin(), events_.end(), out.events);
        out.count = count_;
    }

private:
    std::int64_t kept() const { return static_cast<std::int64_t>(events_.size()); }

    std::int64_t capacity_, count_ = 0;
    double clock_offset_, mark_ = 0;
    std::int32_t thread_;
    std::vector<lw_event> events_;
    lw_times times_{};
};

} // namespace lapwing
