// Where threads and ranks hand over to each other, tests make them dawdle and look away, so that all that may happen in
// another order does. In other builds nothing of this is left.
#pragma once

#ifdef LAPWING_DELAYS

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace lapwing {

// A sequence of its own for every thread of every rank, by LAPWING_DELAY_SEED.
inline std::uint64_t random_number() {
    const auto of_environment = [](const char *name) {
        const char *text = std::getenv(name);
        return text != nullptr ? std::strtoull(text, nullptr, 10) : 0ULL;
    };
    static std::atomic<std::uint64_t> threads{0};
    thread_local std::uint64_t state = (of_environment("LAPWING_DELAY_SEED") * 64 + of_environment("PMI_RANK")) * 4096 +
                                       threads.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t bits = state += 0x9e3779b97f4a7c15; // splitmix64
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
}

// Mostly nothing, sometimes a turn for others, now and then a long sleep; some threads sleep often, so that others get
// far ahead of them.
inline void dawdle() {
    thread_local const std::uint64_t industry = random_number() % 4 == 0 ? 4 : 64;
    const std::uint64_t bits = random_number();
    if (bits % industry == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(bits / industry % 200));
    } else if (bits % 4 == 0) {
        sched_yield();
    }
}

// Whether not to see what is there to be seen; it has to be looked for again.
inline bool looks_away() { return random_number() % 4 == 0; }

} // namespace lapwing

#else

namespace lapwing {

inline void dawdle() {}
constexpr bool looks_away() { return false; }

} // namespace lapwing

#endif
