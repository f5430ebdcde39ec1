// One run of a program with a given transport and progress: what the MPI and the serial build have in common.
#pragma once

#include <algorithm>
#include <string>

#include "pipeline.hpp"
#ifndef LAPWING_SIMULATED
#include "disk_ring.hpp"
#endif

namespace lapwing {

inline std::string &failure() {
    thread_local std::string text;
    return text;
}

struct Run {
    const lw_program &program;
    const lw_module *modules; // of the phases
    lw_tile *tiles;
    const lw_options &options;
    lw_progress report;
    lw_trace &kept;
    lw_times &times;

    WaitingRules rules() const { return {options.spin != 0, options.patience_seconds}; }

    int execute(const Courier &courier, Progress &progress, Trace &trace) const {
#ifndef LAPWING_SIMULATED
        if (options.disk != nullptr && options.dry == 0) {
            DiskRing ring(*options.disk, program, const_cast<lw_array *>(tiles->arrays));
            return execute(courier, progress, ring, trace);
        }
#endif
        Storage memory;
        return execute(courier, progress, memory, trace);
    }

private:
    int execute(const Courier &courier, Progress &progress, Storage &storage, Trace &trace) const {
        const Interrupts interrupts(options.interrupts != 0);
        // Of a signal that came before it was watched for only the caller knows.
        if (options.interrupts != 0 && report != nullptr && report(0, program.sweeps * program.steps) == LW_STOP) {
            return LW_STOPPED;
        }
        Pipeline pipeline(program, modules, tiles, courier, progress, storage, trace, report, options.grace_seconds);
        const int status = pipeline.run(options.slice_seconds, options.dry != 0);
        trace.copy_to(kept);
        times = trace.times();
        return status;
    }
};

} // namespace lapwing
