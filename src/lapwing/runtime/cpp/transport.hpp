// How a rank's messages travel: the interface that progress drives, and the one for a rank without neighbours.
//
// What calls the library (arrival, room, send) is apart from what touches the arrays (unpack, pack), so that the two
// can be done by different threads. For every step, in this order:
//
//     has_arrived → unpack → recycle → (the step is computed) → release → has_room → pack → send
#pragma once

#include "awaited.hpp"
#include "trace.hpp"

namespace lapwing {

class Transport {
public:
    virtual ~Transport() = default;

    virtual void start(Trace &) {}                  // before the first step
    virtual void before_phase(Position, Trace &) {} // whatever has to be done between phases, waits included

    virtual bool has_arrived(Position at, Trace &trace) = 0; // whether all that the step needs is here
    virtual std::int64_t missing(Position at) = 0;           // a rank whose message the step needs has not come from
    virtual Awaited awaited(Position at) = 0;                // of the messages the step needs, the last one
    virtual void unpack(Position at, Trace &trace) = 0;      // puts them where the step reads them
    virtual void recycle(Position) {}                        // their buffers may be used again

    virtual void release(Position) {}                 // the step has read what it reads
    virtual std::int64_t blocked_by(Position at) = 0; // a rank that has not made room for what the step produced, or -1
    bool has_room(Position at) { return blocked_by(at) < 0; }
    virtual void pack(Position at, Trace &trace) = 0;
    virtual void send(Position at, Trace &trace) = 0;

    virtual void poll(Position, Trace &) {} // lets the library progress
    virtual bool needs_polling() const { return false; }
    virtual bool has_finished(Trace &) { return true; } // after the last step: whether all has left
};

class NoTransport final : public Transport {
public:
    bool has_arrived(Position, Trace &) override { return true; }
    std::int64_t missing(Position) override { return -1; }
    Awaited awaited(Position) override { return {}; }
    void unpack(Position, Trace &) override {}
    std::int64_t blocked_by(Position) override { return -1; }
    void pack(Position, Trace &) override {}
    void send(Position, Trace &) override {}
};

} // namespace lapwing
