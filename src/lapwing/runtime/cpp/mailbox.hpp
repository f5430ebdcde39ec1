// One channel over two-sided MPI: a ring of buffers with receives or sends in flight.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <vector>

#include "checked.hpp"
#include "delays.hpp"
#include "ring.hpp"
#include "simulated.hpp"

namespace lapwing {

class Mailbox {
public:
    // Messages travel in parts of at most split_bytes (0: whole): below the library's rendezvous threshold a message
    // needs no answer from its receiver to get on its way.
    Mailbox(const lw_program &program, const lw_channel &channel, std::int64_t depth, std::int64_t split_bytes,
            MPI_Comm comm)
        : ring(program, channel, depth), comm_(comm), split_bytes_(split_bytes),
          storage_(static_cast<std::size_t>(ring.bytes())), requests_(static_cast<std::size_t>(depth)) {
        ring.place(storage_.data());
    }
    Mailbox(Mailbox &&) = default;

    Ring ring;
    std::int64_t posted = 0; // messages whose receive or send was posted
    std::int64_t used = 0;   // received messages that are unpacked

    void receive_next() {
        each_part(posted, [&](char *part, int bytes, MPI_Request *request) {
            checked(MPI_Irecv(part, bytes, MPI_BYTE, peer(), tag(), comm_, request));
        });
        ++posted;
    }

    void send_next() {
        each_part(posted, [&](char *part, int bytes, MPI_Request *request) {
            spend_sending(bytes);
            checked(MPI_Isend(part, bytes, MPI_BYTE, peer(), tag(), comm_, request));
        });
        ++posted;
    }

    void send_next_synchronously() {
        each_part(posted, [&](char *part, int bytes, MPI_Request *request) {
            spend_sending(bytes);
            checked(MPI_Issend(part, bytes, MPI_BYTE, peer(), tag(), comm_, request));
        });
        ++posted;
    }

    std::int64_t completed() const { return complete_; } // at the last look

    // How many messages, in order, are complete. Calls seen(number) for each that was not yet at the last call.
    template <class Seen>
    std::int64_t complete(Seen seen) {
        while (complete_ < posted && !looks_away()) {
            if (!are_complete(requests(complete_))) break;
            seen(complete_);
            ++complete_;
        }
        return complete_;
    }

private:
    int peer() const { return static_cast<int>(ring.channel().peer); }
    int tag() const { return message_tag(ring.channel()); }

    std::vector<MPI_Request> &requests(std::int64_t number) {
        return requests_[static_cast<std::size_t>(number % ring.depth())];
    }

    template <class Post>
    void each_part(std::int64_t number, Post post) {
        const std::int64_t bytes = ring.message_bytes(number);
        const std::int64_t part_bytes = split_bytes_ > 0 ? split_bytes_ : bytes;
        std::vector<MPI_Request> &parts = requests(number);
        parts.clear();
        for (std::int64_t at = 0; at < bytes; at += part_bytes) {
            dawdle();
            post(ring.slot(number) + at, static_cast<int>(std::min(part_bytes, bytes - at)), &parts.emplace_back());
        }
    }

    MPI_Comm comm_;
    std::int64_t split_bytes_;
    std::vector<char> storage_;
    std::vector<std::vector<MPI_Request>> requests_;
    std::int64_t complete_ = 0;
};

} // namespace lapwing
