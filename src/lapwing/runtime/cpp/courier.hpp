// Packs and unpacks messages through the generated module: what all transports have in common.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "lapwing.h"
#include "stopwatch.hpp"

namespace lapwing {

class Courier {
public:
    // A message starts with the time it was sent.
    static constexpr std::int64_t header_bytes = sizeof(double);

    Courier(const lw_program &program, const lw_module &module, lw_tile &tile, double clock_offset, bool dry,
            lw_times &times)
        : program_(program), module_(module), tile_(tile), clock_offset_(clock_offset), dry_(dry), times_(times) {}

    const lw_program &program() const { return program_; }
    lw_times &times() { return times_; }

    void pack(const lw_message &message, std::int64_t sweep, char *out) {
        if (dry_) return;
        Stopwatch watch(times_.pack);
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(part.box, sweep);
            module_.pack(&tile_, static_cast<std::int32_t>(part.face), &box, out);
            out += part.bytes;
        }
    }

    void unpack(const lw_message &message, std::int64_t sweep, const char *in) {
        if (dry_) return;
        Stopwatch watch(times_.unpack);
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(part.box, sweep);
            module_.unpack(&tile_, static_cast<std::int32_t>(part.face), &box, in);
            in += part.bytes;
        }
    }

    void stamp(char *message) const {
        const double sent = now() + clock_offset_;
        std::memcpy(message, &sent, sizeof sent);
    }

    // Waits for a message by calling `arrive`; only the time since it was sent counts as exposed communication.
    template <class Arrive>
    void wait_for_message(const char *message, Arrive arrive) {
        const double start = now();
        arrive();
        const double end = now();
        double sent = 0;
        std::memcpy(&sent, message, sizeof sent);
        times_.wait += end - start;
        times_.exposed += std::clamp(end + clock_offset_ - sent, 0.0, end - start);
    }

    // Waits for a buffer that is still being sent: all of it is exposed.
    template <class Leave>
    void wait_for_send(Leave leave) {
        const double start = now();
        leave();
        const double waited = now() - start;
        times_.wait += waited;
        times_.exposed += waited;
    }

    // The box with the ranges of the sweep loops set to one sweep.
    lw_box in_sweep(lw_box box, std::int64_t sweep) const {
        const std::int64_t *point = program_.sweep_points + sweep * program_.sweep_depth;
        for (std::int64_t k = 0; k < program_.sweep_depth; ++k) {
            box.lo[k] = point[k];
            box.hi[k] = point[k] + 1;
        }
        return box;
    }

    // Whether messages sent in this sweep are ever used: old values serve the next sweep only.
    bool sends_in(const lw_channel &channel, std::int64_t sweep) const { return sweep + channel.lag < program_.sweeps; }

private:
    std::span<const lw_part> parts(const lw_message &message) const {
        return {program_.parts + message.first_part, static_cast<std::size_t>(message.parts)};
    }

    const lw_program &program_;
    const lw_module &module_;
    lw_tile &tile_;
    double clock_offset_;
    bool dry_;
    lw_times &times_;
};

} // namespace lapwing
