// The clock that runs are timed with.
#pragma once

#include <chrono>

namespace lapwing {

inline double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

} // namespace lapwing
