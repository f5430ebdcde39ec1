// What the two-sided transports share: faces are packed into a slot, sent, received into a slot and unpacked from it.
#pragma once

#include <mpi.h>

#include <vector>

#include "courier.hpp"
#include "mailbox.hpp"
#include "packing.hpp"
#include "simulated.hpp"
#include "transport.hpp"

namespace lapwing {

class TwoSided : public Transport {
public:
    std::int64_t missing(Position at) override {
        for (const Mailbox &box : incoming_) {
            if (box.completed() < box.ring.needed_at(at).last) return box.ring.channel().peer;
        }
        return -1;
    }

    Awaited awaited(Position at) override {
        Awaited latest;
        for (Mailbox &box : incoming_) {
            latest.consider(box.ring, at, [&](std::int64_t number) { return Ring::stamp_of(box.ring.slot(number)); });
        }
        return latest;
    }

    void unpack(Position at, Trace &trace) override {
        for (Mailbox &box : incoming_) unpack_slabs(courier_, box.ring, at, trace);
    }

    void pack(Position at, Trace &trace) override {
        for (Mailbox &box : outgoing_) pack_slabs(courier_, box.ring, nullptr, at, trace);
    }

protected:
    // spare_buffers: outgoing buffers beyond those of the plan.
    TwoSided(Courier &courier, MPI_Comm comm, std::int64_t split_bytes, std::int64_t spare_buffers)
        : courier_(courier) {
        const lw_program &program = courier.program();
        for (std::int64_t k = 0; k < program.incoming; ++k) {
            const lw_channel &channel = program.incoming_channels[k];
            incoming_.emplace_back(program, channel, channel.depth, split_bytes, comm);
        }
        for (std::int64_t k = 0; k < program.outgoing; ++k) {
            const lw_channel &channel = program.outgoing_channels[k];
            outgoing_.emplace_back(program, channel, channel.depth + spare_buffers, split_bytes, comm);
        }
    }

    // How many messages of an incoming channel have come; the ways of new ones are recorded.
    std::int64_t arrived(Mailbox &box, Position at, Trace &trace) {
        return box.complete([&](std::int64_t number) {
            spend_receiving(box.ring.message_bytes(number));
            const double sent = trace.here(Ring::stamp_of(box.ring.slot(number))), seen = now();
            trace.record(LW_TRANSFER, {at, box.ring.channel().peer, box.ring.message_bytes(number)},
                         std::min(sent, seen), seen);
        });
    }

    static std::int64_t left(Mailbox &box) {
        return box.complete([](std::int64_t) {});
    }

    Courier &courier_;
    std::vector<Mailbox> incoming_, outgoing_;
};

} // namespace lapwing
