// The blocking engine's transport: receive, compute, synchronous send, nothing at the same time (P0, ProcB).
//
// What a phase needs of earlier phases is exchanged right before it, and old values that the next sweep reads (P3's top
// frontier) between sweeps.
#pragma once

#include "two_sided.hpp"
#include "waiting.hpp"

namespace lapwing {

class Blocking final : public TwoSided {
public:
    Blocking(Courier &courier, MPI_Comm comm, const WaitingRules &rules)
        : TwoSided(courier, comm, 0, 0), comm_(comm), rules_(rules) {}

    void before_phase(Position at, Trace &trace) override { exchange(at, trace); }

    bool has_arrived(Position at, Trace &trace) override {
        bool all = true;
        for (Mailbox &box : incoming_) {
            if (is_exchanged(box) || !box.ring.opens_batch(at.sweep)) continue;
            // All receives of the step are posted together: its messages may come in any order.
            const Ring::Numbers needed = box.ring.needed_at(at);
            while (box.posted < needed.last) box.receive_next();
            if (!needed.empty()) all = arrived(box, at, trace) >= needed.last && all;
        }
        return all;
    }

    std::int64_t blocked_by(Position) override { return -1; } // every send has ended before the next step

    void send(Position at, Trace &trace) override {
        for (Mailbox &box : outgoing_) {
            if (is_exchanged(box) || !box.ring.closes_batch(at.sweep)) continue;
            const Ring::Numbers made = box.ring.made_at(at);
            for (std::int64_t n = made.first; n < made.last; ++n) {
                const std::int64_t peer = box.ring.channel().peer, bytes = box.ring.message_bytes(n);
                Ring::stamp(box.ring.slot(n), trace.stamp());
                box.send_next_synchronously();
                trace.lap(LW_POST, {at, peer, bytes});
                wait_until(
                    rules_, [&] { return left(box) > n; },
                    [&] { return "rank " + std::to_string(peer) + " to take a message"; });
                trace.count_message(bytes);
                trace.lap(LW_WAIT, {at, peer, bytes});
            }
        }
    }

private:
    static bool is_exchanged(const Mailbox &box) { return box.ring.channel().exchange >= 0; }

    // Of the first sweep there are no old values yet.
    static bool is_exchanged_before(const Mailbox &box, Position at) {
        const lw_channel &channel = box.ring.channel();
        return channel.exchange == at.phase && channel.lag <= at.sweep;
    }

    // The messages of a whole sweep lie one after the other in a ring of that depth: they are sent as one.
    void exchange(Position at, Trace &trace) {
        std::vector<MPI_Request> requests;
        std::int64_t bytes = 0;
        for (Mailbox &box : incoming_) {
            if (!is_exchanged_before(box, at)) continue;
            checked(MPI_Irecv(box.ring.base(), static_cast<int>(box.ring.bytes()), MPI_BYTE,
                              static_cast<int>(box.ring.channel().peer), message_tag(box.ring.channel()), comm_,
                              &requests.emplace_back()));
        }
        for (Mailbox &box : outgoing_) {
            if (!is_exchanged_before(box, at)) continue;
            for (std::int64_t n = 0; n < box.ring.depth(); ++n) {
                Ring::stamp(box.ring.slot(n), trace.stamp());
            }
            spend_sending(box.ring.bytes());
            checked(MPI_Issend(box.ring.base(), static_cast<int>(box.ring.bytes()), MPI_BYTE,
                               static_cast<int>(box.ring.channel().peer), message_tag(box.ring.channel()), comm_,
                               &requests.emplace_back()));
            trace.count_message(box.ring.bytes());
            bytes += box.ring.bytes();
        }
        if (requests.empty()) return;
        wait_until(
            rules_, [&] { return are_complete(requests); },
            [] { return std::string("what the neighbours have computed before"); });
        const double end = now();
        double sent = trace.mark();
        for (Mailbox &box : incoming_) {
            if (!is_exchanged_before(box, at)) continue;
            sent = std::max(sent, trace.here(Ring::stamp_of(box.ring.base())));
            spend_receiving(box.ring.bytes());
            trace.record(LW_TRANSFER, {at, box.ring.channel().peer, box.ring.bytes()}, std::min(sent, end), end);
        }
        trace.lap_waiting({at, -1, bytes}, sent);
    }

    MPI_Comm comm_;
    WaitingRules rules_;
};

} // namespace lapwing
