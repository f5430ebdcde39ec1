// Faces into the slots of a ring and out of them, as every transport with buffers does it.
#pragma once

#include "courier.hpp"
#include "ring.hpp"

namespace lapwing {

// What the step needs of a channel, from its slots to where the step reads it.
inline void unpack_slabs(const Courier &courier, const Ring &ring, Position at, Trace &trace) {
    const Ring::Numbers needed = ring.needed_at(at);
    if (needed.empty()) return;
    const std::int64_t written_in = at.sweep - ring.channel().lag;
    std::int64_t bytes = 0;
    for (std::int64_t n = needed.first; n < needed.last; ++n) {
        courier.unpack(ring.channel().phase, ring.message(n), written_in, ring.slab(n, written_in));
        bytes += ring.message(n).bytes;
    }
    trace.lap(LW_UNPACK, {at, ring.channel().peer, bytes});
}

// What the step made for a channel: into its slots, or, where the receiver's arrays are there, straight into these.
inline void pack_slabs(const Courier &courier, const Ring &ring, const lw_array *there, Position at, Trace &trace) {
    const Ring::Numbers made = ring.made_at(at);
    if (made.empty()) return;
    std::int64_t bytes = 0;
    for (std::int64_t n = made.first; n < made.last; ++n) {
        if (there != nullptr) {
            courier.put(ring.channel().phase, ring.message(n), at.sweep, there);
        } else {
            courier.pack(ring.channel().phase, ring.message(n), at.sweep, ring.slab(n, at.sweep));
        }
        bytes += ring.message(n).bytes;
    }
    trace.lap(LW_PACK, {at, ring.channel().peer, bytes});
}

} // namespace lapwing
