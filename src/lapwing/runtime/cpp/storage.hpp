// Where a rank's arrays are while it computes: in memory, all of them, or some of them on a disk.
#pragma once

#include "trace.hpp"

namespace lapwing {

class Storage {
public:
    virtual ~Storage() = default;

    virtual void start() {}
    virtual bool is_ready(Position) {
        return true;
    } // whether what the step touches is in memory; it lies in place then
    virtual void rest() {}                              // while it is not
    virtual void release(Position, Trace &) {}          // the step is over, messages included
    virtual void abandon(Position) {}                   // nothing more is computed: what this pass writes does not count
    virtual bool has_finished(Trace &) { return true; } // after the last step: whether all is written
};

} // namespace lapwing
