// The clocks that runs are timed with.
#pragma once

#include <chrono>
#include <ctime>

#include "simulated.hpp"

namespace lapwing {

inline double now() {
#ifdef LAPWING_SIMULATED
    return simulated_now();
#else
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
#endif
}

// The CPU time that this thread has had. In virtual time every rank has a core of its own.
inline double cpu_now() {
#ifdef LAPWING_SIMULATED
    return simulated_now();
#else
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
#endif
}

} // namespace lapwing
