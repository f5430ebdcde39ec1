// Packs, unpacks and puts messages through the generated module: what all transports have in common.
#pragma once

#include <algorithm>
#include <span>

#include "delays.hpp"
#include "lapwing.h"
#include "trace.hpp"

namespace lapwing {

class Courier {
public:
    // modules, tiles: of the phases.
    Courier(const lw_program &program, const lw_module *modules, lw_tile *tiles, bool dry)
        : program_(program), modules_(modules), tiles_(tiles), dry_(dry) {}

    const lw_program &program() const { return program_; }

    void pack(std::int64_t phase, const lw_message &message, std::int64_t sweep, char *out) const {
        if (dry_) return;
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(phase, part.box, sweep);
            dawdle();
            modules_[phase].pack(&tiles_[phase], static_cast<std::int32_t>(part.face), &box, out);
            out += part.bytes;
        }
    }

    void unpack(std::int64_t phase, const lw_message &message, std::int64_t sweep, const char *in) const {
        if (dry_) return;
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(phase, part.box, sweep);
            dawdle();
            modules_[phase].unpack(&tiles_[phase], static_cast<std::int32_t>(part.face), &box, in);
            in += part.bytes;
        }
    }

    // Stores what a message would hold straight into a neighbour's arrays.
    void put(std::int64_t phase, const lw_message &message, std::int64_t sweep, const lw_array *there) const {
        if (dry_) return;
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(phase, part.box, sweep);
            dawdle();
            modules_[phase].put(&tiles_[phase], static_cast<std::int32_t>(part.face), &box, there);
        }
    }

    // The box of a phase with the ranges of the sweep loops set to one sweep.
    lw_box in_sweep(std::int64_t phase, lw_box box, std::int64_t sweep) const {
        const std::int64_t depth = program_.phase[phase].sweep_depth;
        const std::int64_t *point = program_.phase[phase].sweep_points + sweep * depth;
        for (std::int64_t k = 0; k < depth; ++k) {
            box.lo[k] = point[k];
            box.hi[k] = point[k] + 1;
        }
        return box;
    }

private:
    std::span<const lw_part> parts(const lw_message &message) const {
        return {program_.parts + message.first_part, static_cast<std::size_t>(message.parts)};
    }

    const lw_program &program_;
    const lw_module *modules_;
    lw_tile *tiles_;
    bool dry_;
};

} // namespace lapwing
