// The one-sided transport: a rank writes its faces where its neighbours read them (P1).
//
// Between ranks of one node no library is called: faces are stored into the neighbour's own arrays, or, when several
// sweeps travel together, packed into its slots (P1's PIO mode). Other nodes' windows are written by the network (P1's
// DMA mode, remote.hpp).
#pragma once

#include <memory>
#include <vector>

#include "courier.hpp"
#include "delays.hpp"
#include "link.hpp"
#include "packing.hpp"
#include "simulated.hpp"
#include "transport.hpp"

namespace lapwing {

class OneSided final : public Transport {
public:
    using Inbounds = std::vector<std::unique_ptr<Inbound>>;
    using Outbounds = std::vector<std::unique_ptr<Outbound>>;

    // drive lets the library progress where some links need it; else it is null.
    OneSided(const Courier &courier, Inbounds incoming, Outbounds outgoing, void (*drive)(void *), void *driven)
        : courier_(courier), incoming_(std::move(incoming)), outgoing_(std::move(outgoing)), drive_(drive),
          driven_(driven) {}

    bool has_arrived(Position at, Trace &trace) override {
        for (auto &link : incoming_) {
            if (!link->ring.opens_batch(at.sweep)) continue;
            const Ring::Numbers needed = link->ring.needed_at(at);
            if (needed.empty()) continue;
            if (looks_away() || link->arrived() < needed.last) {
                wait_usefully();
                return false;
            }
            if (drive_ != nullptr) record_arrival(*link, at, needed, trace);
        }
        return true;
    }

    std::int64_t missing(Position at) override {
        for (auto &link : incoming_) {
            if (link->arrived() < link->ring.needed_at(at).last) return link->ring.channel().peer;
        }
        return -1;
    }

    Awaited awaited(Position at) override {
        Awaited latest;
        for (auto &link : incoming_) {
            latest.consider(link->ring, at, [&](std::int64_t number) { return link->sent(number); });
        }
        return latest;
    }

    void unpack(Position at, Trace &trace) override {
        for (auto &link : incoming_) {
            if (!link->is_direct()) unpack_slabs(courier_, link->ring, at, trace);
        }
    }

    void recycle(Position at) override {
        for (auto &link : incoming_) {
            const std::int64_t written_in = at.sweep - link->ring.channel().lag;
            const Ring::Numbers needed = link->ring.needed_at(at);
            if (needed.empty() || link->is_direct() || !link->ring.closes_batch(written_in)) continue;
            link->finish(needed.last);
        }
    }

    void release(Position at) override {
        for (auto &link : incoming_) {
            if (link->is_direct()) link->finish(link->ring.done_with(at));
        }
    }

    std::int64_t blocked_by(Position at) override {
        for (auto &link : outgoing_) {
            if (!link->ring.opens_batch(at.sweep)) continue;
            const Ring::Numbers made = link->ring.made_at(at);
            if (!made.empty() && (looks_away() || !link->has_room(made.last - 1))) {
                wait_usefully();
                return link->ring.channel().peer;
            }
        }
        return -1;
    }

    void pack(Position at, Trace &trace) override {
        for (auto &link : outgoing_) pack_slabs(courier_, link->ring, link->there(), at, trace);
    }

    void send(Position at, Trace &trace) override {
        if (drive_ != nullptr && !outgoing_.empty() && outgoing_.front()->ring.closes_batch(at.sweep)) {
            // Earlier messages have had a step, or a batch, to arrive in.
            for (auto &link : outgoing_) link->settle();
            trace.lap(LW_WAIT, {at});
        }
        for (auto &link : outgoing_) {
            const Ring::Numbers made = link->ring.made_at(at);
            if (made.empty() || !link->ring.closes_batch(at.sweep)) continue;
            link->deliver(made, trace.stamp());
            std::int64_t bytes = 0;
            for (std::int64_t n = made.first; n < made.last; ++n) {
                bytes += link->ring.message_bytes(n);
                trace.count_message(link->ring.message_bytes(n));
            }
            if (drive_ != nullptr) trace.lap(LW_POST, {at, link->ring.channel().peer, bytes});
        }
    }

    bool needs_polling() const override { return drive_ != nullptr; }
    void poll(Position, Trace &) override {
        if (drive_ != nullptr && !looks_away()) drive_(driven_);
    }

    bool has_finished(Trace &) override {
        wait_usefully();
        bool finished = true;
        for (auto &link : outgoing_) finished = link->has_left() && finished;
        return finished;
    }

private:
    // A rank that has to wait tells others at once of what it has sent, and lets the library progress.
    void wait_usefully() {
        for (auto &link : outgoing_) link->settle();
        for (auto &link : incoming_) link->settle();
        if (drive_ != nullptr) drive_(driven_);
    }

    // Of what the network brings; what is stored in shared memory is never on its way.
    static void record_arrival(Inbound &link, Position at, Ring::Numbers needed, Trace &trace) {
        if (link.seen >= needed.last) return;
        link.seen = needed.last;
        spend_receiving(link.ring.message_bytes(needed.last - 1));
        const double seen = now(), sent = trace.here(link.sent(needed.last - 1));
        trace.record(LW_TRANSFER, {at, link.ring.channel().peer, link.ring.message_bytes(needed.last - 1)},
                     std::min(sent, seen), seen);
    }

    const Courier &courier_;
    Inbounds incoming_;
    Outbounds outgoing_;
    void (*drive_)(void *);
    void *driven_;
};

} // namespace lapwing
