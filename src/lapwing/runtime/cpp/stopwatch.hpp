// Time spent in a phase, added to a counter when the scope ends.
#pragma once

#include <chrono>

namespace lapwing {

inline double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

class Stopwatch {
public:
    explicit Stopwatch(double &counter) : counter_(counter), start_(now()) {}
    ~Stopwatch() { counter_ += now() - start_; }
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

private:
    double &counter_;
    double start_;
};

} // namespace lapwing
