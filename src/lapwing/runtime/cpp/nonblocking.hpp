// The overlap engine's transport: receives posted ahead, sends left in flight, the library driven by polling.
//
// While step k computes, the messages of step k+1 arrive and those of step k-1 leave (P0, ProcNB): of every channel,
// `depth` receives are always posted ahead and up to `depth` sends are in flight.
#pragma once

#include "two_sided.hpp"

namespace lapwing {

class Nonblocking final : public TwoSided {
public:
    Nonblocking(Courier &courier, MPI_Comm comm, std::int64_t split_bytes, std::int64_t spare_buffers)
        : TwoSided(courier, comm, split_bytes, spare_buffers) {}

    void start(Trace &) override {
        for (Mailbox &box : incoming_) post_receives(box);
    }

    bool has_arrived(Position at, Trace &trace) override {
        for (Mailbox &box : incoming_) {
            if (!box.ring.opens_batch(at.sweep)) return true;
            const Ring::Numbers needed = box.ring.needed_at(at);
            if (!needed.empty() && arrived(box, at, trace) < needed.last) return false;
        }
        return true;
    }

    void recycle(Position at) override {
        for (Mailbox &box : incoming_) {
            const std::int64_t written_in = at.sweep - box.ring.channel().lag;
            const Ring::Numbers needed = box.ring.needed_at(at);
            if (needed.empty() || !box.ring.closes_batch(written_in)) continue;
            box.used = needed.last;
            post_receives(box);
        }
    }

    std::int64_t blocked_by(Position at) override {
        if (!outgoing_.empty() && !outgoing_.front().ring.opens_batch(at.sweep)) return -1;
        for (Mailbox &box : outgoing_) {
            const Ring::Numbers made = box.ring.made_at(at);
            if (!made.empty() && left(box) < made.last - box.ring.depth()) return box.ring.channel().peer;
        }
        return -1;
    }

    void send(Position at, Trace &trace) override {
        for (Mailbox &box : outgoing_) {
            const Ring::Numbers made = box.ring.made_at(at);
            if (made.empty() || !box.ring.closes_batch(at.sweep)) continue;
            for (std::int64_t n = made.first; n < made.last; ++n) {
                Ring::stamp(box.ring.slot(n), trace.stamp());
                box.send_next();
                const std::int64_t bytes = box.ring.message_bytes(n);
                trace.count_message(bytes);
                trace.lap(LW_POST, {at, box.ring.channel().peer, bytes});
            }
        }
    }

    bool needs_polling() const override { return !incoming_.empty() || !outgoing_.empty(); }

    void poll(Position at, Trace &trace) override {
        // Asking about one open request drives all of them.
        for (Mailbox &box : incoming_) {
            if (arrived(box, at, trace) < box.posted) return;
        }
        for (Mailbox &box : outgoing_) {
            if (left(box) < box.posted) return;
        }
    }

    bool has_finished(Trace &) override {
        bool finished = true;
        for (Mailbox &box : outgoing_) finished = left(box) == box.posted && finished;
        return finished;
    }

private:
    void post_receives(Mailbox &box) {
        const std::int64_t count = box.ring.count();
        while (box.posted < count && box.posted < box.used + box.ring.depth()) box.receive_next();
    }
};

} // namespace lapwing
