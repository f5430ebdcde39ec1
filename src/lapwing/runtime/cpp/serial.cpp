// The runtime for one process: the same pipeline without neighbours, and without MPI.
#include "pipeline.hpp"

namespace {

constexpr double slice_seconds = 20e-3; // only progress reports and interrupts are served in between

} // namespace

int lw_run(const lw_program *program, const lw_module *module, lw_tile *tile, int, int64_t, double clock_offset,
           int dry, lw_progress progress, lw_times *times) {
    *times = {};
    lapwing::Courier courier(*program, *module, *tile, clock_offset, dry != 0, *times);
    lapwing::NoTransport transport;
    lapwing::Pipeline pipeline(*program, *module, *tile, courier, transport, progress);
    return pipeline.run(slice_seconds, dry != 0);
}

void lw_library_version(char *out, int64_t) { out[0] = '\0'; }

double lw_clock(void) { return lapwing::now(); }
