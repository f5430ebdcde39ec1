// The two ends of a one-sided channel, and those whose ranks share memory (P1's exported and imported segments).
//
// The end that writes a counter stores it with release, the one that reads it loads it with acquire: what was stored
// before the counter is seen by whoever sees the counter. Counters only grow; each has one writer.
#pragma once

#include <atomic>

#include "delays.hpp"
#include "ring.hpp"

namespace lapwing {

// A counter another rank watches, on a cache line of its own.
struct alignas(64) Signal {
    std::atomic<std::int64_t> count{0};
    std::atomic<double> sent{0}; // when the count was raised, by the clock of all ranks
};

class Inbound {
public:
    explicit Inbound(const Ring &ring) : ring(ring) {}
    virtual ~Inbound() = default;

    Ring ring;
    std::int64_t seen = 0; // messages whose arrival was recorded

    virtual std::int64_t arrived() = 0;              // how many messages have come, in order
    virtual double sent(std::int64_t number) = 0;    // when an arrived message was sent
    virtual void finish(std::int64_t number) = 0;    // so many messages may be overwritten; if direct, steps are done
    virtual void settle() {}                         // makes sure that others hear of it
    virtual bool is_direct() const { return false; } // messages come right where the step reads them
};

class Outbound {
public:
    explicit Outbound(const Ring &ring) : ring(ring) {}
    virtual ~Outbound() = default;

    Ring ring;

    virtual bool has_room(std::int64_t number) = 0;           // whether message `number` may be written
    virtual void deliver(Ring::Numbers made, double now) = 0; // they are written: tell the receiver
    virtual void settle() {}                                  // makes sure that the receiver hears of it
    virtual bool has_left() { return true; }                  // whether the receiver has heard of all
    virtual const lw_array *there() const { return nullptr; } // the receiver's arrays, if they are written directly
};

// Shared memory: the sender packs into the receiver's slots, and the receiver unpacks from them.
class SharedInbound : public Inbound {
public:
    SharedInbound(const Ring &ring, Signal &arrived, Signal &finished)
        : Inbound(ring), arrived_(arrived), finished_(finished) {}

    std::int64_t arrived() override { return arrived_.count.load(std::memory_order_acquire); }
    double sent(std::int64_t) override { return arrived_.sent.load(std::memory_order_relaxed); }
    void finish(std::int64_t number) override {
        dawdle();
        finished_.count.store(number, std::memory_order_release);
    }

private:
    Signal &arrived_;  // here
    Signal &finished_; // at the sender
};

class SharedOutbound : public Outbound {
public:
    SharedOutbound(const Ring &ring, Signal &arrived, Signal &finished)
        : Outbound(ring), arrived_(arrived), finished_(finished) {}

    bool has_room(std::int64_t number) override { return finished() >= number + 1 - ring.depth(); }

    void deliver(Ring::Numbers made, double now) override {
        arrived_.sent.store(now, std::memory_order_relaxed);
        dawdle();
        arrived_.count.store(made.last, std::memory_order_release);
    }

protected:
    std::int64_t finished() const { return finished_.count.load(std::memory_order_acquire); }

private:
    Signal &arrived_;  // at the receiver
    Signal &finished_; // here
};

// Shared arrays: the sender stores its face straight into the receiver's halo. No slots, nothing to unpack.
//
// What counts as finished are the receiver's steps: a message may be written when the last of them that reads what it
// overwrites is done.
class DirectInbound final : public SharedInbound {
public:
    using SharedInbound::SharedInbound;
    bool is_direct() const override { return true; }
};

class DirectOutbound final : public SharedOutbound {
public:
    DirectOutbound(const Ring &ring, Signal &arrived, Signal &finished) : SharedOutbound(ring, arrived, finished) {}

    bool has_room(std::int64_t number) override { return finished() >= ring.free_after(number); }

    const lw_array *there() const override { return ring.channel().there; }
};

} // namespace lapwing
