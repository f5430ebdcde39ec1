// One-sided links to other nodes: the network writes into the receiver's window while both ranks compute (P1's DMA
// mode).
//
// As in P1's table 1 a transfer is started, the next step computed, and only then is the transfer waited for and the
// receiver told: MPI has no way to learn of a Put's arrival without waiting for it (MPI_Win_flush). A rank that has
// nothing to compute tells at once.
//
// The receiver is told by a byte a slot, the message's turn in its slot, because a single byte cannot be seen half
// written. A slot's turns differ by one, so that 256 of them are enough.
#pragma once

#include <mpi.h>

#include <vector>

#include "checked.hpp"
#include "delays.hpp"
#include "link.hpp"
#include "simulated.hpp"

namespace lapwing {

using Turn = std::uint8_t;

inline Turn turn_of(std::int64_t number, std::int64_t depth) { return static_cast<Turn>(number / depth + 1); }

// Told by the network, or about to be: read again every time.
inline Turn read_turn(const char *flag) {
    const Turn turn = *reinterpret_cast<const volatile Turn *>(flag);
    std::atomic_thread_fence(std::memory_order_acquire);
    return turn;
}

// What a rank tells another by a byte: the byte must stay where it is until it has left.
class TurnWriter {
public:
    TurnWriter(MPI_Win window, std::int64_t peer, std::int64_t at, std::int64_t depth)
        : window_(window), peer_(static_cast<int>(peer)), at_(at), depth_(depth),
          turns_(static_cast<std::size_t>(depth)) {}

    void write(std::int64_t number) {
        const std::int64_t slot = number % depth_;
        dawdle();
        Turn &turn = turns_[static_cast<std::size_t>(slot)];
        turn = turn_of(number, depth_);
        checked(MPI_Put(&turn, 1, MPI_BYTE, peer_, at_ + slot, 1, MPI_BYTE, window_));
    }

    void flush() { checked(MPI_Win_flush(peer_, window_)); }

private:
    MPI_Win window_;
    int peer_;
    std::int64_t at_, depth_;
    std::vector<Turn> turns_;
};

class RemoteInbound final : public Inbound {
public:
    // arrivals: here, a byte a slot, written by the sender. finished: where the sender reads what is finished.
    RemoteInbound(const Ring &ring, const char *arrivals, TurnWriter finished)
        : Inbound(ring), arrivals_(arrivals), finished_(std::move(finished)) {}

    std::int64_t arrived() override {
        while (read_turn(arrivals_ + arrived_ % ring.depth()) == turn_of(arrived_, ring.depth()) &&
               arrived_ < told_ + ring.depth()) {
            ++arrived_;
        }
        return arrived_;
    }

    double sent(std::int64_t number) override { return Ring::stamp_of(ring.slot(number)); }

    void finish(std::int64_t number) override {
        for (; told_ < number; ++told_) finished_.write(told_);
        settled_ = false;
    }

    void settle() override {
        if (!settled_) finished_.flush();
        settled_ = true;
    }

private:
    const char *arrivals_;
    TurnWriter finished_;
    std::int64_t arrived_ = 0, told_ = 0;
    bool settled_ = true;
};

class RemoteOutbound final : public Outbound {
public:
    // slots: where in the receiver's window its slots begin. finished: here, a byte a slot, written by the receiver.
    RemoteOutbound(const Ring &ring, MPI_Win window, std::int64_t slots, const char *finished, TurnWriter arrivals)
        : Outbound(ring), window_(window), slots_(slots), finished_(finished), arrivals_(std::move(arrivals)) {}

    bool has_room(std::int64_t number) override {
        const std::int64_t needed = number + 1 - ring.depth();
        for (; freed_ < needed; ++freed_) {
            if (read_turn(finished_ + freed_ % ring.depth()) != turn_of(freed_, ring.depth())) return false;
        }
        return true;
    }

    void deliver(Ring::Numbers made, double now) override {
        for (std::int64_t n = made.first; n < made.last; ++n) {
            Ring::stamp(ring.slot(n), now);
            dawdle();
            spend_sending(ring.message_bytes(n));
            checked(MPI_Put(ring.slot(n), static_cast<int>(ring.message_bytes(n)), MPI_BYTE, peer(),
                            slots_ + ring.slot_offset(n), static_cast<int>(ring.message_bytes(n)), MPI_BYTE, window_));
        }
        told_ = made.first;
        delivered_ = made.last;
        settled_ = false;
    }

    void settle() override {
        if (settled_) return;
        checked(MPI_Win_flush(peer(), window_));
        settled_ = told_ == delivered_;
        for (; told_ < delivered_; ++told_) arrivals_.write(told_);
    }

    bool has_left() override {
        settle();
        return settled_;
    }

private:
    int peer() const { return static_cast<int>(ring.channel().peer); }

    MPI_Win window_;
    std::int64_t slots_;
    const char *finished_;
    TurnWriter arrivals_;
    std::int64_t freed_ = 0, told_ = 0, delivered_ = 0;
    bool settled_ = true; // whether all that was written, the telling included, is known to have come
};

} // namespace lapwing
