// The runtime for one process: the same pipeline without neighbours, and without MPI.
#include "run.hpp"
#include "watch.hpp"

int lw_run(const lw_program *program, const lw_module *modules, lw_tile *tiles, const lw_options *options,
           lw_progress progress, lw_trace *trace, lw_times *times) {
    try {
        const lapwing::Run run{*program, modules, tiles, *options, progress, *trace, *times};
        lapwing::Courier courier(*program, modules, tiles, options->dry != 0);
        lapwing::Trace kept(trace->capacity, options->clock_offset, 0);
        lapwing::NoTransport transport;
        lapwing::Polling polling(transport, kept, run.rules());
        return run.execute(courier, polling, kept);
    } catch (const std::exception &error) {
        lapwing::failure() = error.what();
        return LW_FAILED;
    }
}

const char *lw_failure(void) { return lapwing::failure().c_str(); }

void lw_library_version(char *out, int64_t) { out[0] = '\0'; }

double lw_clock(void) { return lapwing::now(); }

void lw_watch(double seconds, const char *text) {
    if (seconds > 0) lapwing::watch() = std::make_unique<lapwing::Watch>(seconds, text);
}

void lw_unwatch(void) { lapwing::watch().reset(); }
