// The helper thread: one thread computes, the other communicates (P4, section IV, ASYM, algorithm 5).
//
// Where a step touches none of the elements that its neighbours' messages carry (lw_program.apart), the helper packs
// and unpacks too, while the next step is computed; P4's two barriers a step become two counters. Otherwise, as when
// tiles lie along time and the next sweep overwrites the faces in place, the computing thread packs and unpacks and the
// helper makes the messages move. MPI is called by the helper alone.
#pragma once

#ifdef __linux__
#include <pthread.h>
#include <sys/prctl.h>
#endif

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "delays.hpp"
#include "order.hpp"
#include "progress.hpp"

namespace lapwing {

// Ends a nap early. A ring that nobody hears is no loss: naps are short.
//
// While the computing thread computes on the same core, every waking of the helper costs it some 30 microseconds; what
// the helper has to look after, a large message's handshake, can wait for half a millisecond
// (docs/performance/ranks.md).
class Bell {
public:
    void ring() { condition_.notify_one(); }
    void nap() {
        std::unique_lock lock(mutex_);
        condition_.wait_for(lock, std::chrono::microseconds(500));
    }

private:
    std::mutex mutex_;
    std::condition_variable condition_;
};

class HelperThread final : public Progress {
public:
    // cpu: where the helper runs; -1 for anywhere. trace is the computing thread's; the helper's is joined to it at the
    // end.
    HelperThread(const lw_program &program, Transport &transport, Trace &trace, Trace &helper_trace,
                 const WaitingRules &rules, std::int64_t cpu)
        : program_(program), order_(program), transport_(transport), trace_(trace), helper_trace_(helper_trace),
          rules_(rules), cpu_(cpu), steps_(program.sweeps * program.steps) {}

    ~HelperThread() override {
        stop_.store(true, std::memory_order_release);
        bell_.ring();
        if (thread_.joinable()) thread_.join();
    }

    void start() override {
        thread_ = std::thread([this] { run(); });
    }

    void before_phase(Position) override {}
    double between_slices(Position) override { return 0; }
    bool slices_steps() const override { return false; }
    void hurry(double seconds) override { rules_.patience_seconds = seconds; } // the helper does not look at it

    void before_step(Position at) override {
        const std::int64_t step = computing_;
        if (!may_compute(at, step)) {
            waiting_.store(true, std::memory_order_relaxed);
            bell_.ring();
            wait_until(
                rules_, [&] { return may_compute(at, step); },
                [&] { return "a message from rank " + std::to_string(missing_.load(std::memory_order_relaxed)); });
            waiting_.store(false, std::memory_order_relaxed);
            const Awaited &last = awaited_[static_cast<std::size_t>(step) % awaited_.size()];
            trace_.lap_waiting({at, last.peer, last.bytes}, trace_.here(last.sent));
        }
        if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
        if (!program_.apart) transport_.unpack(at, trace_);
    }

    void after_step(Position at) override {
        if (!program_.apart) transport_.pack(at, trace_);
        dawdle();
        computed_.store(++computing_, std::memory_order_release);
        bell_.ring();
    }

    void finish(Position at) override {
        waiting_.store(true, std::memory_order_relaxed);
        bell_.ring();
        wait_until(
            rules_, [&] { return finished_.load(std::memory_order_acquire) || has_failed(); },
            [] { return std::string("the last messages to leave"); });
        thread_.join();
        if (has_failed()) std::rethrow_exception(failure_);
        trace_.lap(LW_WAIT, {at});
        trace_.join(helper_trace_);
    }

private:
    bool has_failed() const { return failed_.load(std::memory_order_acquire); }

    bool opens_phase(Position at) const { return at.step == program_.phase[at.phase].first_step; }

    // The step's messages are in place. When the helper packs, it lags one step behind at most, so that no step
    // overwrites what it packs.
    bool may_compute(Position at, std::int64_t step) const {
        if (has_failed()) return true;
        const bool rewrites = opens_phase(at) && program_.phase[at.phase].rewrites;
        return ready_.load(std::memory_order_acquire) > step &&
               (!program_.apart || sent_.load(std::memory_order_acquire) >= step - (rewrites ? 0 : 1));
    }

