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
    Courier(const lw_program &program, const lw_module &module, lw_tile &tile, bool dry)
        : program_(program), module_(module), tile_(tile), dry_(dry) {}

    const lw_program &program() const { return program_; }

    void pack(const lw_message &message, std::int64_t sweep, char *out) const {
        if (dry_) return;
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(part.box, sweep);
            dawdle();
            module_.pack(&tile_, static_cast<std::int32_t>(part.face), &box, out);
            out += part.bytes;
        }
    }

    void unpack(const lw_message &message, std::int64_t sweep, const char *in) const {
        if (dry_) return;
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(part.box, sweep);
            dawdle();
            module_.unpack(&tile_, static_cast<std::int32_t>(part.face), &box, in);
            in += part.bytes;
        }
    }

    // Stores what a message would hold straight into a neighbour's arrays.
    void put(const lw_message &message, std::int64_t sweep, const lw_array *there) const {
        if (dry_) return;
        for (const lw_part &part : parts(message)) {
            const lw_box box = in_sweep(part.box, sweep);
            dawdle();
            module_.put(&tile_, static_cast<std::int32_t>(part.face), &box, there);
        }
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

private:
    std::span<const lw_part> parts(const lw_message &message) const {
        return {program_.parts + message.first_part, static_cast<std::size_t>(message.parts)};
    }

    const lw_program &program_;
    const lw_module &module_;
    lw_tile &tile_;
    bool dry_;
};

} // namespace lapwing
