// Of the messages a step needs, the one it waits for longest.
#pragma once

#include "ring.hpp"

namespace lapwing {

// When the last message was sent (by the clock of all ranks), and by whom.
struct Awaited {
    double sent = 0;
    std::int64_t peer = -1;
    std::int64_t bytes = 0;

    // Takes what a channel brings for the step, if it was sent later; sent_at tells when a message was sent.
    template <class SentAt>
    void consider(const Ring &ring, Position at, SentAt sent_at) {
        const Ring::Numbers needed = ring.needed_at(at);
        if (needed.empty() || !ring.opens_batch(at.sweep)) return;
        const double time = sent_at(needed.last - 1);
        if (time >= sent) *this = {time, ring.channel().peer, ring.message_bytes(needed.last - 1)};
    }
};

} // namespace lapwing