    // Messages may be put in place for the step that follows the one being computed, but not across phases: the last
    // step of one, or of a sweep, may still read what the first of the next one gets.
    bool may_prepare(Position at, std::int64_t step, std::int64_t computed) const {
        return step < steps_ && step <= computed + (program_.apart && opens_phase(at) ? 0 : 1);
    }

    void run() {
        try {
            pin();
#ifdef __linux__
            prctl(PR_SET_TIMERSLACK, 1000UL); // nanoseconds: naps end when they should
#endif
            helper_trace_.restart();
            transport_.start(helper_trace_);
            std::int64_t ready = 0, sent = 0;
            Position to_prepare{0, 0}, to_send{0, 0};
            while (sent < steps_) {
                if (stop_.load(std::memory_order_acquire)) return;
                const std::int64_t computed = computed_.load(std::memory_order_acquire);
                bool idle = true;
                if (sent < computed && !looks_away() && send(to_send)) {
                    sent_.store(++sent, std::memory_order_release);
                    if (sent < steps_) order_.advance(to_send);
                    idle = false;
                }
                if (may_prepare(to_prepare, ready, computed) && !looks_away() && prepare(to_prepare, ready)) {
                    ready_.store(++ready, std::memory_order_release);
                    if (ready < steps_) order_.advance(to_prepare);
                    idle = false;
                }
                if (idle) {
                    missing_.store(transport_.missing(to_prepare), std::memory_order_relaxed);
                    rest(to_send);
                }
            }
            while (!transport_.has_finished(helper_trace_)) {
                if (stop_.load(std::memory_order_acquire)) return;
                rest(to_send);
            }
            finished_.store(true, std::memory_order_release);
        } catch (...) {
            failure_ = std::current_exception();
            failed_.store(true, std::memory_order_release);
        }
    }

    bool send(Position at) {
        if (program_.apart) {
            transport_.release(at);
            if (!transport_.has_room(at)) return false;
            transport_.pack(at, helper_trace_);
        } else {
            transport_.recycle(at);
            transport_.release(at);
        }
        transport_.send(at, helper_trace_);
        return true;
    }

    bool prepare(Position at, std::int64_t step) {
        if (!transport_.has_arrived(at, helper_trace_)) return false;
        if (program_.apart) {
            awaited_[static_cast<std::size_t>(step) % awaited_.size()] = transport_.awaited(at);
            transport_.unpack(at, helper_trace_);
            transport_.recycle(at);
            return true;
        }
        // The computing thread packs without asking for room.
        if (!transport_.has_room(at)) return false;
        awaited_[static_cast<std::size_t>(step) % awaited_.size()] = transport_.awaited(at);
        return true;
    }

    void rest(Position at) {
        transport_.poll(at, helper_trace_);
        helper_trace_.times().activity[LW_POLL] += helper_trace_.lap();
        if (rules_.spin) {
            relax();
        } else if (waiting_.load(std::memory_order_relaxed)) {
            sched_yield(); // the core is free
        } else {
            bell_.nap();
        }
        helper_trace_.restart();
    }

    void pin() const {
        if (cpu_ < 0) return;
        bool pinned = false;
#ifdef __linux__
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<int>(cpu_), &set);
        pinned = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
#endif
        if (!pinned) {
            throw Failure("the helper thread cannot be pinned to CPU " + std::to_string(cpu_) +
                          ": this process may not run there. --helper-cpu none leaves it where it likes");
        }
    }

    const lw_program &program_;
    Order order_;
    Transport &transport_;
    Trace &trace_, &helper_trace_;
    WaitingRules rules_;
    std::int64_t cpu_, steps_;
    std::int64_t computing_ = 0; // the step at hand, or the next one
    std::thread thread_;
    Bell bell_;
    // Counted in steps of the whole run; each written by one thread only.
    alignas(64) std::atomic<std::int64_t> computed_{0};
    alignas(64) std::atomic<std::int64_t> ready_{0}, sent_{0};
    std::array<Awaited, 4> awaited_{};
    std::atomic<std::int64_t> missing_{-1}; // the rank that is waited for
    std::atomic<bool> waiting_{false};      // whether the computing thread waits
    std::exception_ptr failure_;
    std::atomic<bool> failed_{false}, finished_{false}, stop_{false};
};

} // namespace lapwing
