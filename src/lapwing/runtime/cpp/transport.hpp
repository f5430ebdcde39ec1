// How a rank's messages travel: the interface the pipeline drives, and the one for a rank without neighbours.
#pragma once

#include <cstdint>

#include "lapwing.h"

namespace lapwing {

// Where in a run a rank stands.
struct Position {
    std::int64_t sweep;
    std::int64_t step;
};

class Transport {
public:
    virtual ~Transport() = default;
    virtual void start() = 0; // before the first step
    virtual void before_sweep(std::int64_t sweep) = 0;
    virtual void before_step(Position at) = 0; // returns when all the step needs has arrived and is unpacked
    virtual void after_step(Position at) = 0;  // sends what the step produced
    virtual void poll() = 0;                   // between slices of a step: lets the library progress
    virtual void finish() = 0;                 // after the last step
};

class NoTransport final : public Transport {
public:
    void start() override {}
    void before_sweep(std::int64_t) override {}
    void before_step(Position) override {}
    void after_step(Position) override {}
    void poll() override {}
    void finish() override {}
};

} // namespace lapwing
