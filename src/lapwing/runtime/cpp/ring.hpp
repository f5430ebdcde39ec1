// The messages of one channel over a whole run, and the buffers they take turns in.
//
// Messages are numbered batch by batch: number = batch * messages + index. A batch is `program.batch` sweeps, and a
// message holds a slab for each of them. Message n lives in slot n % depth.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "lapwing.h"
#include "trace.hpp"

namespace lapwing {

class Ring {
public:
    // A message starts with the time it was sent.
    static constexpr std::int64_t header_bytes = sizeof(double);

    Ring(const lw_program &program, const lw_channel &channel, std::int64_t depth)
        : program_(&program), channel_(&channel), depth_(depth),
          slot_bytes_(round_up(header_bytes + channel.largest * program.batch)) {}

    const lw_channel &channel() const { return *channel_; }
    std::int64_t depth() const { return depth_; }
    std::int64_t bytes() const { return depth_ * slot_bytes_; }

    // Where the slots are.
    void place(char *base) { base_ = base; }
    char *base() const { return base_; }

    char *slot(std::int64_t number) const { return base_ + slot_offset(number); }
    std::int64_t slot_offset(std::int64_t number) const { return number % depth_ * slot_bytes_; }
    char *slab(std::int64_t number, std::int64_t sweep) const {
        return slot(number) + header_bytes + sweep % program_->batch * message(number).bytes;
    }

    const lw_message &message(std::int64_t number) const {
        return program_->messages[channel_->first_message + number % channel_->messages];
    }

    // All bytes of a message, header and slabs.
    std::int64_t message_bytes(std::int64_t number) const {
        const std::int64_t first = number / channel_->messages * program_->batch;
        return header_bytes + message(number).bytes * std::min(program_->batch, program_->sweeps - first);
    }

    // How many messages there are in the run: old values of the last sweep are not needed.
    std::int64_t count() const {
        const std::int64_t batches = (program_->sweeps + program_->batch - 1) / program_->batch;
        return std::max<std::int64_t>(0, batches - channel_->lag) * channel_->messages;
    }

    struct Numbers {
        std::int64_t first, last; // half-open
        bool empty() const { return first >= last; }
    };

    // Messages the step produces (outgoing).
    Numbers made_at(Position at) const { return of_step(at.sweep, at.step); }

    // Messages the step is the first to need (incoming).
    Numbers needed_at(Position at) const {
        return at.sweep < channel_->lag ? Numbers{0, 0} : of_step(at.sweep - channel_->lag, at.step);
    }

    bool opens_batch(std::int64_t sweep) const { return sweep % program_->batch == 0; }
    bool closes_batch(std::int64_t sweep) const {
        return (sweep + 1) % program_->batch == 0 || sweep + 1 == program_->sweeps;
    }

    static void stamp(char *slot, double time) { std::memcpy(slot, &time, sizeof time); }
    static double stamp_of(const char *slot) {
        double time = 0;
        std::memcpy(&time, slot, sizeof time);
        return time;
    }

private:
    static constexpr std::int64_t line = 64;
    static std::int64_t round_up(std::int64_t bytes) { return (bytes + line - 1) / line * line; }

    Numbers of_step(std::int64_t sweep, std::int64_t step) const {
        const lw_message *begin = program_->messages + channel_->first_message;
        const auto found = std::equal_range(begin, begin + channel_->messages, step, Earlier{});
        const std::int64_t base = sweep / program_->batch * channel_->messages;
        if (base >= count()) return {0, 0};
        return {base + (found.first - begin), base + (found.second - begin)};
    }

    // Messages of a channel are sorted by step.
    struct Earlier {
        bool operator()(const lw_message &a, std::int64_t b) const { return a.step < b; }
        bool operator()(std::int64_t a, const lw_message &b) const { return a < b.step; }
    };

    const lw_program *program_;
    const lw_channel *channel_;
    std::int64_t depth_, slot_bytes_;
    char *base_ = nullptr;
};

} // namespace lapwing
