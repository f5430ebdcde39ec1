// How a thread waits: for how long, and whether it may keep a core busy meanwhile.
#pragma once

#include <sched.h>

#include <stdexcept>
#include <string>

#include "clock.hpp"
#include "interrupt.hpp"
#include "simulated.hpp"

namespace lapwing {

// Ends the run on this rank with a line that says why; the other ranks are ended by who hears of it.
class Failure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct WaitingRules {
    bool spin;               // the thread has a core of its own
    double patience_seconds; // a wait this long is an error; 0: never
};

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#ifdef LAPWING_SIMULATED

// A deadlock is found by the simulator.
template <class Done, class Describe>
void wait_until(const WaitingRules &, Done done, Describe) {
    for (;;) {
        open_requests().clear();
        if (done()) return;
        wait_for_open_requests();
    }
}

#else

// Calls `done` until it is true. `describe` says, in case of an error, what was waited for.
template <class Done, class Describe>
void wait_until(const WaitingRules &rules, Done done, Describe describe) {
    constexpr int spins = 64;          // between looks at the clock
    constexpr int patient_rounds = 64; // before other threads are let in, about 100 microseconds
    double last_look = 0, waited = 0;
    for (int round = 0;; ++round) {
        for (int spin = 0; spin < spins; ++spin) {
            if (done()) return;
            relax();
        }
        if (is_interrupted()) throw Failure("interrupted while waiting for " + describe());
        // A thread may have a core of its own and yet share it with other programs.
        if (!rules.spin || round >= patient_rounds) sched_yield();
        if (rules.patience_seconds > 0) {
            // A rank that was suspended, or a debugged one, has not waited: no look counts for more than a second.
            const double look = now();
            if (last_look > 0) waited += look - last_look < 1 ? look - last_look : 1;
            last_look = look;
            if (waited > rules.patience_seconds) {
                throw Failure("waited " + std::to_string(static_cast<long>(waited)) + " s for " + describe() +
                              ": that rank or the network between stands still. "
                              "LAPWING_PATIENCE=SECONDS allows longer waits");
            }
        }
    }
}

#endif

} // namespace lapwing
