// The overlap engine's transport: receives posted ahead, sends left in flight, the library driven by polling.
//
// While step k computes, the messages of step k+1 arrive and those of step k-1 leave (P0, ProcNB). Every channel is a
// ring of buffers: `depth` receives are always posted ahead and up to `depth` sends are in flight.
#pragma once

#include <mpi.h>

#include <vector>

#include "courier.hpp"
#include "transport.hpp"

namespace lapwing {

// The buffers of one channel. Messages are numbered over the whole run; message n lives in slot n % depth.
class Ring {
public:
    explicit Ring(const lw_channel &channel)
        : channel(channel), slot_bytes_(channel.slot_bytes + Courier::header_bytes),
          storage_(static_cast<std::size_t>(channel.depth * slot_bytes_)),
          requests_(static_cast<std::size_t>(channel.depth), MPI_REQUEST_NULL) {}

    const lw_channel &channel;
    std::int64_t next = 0;   // the message that is used (incoming) or sent (outgoing) next
    std::int64_t posted = 0; // receives posted so far

    char *slot(std::int64_t number) { return storage_.data() + number % channel.depth * slot_bytes_; }
    char *contents(std::int64_t number) { return slot(number) + Courier::header_bytes; }
    MPI_Request &request(std::int64_t number) { return requests_[static_cast<std::size_t>(number % channel.depth)]; }
    std::vector<MPI_Request> &requests() { return requests_; }

private:
    std::int64_t slot_bytes_;
    std::vector<char> storage_;
    std::vector<MPI_Request> requests_;
};

class Nonblocking final : public Transport {
public:
    Nonblocking(Courier &courier, MPI_Comm comm) : courier_(courier), comm_(comm) {
        const lw_program &program = courier.program();
        for (std::int64_t k = 0; k < program.incoming; ++k) incoming_.emplace_back(program.incoming_channels[k]);
        for (std::int64_t k = 0; k < program.outgoing; ++k) outgoing_.emplace_back(program.outgoing_channels[k]);
    }

    void start() override {
        for (Ring &ring : incoming_) post_receives(ring);
    }

    void before_sweep(std::int64_t) override {}

    void before_step(Position at) override {
        for (Ring &ring : incoming_) {
            while (is_needed(ring, at)) {
                courier_.wait_for_message(ring.slot(ring.next),
                                          [&] { MPI_Wait(&ring.request(ring.next), MPI_STATUS_IGNORE); });
                courier_.unpack(message(ring, ring.next), sweep_of(ring, ring.next), ring.contents(ring.next));
                ++ring.next;
                post_receives(ring);
            }
        }
    }

    void after_step(Position at) override {
        for (Ring &ring : outgoing_) {
            if (!courier_.sends_in(ring.channel, at.sweep)) continue;
            while (sweep_of(ring, ring.next) == at.sweep && message(ring, ring.next).step == at.step) {
                // The slot's previous message must have left.
                courier_.wait_for_send([&] { MPI_Wait(&ring.request(ring.next), MPI_STATUS_IGNORE); });
                const lw_message &out = message(ring, ring.next);
                courier_.pack(out, at.sweep, ring.contents(ring.next));
                courier_.stamp(ring.slot(ring.next));
                MPI_Isend(ring.slot(ring.next), static_cast<int>(out.bytes + Courier::header_bytes), MPI_BYTE,
                          static_cast<int>(ring.channel.peer), static_cast<int>(ring.channel.lag), comm_,
                          &ring.request(ring.next));
                courier_.times().messages += 1;
                courier_.times().bytes += out.bytes;
                ++ring.next;
            }
        }
    }

    void poll() override {
        // Asking about one open request drives all of them.
        Stopwatch watch(courier_.times().poll);
        for (auto *rings : {&incoming_, &outgoing_}) {
            for (Ring &ring : *rings) {
                for (MPI_Request request : ring.requests()) {
                    if (request == MPI_REQUEST_NULL) continue;
                    int done = 0;
                    MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
                    if (!done) return;
                }
            }
        }
    }

    void finish() override {
        Stopwatch watch(courier_.times().wait);
        for (Ring &ring : outgoing_) {
            MPI_Waitall(static_cast<int>(ring.requests().size()), ring.requests().data(), MPI_STATUSES_IGNORE);
        }
    }

private:
    std::int64_t sweep_of(const Ring &ring, std::int64_t number) const { return number / ring.channel.messages; }

    const lw_message &message(const Ring &ring, std::int64_t number) const {
        return courier_.program().messages[ring.channel.first_message + number % ring.channel.messages];
    }

    bool is_needed(const Ring &ring, Position at) const {
        return sweep_of(ring, ring.next) + ring.channel.lag == at.sweep && message(ring, ring.next).step <= at.step;
    }

    void post_receives(Ring &ring) {
        const std::int64_t all = (courier_.program().sweeps - ring.channel.lag) * ring.channel.messages;
        for (; ring.posted < all && ring.posted < ring.next + ring.channel.depth; ++ring.posted) {
            MPI_Irecv(ring.slot(ring.posted),
                      static_cast<int>(message(ring, ring.posted).bytes + Courier::header_bytes), MPI_BYTE,
                      static_cast<int>(ring.channel.peer), static_cast<int>(ring.channel.lag), comm_,
                      &ring.request(ring.posted));
        }
    }

    Courier &courier_;
    MPI_Comm comm_;
    std::vector<Ring> incoming_, outgoing_;
};

} // namespace lapwing
