// Ctrl-C while a tile is computed. A generated module is plain C that holds nothing which must be given back, so the
// signal's handler jumps out of it: loops need not look at a flag, and one that never ends can be ended.
#pragma once

#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "lapwing.h"

namespace lapwing {

// Of the process's main thread, the one that Python handles signals in.
struct InterruptState {
    pthread_t thread;
    volatile sig_atomic_t watched = 0;   // whether a run of that thread is to end on SIGINT
    volatile sig_atomic_t computing = 0; // whether it is in a module
    volatile sig_atomic_t met = 0;       // whether SIGINT has come
    struct sigaction before;             // Python's handler, which notes the signal
    sigjmp_buf out;
};

inline InterruptState &interrupt_state() {
    static InterruptState state;
    return state;
}

inline void on_interrupt(int number) {
    InterruptState &state = interrupt_state();
    if (!pthread_equal(pthread_self(), state.thread)) {
        pthread_kill(state.thread, number);
        return;
    }
    state.before.sa_handler(number);
    state.met = 1;
    if (state.computing) {
        state.computing = 0;
        siglongjmp(state.out, 1);
    }
}

inline bool runs_in_main_thread() { return syscall(SYS_gettid) == getpid(); }

// For the time of a run. Does nothing in other threads, and where nobody handles the signal in a way that could be gone
// on from.
class Interrupts {
public:
    explicit Interrupts(bool wanted) : state_(interrupt_state()) {
        if (!wanted || state_.watched || !runs_in_main_thread()) return;
        struct sigaction ours = {};
        ours.sa_handler = on_interrupt;
        state_.thread = pthread_self();
        state_.met = 0;
        if (sigaction(SIGINT, &ours, &state_.before) != 0) return;
        is_ours_ = is_handled(state_.before);
        if (!is_ours_) sigaction(SIGINT, &state_.before, nullptr);
        state_.watched = is_ours_;
    }

    ~Interrupts() {
        if (!is_ours_) return;
        state_.watched = 0;
        sigaction(SIGINT, &state_.before, nullptr);
    }

    Interrupts(const Interrupts &) = delete;
    Interrupts &operator=(const Interrupts &) = delete;

private:
    static bool is_handled(const struct sigaction &action) {
        return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    }

    InterruptState &state_;
    bool is_ours_ = false;
};

inline bool is_watched_here() {
    const InterruptState &state = interrupt_state();
    return state.watched && pthread_equal(pthread_self(), state.thread);
}

// Whether this run is to end.
inline bool is_interrupted() { return is_watched_here() && interrupt_state().met; }

// Computes a box, unless SIGINT comes meanwhile; then the module's arrays are half done.
__attribute__((noinline)) inline void compute_until_interrupted(const lw_module &module, lw_tile *tile,
                                                                const lw_box *box) {
    if (!is_watched_here()) {
        module.compute(tile, box);
        return;
    }
    InterruptState &state = interrupt_state();
    // Without the signal mask, which is a system call to save.
    if (sigsetjmp(state.out, 0) != 0) {
        sigset_t interrupts;
        sigemptyset(&interrupts);
        sigaddset(&interrupts, SIGINT);
        pthread_sigmask(SIG_UNBLOCK, &interrupts, nullptr);
        fesetenv(FE_DFL_ENV); // a function of the math library may have changed it for its own time
        return;
    }
    state.computing = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!state.met) module.compute(tile, box); // else it has come since somebody last looked
    std::atomic_signal_fence(std::memory_order_seq_cst);
    state.computing = 0;
}

} // namespace lapwing
