// Where a rank's arrays are while it computes: in memory, all of them, or some of them on a disk.
#pragma once

#include "trace.hpp"

namespace lapwing {

class Storage {
public:
    virtual ~Storage() = default;

    virtual void start() {}
    // Whether what the step touches is in memory; it lies in place then.
    virtual bool is_ready(Position) { return true; }
    // While it is not.
    virtual void rest() {}
    // The step is over, messages included.
    virtual void release(Position, Trace &) {}
    // Nothing more is computed: what the pass of a sweep and later ones write does not count.
    virtual void abandon(std::int64_t) {}
    // After the last step: whether all is written.
    virtual bool has_finished(Trace &) { return true; }
};

} // namespace lapwing
