// The clock that runs are timed with.
#pragma once

#include <chrono>

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

} // namespace lapwing
