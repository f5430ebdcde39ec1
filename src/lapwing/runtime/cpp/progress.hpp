// Who drives a transport, and when: the interface the pipeline uses, and the engine without a thread of its own.
#pragma once

#include "transport.hpp"
#include "waiting.hpp"

namespace lapwing {

class Progress {
public:
    virtual ~Progress() = default;
    virtual void start() = 0;
    virtual void before_phase(Position at) = 0;
    virtual void before_step(Position at) = 0;      // returns when all the step needs is in place
    virtual double between_slices(Position at) = 0; // the seconds it took
    virtual void after_step(Position at) = 0;       // what the step produced is, or will be, on its way
    virtual void finish(Position at) = 0;           // after the last step
    virtual bool slices_steps() const = 0;          // whether between_slices has to be called often
    virtual void hurry(double seconds) = 0;         // from now on a wait this long is an error
};

// The computing thread does it all: it polls between slices of a step.
class Polling final : public Progress {
public:
    Polling(Transport &transport, Trace &trace, const WaitingRules &rules)
        : transport_(transport), trace_(trace), rules_(rules) {}

    void start() override { transport_.start(trace_); }
    void before_phase(Position at) override { transport_.before_phase(at, trace_); }

    void before_step(Position at) override {
        if (!transport_.has_arrived(at, trace_)) {
            wait_until(
                rules_, [&] { return transport_.has_arrived(at, trace_); },
                [&] { return "a message from rank " + std::to_string(transport_.missing(at)); });
            const Awaited last = transport_.awaited(at);
            trace_.lap_waiting({at, last.peer, last.bytes}, trace_.here(last.sent));
        }
        transport_.unpack(at, trace_);
        transport_.recycle(at);
    }

    double between_slices(Position at) override {
        if (poll_seconds_ == 0) first_poll_ = trace_.mark();
        transport_.poll(at, trace_);
        const double seconds = trace_.lap();
        poll_seconds_ += seconds;
        return seconds;
    }

    void after_step(Position at) override {
        if (poll_seconds_ > 0) {
            trace_.record(LW_POLL, {at}, first_poll_, trace_.mark(), poll_seconds_, 0);
            poll_seconds_ = 0;
        }
        transport_.release(at);
        if (!transport_.has_room(at)) {
            const std::int64_t peer = transport_.blocked_by(at);
            wait_until(
                rules_, [&] { return transport_.has_room(at); },
                [&] { return "rank " + std::to_string(peer) + " to take earlier messages"; });
            trace_.lap(LW_WAIT, {at, peer});
        }
        transport_.pack(at, trace_);
        transport_.send(at, trace_);
    }

    void finish(Position at) override {
        if (transport_.has_finished(trace_)) return;
        wait_until(
            rules_, [&] { return transport_.has_finished(trace_); },
            [] { return std::string("the last messages to leave"); });
        trace_.lap(LW_WAIT, {at});
    }

    bool slices_steps() const override { return transport_.needs_polling(); }
    void hurry(double seconds) override { rules_.patience_seconds = seconds; }

private:
    Transport &transport_;
    Trace &trace_;
    WaitingRules rules_;
    double first_poll_ = 0, poll_seconds_ = 0;
};

} // namespace lapwing
