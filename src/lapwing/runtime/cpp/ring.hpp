// The messages of one channel over a whole run, and the buffers they take turns in.
//
// Messages are numbered batch by batch: number = batch * messages + index. A batch is `program.batch` sweeps, and a
// message holds a slab for each of them. Message n lives in slot n % depth. Where sweeps share a pass the channel has
// one sweep of each, and passes take the place of batches.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "lapwing.h"
#include "passes.hpp"
#include "trace.hpp"

namespace lapwing {

// Another one for every channel of a pair of ranks: of a phase there may be one for the phase itself, one for later
// phases and one for the next sweep; there is one sweep a pass or one phase. Tags from 2 to 7 above each are for other
// uses.
inline int message_tag(const lw_channel &channel) {
    const bool for_later_phases = channel.lag == 0 && channel.exchange >= 0;
    return static_cast<int>(channel.lag + 8 * (channel.pass_sweep + 2 * channel.phase + (for_later_phases ? 1 : 0)));
}

class Ring {
public:
    // A message starts with the time it was sent.
    static constexpr std::int64_t header_bytes = sizeof(double);

    Ring(const lw_program &program, const lw_channel &channel, std::int64_t depth)
        : program_(&program), channel_(&channel), depth_(depth),
          slot_bytes_(round_up(header_bytes + channel.largest * program.batch)), before_step_(counts_before_steps()) {}

    const lw_channel &channel() const { return *channel_; }
    std::int64_t depth() const { return depth_; }
    std::int64_t bytes() const { return depth_ * slot_bytes_; }

    // Where the slots are.
    void place(char *base) { base_ = base; }
    char *base() const { return base_; }

    char *slot(std::int64_t number) const { return base_ + slot_offset(number); }
    std::int64_t slot_offset(std::int64_t number) const { return number % depth_ * slot_bytes_; }
    char *slab(std::int64_t number, std::int64_t sweep) const {
        const std::int64_t slab = program_->batch == 1 ? 0 : sweep % program_->batch * message(number).bytes;
        return slot(number) + header_bytes + slab;
    }

    const lw_message &message(std::int64_t number) const {
        return program_->messages[channel_->first_message + number % channel_->messages];
    }

    // All bytes of a message, header and slabs.
    std::int64_t message_bytes(std::int64_t number) const {
        if (program_->batch == 1) return header_bytes + message(number).bytes;
        const std::int64_t first = number / channel_->messages * program_->batch;
        return header_bytes + message(number).bytes * std::min(program_->batch, program_->sweeps - first);
    }

    // How many messages there are in the run: old values of the last sweep are not needed, and closing sweeps send
    // none.
    std::int64_t count() const {
        if (program_->batch > 1) return (program_->sweeps + program_->batch - 1) / program_->batch * channel_->messages;
        return Passes(*program_).count(channel_->pass_sweep, sending_sweeps()) * channel_->messages;
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

    bool opens_batch(std::int64_t sweep) const { return program_->batch == 1 || sweep % program_->batch == 0; }
    bool closes_batch(std::int64_t sweep) const {
        return program_->batch == 1 || (sweep + 1) % program_->batch == 0 || sweep + 1 == program_->sweeps;
    }

    // How many steps the receiver has to have done before a message may overwrite what it reads (outgoing, one sweep a
    // batch and a pass).
    std::int64_t free_after(std::int64_t number) const {
        return number / channel_->messages * channel_->peer_steps + message(number).free_step;
    }

    // How many steps are done with this one.
    std::int64_t done_with(Position at) const { return at.sweep * program_->steps + at.step + 1; }

    static void stamp(char *slot, double time) { std::memcpy(slot, &time, sizeof time); }
    static double stamp_of(const char *slot) {
        double time = 0;
        std::memcpy(&time, slot, sizeof time);
        return time;
    }

private:
    static constexpr std::int64_t line = 64;
    static std::int64_t round_up(std::int64_t bytes) { return (bytes + line - 1) / line * line; }

    // In how many sweeps messages are sent.
    std::int64_t sending_sweeps() const { return program_->sweeps - std::max(channel_->lag, program_->closing_sweeps); }

    Numbers of_step(std::int64_t sweep, std::int64_t step) const {
        const Passes passes(*program_);
        if (sweep >= sending_sweeps() || passes.place_of(sweep) != channel_->pass_sweep) return {0, 0};
        const std::int64_t base = passes.pass_of(sweep) / program_->batch * channel_->messages;
        const std::int64_t *before = &before_step_[static_cast<std::size_t>(step)];
        return {base + before[0], base + before[1]};
    }

    // For every step, how many messages belong to earlier ones. Messages are sorted by step.
    std::vector<std::int64_t> counts_before_steps() const {
        std::vector<std::int64_t> counts(static_cast<std::size_t>(program_->steps) + 1);
        const lw_message *messages = program_->messages + channel_->first_message;
        std::int64_t count = 0;
        for (std::int64_t step = 0; step <= program_->steps; ++step) {
            while (count < channel_->messages && messages[count].step < step) ++count;
            counts[static_cast<std::size_t>(step)] = count;
        }
        return counts;
    }

    const lw_program *program_;
    const lw_channel *channel_;
    std::int64_t depth_, slot_bytes_;
    std::vector<std::int64_t> before_step_;
    char *base_ = nullptr;
};

} // namespace lapwing
