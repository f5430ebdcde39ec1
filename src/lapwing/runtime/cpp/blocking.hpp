// The blocking engine's transport: receive, compute, synchronous send, nothing at the same time (P0, ProcB).
//
// Old values that the next sweep reads (P3's top frontier) are exchanged between sweeps.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "courier.hpp"
#include "transport.hpp"

namespace lapwing {

class Blocking final : public Transport {
public:
    Blocking(Courier &courier, MPI_Comm comm) : courier_(courier), comm_(comm) {}

    void start() override {}
    void poll() override {}
    void finish() override {}

    void before_sweep(std::int64_t sweep) override {
        if (sweep > 0) exchange_old_values(sweep - 1);
    }

    void before_step(Position at) override {
        // All receives of the step are posted together: messages of one step may come in any order.
        std::vector<Arrival> arrivals;
        for (const lw_channel &channel : channels(Direction::in)) {
            if (channel.lag > 0) continue;
            for (const lw_message &message : messages_of(channel, at.step)) {
                arrivals.push_back({&channel, &message, {}, MPI_REQUEST_NULL});
            }
        }
        for (Arrival &arrival : arrivals) {
            arrival.buffer.resize(static_cast<std::size_t>(arrival.message->bytes + Courier::header_bytes));
            MPI_Irecv(arrival.buffer.data(), static_cast<int>(arrival.buffer.size()), MPI_BYTE,
                      static_cast<int>(arrival.channel->peer), 0, comm_, &arrival.request);
        }
        for (Arrival &arrival : arrivals) {
            courier_.wait_for_message(arrival.buffer.data(), [&] { MPI_Wait(&arrival.request, MPI_STATUS_IGNORE); });
        }
        for (const Arrival &arrival : arrivals) {
            courier_.unpack(*arrival.message, at.sweep, arrival.buffer.data() + Courier::header_bytes);
        }
    }

    void after_step(Position at) override {
        for (const lw_channel &channel : channels(Direction::out)) {
            if (channel.lag > 0) continue;
            for (const lw_message &message : messages_of(channel, at.step)) {
                buffer_.resize(static_cast<std::size_t>(message.bytes + Courier::header_bytes));
                courier_.pack(message, at.sweep, buffer_.data() + Courier::header_bytes);
                count(message.bytes);
                courier_.stamp(buffer_.data());
                courier_.wait_for_send([&] {
                    MPI_Ssend(buffer_.data(), static_cast<int>(buffer_.size()), MPI_BYTE,
                              static_cast<int>(channel.peer), 0, comm_);
                });
            }
        }
    }

private:
    enum class Direction { in, out };

    struct Arrival {
        const lw_channel *channel;
        const lw_message *message;
        std::vector<char> buffer;
        MPI_Request request;
    };

    struct Exchange {
        const lw_channel *channel;
        std::vector<char> buffer;
        MPI_Request request;
    };

    void exchange_old_values(std::int64_t written_in) {
        std::vector<Exchange> in = exchanges(Direction::in), out = exchanges(Direction::out);
        for (Exchange &exchange : out) {
            char *next = exchange.buffer.data() + Courier::header_bytes;
            for (const lw_message &message : messages(*exchange.channel)) {
                courier_.pack(message, written_in, next);
                next += message.bytes;
            }
            count(static_cast<std::int64_t>(exchange.buffer.size()) - Courier::header_bytes);
        }
        for (Exchange &exchange : in) {
            MPI_Irecv(exchange.buffer.data(), static_cast<int>(exchange.buffer.size()), MPI_BYTE,
                      static_cast<int>(exchange.channel->peer), 1, comm_, &exchange.request);
        }
        for (Exchange &exchange : out) {
            courier_.stamp(exchange.buffer.data());
            MPI_Issend(exchange.buffer.data(), static_cast<int>(exchange.buffer.size()), MPI_BYTE,
                       static_cast<int>(exchange.channel->peer), 1, comm_, &exchange.request);
        }
        for (Exchange &exchange : in) {
            courier_.wait_for_message(exchange.buffer.data(), [&] { MPI_Wait(&exchange.request, MPI_STATUS_IGNORE); });
        }
        for (Exchange &exchange : out) {
            courier_.wait_for_send([&] { MPI_Wait(&exchange.request, MPI_STATUS_IGNORE); });
        }
        for (const Exchange &exchange : in) {
            const char *next = exchange.buffer.data() + Courier::header_bytes;
            for (const lw_message &message : messages(*exchange.channel)) {
                courier_.unpack(message, written_in, next);
                next += message.bytes;
            }
        }
    }

    std::vector<Exchange> exchanges(Direction direction) const {
        std::vector<Exchange> found;
        for (const lw_channel &channel : channels(direction)) {
            if (channel.lag == 0) continue;
            const auto all = messages(channel);
            const std::int64_t bytes =
                std::accumulate(all.begin(), all.end(), std::int64_t{Courier::header_bytes},
                                [](std::int64_t sum, const lw_message &message) { return sum + message.bytes; });
            found.push_back({&channel, std::vector<char>(static_cast<std::size_t>(bytes)), MPI_REQUEST_NULL});
        }
        return found;
    }

    std::span<const lw_channel> channels(Direction direction) const {
        const lw_program &program = courier_.program();
        if (direction == Direction::in) {
            return {program.incoming_channels, static_cast<std::size_t>(program.incoming)};
        }
        return {program.outgoing_channels, static_cast<std::size_t>(program.outgoing)};
    }

    std::span<const lw_message> messages(const lw_channel &channel) const {
        return {courier_.program().messages + channel.first_message, static_cast<std::size_t>(channel.messages)};
    }

    // Messages of a channel are sorted by step.
    std::span<const lw_message> messages_of(const lw_channel &channel, std::int64_t step) const {
        const auto found = std::ranges::equal_range(messages(channel), step, {}, &lw_message::step);
        return {found.begin(), found.end()};
    }

    void count(std::int64_t bytes) {
        courier_.times().messages += 1;
        courier_.times().bytes += bytes;
    }

    Courier &courier_;
    MPI_Comm comm_;
    std::vector<char> buffer_;
};

} // namespace lapwing
