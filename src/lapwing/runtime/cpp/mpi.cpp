// The runtime as built by the user's mpicxx.
#include <mpi.h>

#include <cstring>
#include <memory>

#include "blocking.hpp"
#include "helper.hpp"
#include "nonblocking.hpp"
#include "run.hpp"
#include "watch.hpp"
#include "windows.hpp"

namespace lapwing {
namespace {

// With a helper thread the computing thread may pack while two earlier messages are leaving.
constexpr std::int64_t helper_spare_buffers = 1;

int with_helper(const Run &run, const Courier &courier, Transport &transport, Trace &trace) {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED) {
        throw Failure(
            "engine helper calls MPI from a thread of its own, which needs MPI_THREAD_SERIALIZED or more, but MPI "
            "was initialised with less. Initialise it with MPI_THREAD_MULTIPLE (mpi4py does by default), or use "
            "--engine overlap");
    }
    Trace helper_trace(run.kept.capacity, run.options.clock_offset, 1);
    HelperThread progress(run.program, transport, trace, helper_trace, run.rules(), run.options.helper_cpu);
    return run.execute(courier, progress, trace);
}

int with_polling(const Run &run, const Courier &courier, Transport &transport, Trace &trace) {
    Polling progress(transport, trace, run.rules());
    return run.execute(courier, progress, trace);
}

int execute(const Run &run) {
    Courier courier(run.program, run.modules, run.tiles, run.options.dry != 0);
    Trace trace(run.kept.capacity, run.options.clock_offset, 0);
    const MPI_Comm comm = MPI_Comm_f2c(static_cast<MPI_Fint>(run.options.comm));
    switch (run.options.engine) {
    case LW_BLOCKING: {
        Blocking transport(courier, comm, run.rules());
        return with_polling(run, courier, transport, trace);
    }
    case LW_ONESIDED: {
        Windows windows(run.program, comm);
        const auto transport = windows.transport(courier);
        const int status = with_polling(run, courier, *transport, trace);
        if (status == LW_DONE) windows.close();
        return status;
    }
    case LW_HELPER: {
        Nonblocking transport(courier, comm, run.options.split_bytes, helper_spare_buffers);
        return with_helper(run, courier, transport, trace);
    }
    default: {
        Nonblocking transport(courier, comm, run.options.split_bytes, 0);
        return with_polling(run, courier, transport, trace);
    }
    }
}

} // namespace
} // namespace lapwing

int lw_run(const lw_program *program, const lw_module *modules, lw_tile *tiles, const lw_options *options,
           lw_progress progress, lw_trace *trace, lw_times *times) {
    try {
        return lapwing::execute({*program, modules, tiles, *options, progress, *trace, *times});
    } catch (const std::exception &error) {
        lapwing::failure() = error.what();
        return LW_FAILED;
    }
}

const char *lw_failure(void) { return lapwing::failure().c_str(); }

void lw_library_version(char *out, int64_t size) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    std::strncpy(out, version, static_cast<std::size_t>(size) - 1);
    out[size - 1] = '\0';
}

double lw_clock(void) { return lapwing::now(); }

void lw_watch(double seconds, const char *text) {
    if (seconds > 0) lapwing::watch() = std::make_unique<lapwing::Watch>(seconds, text);
}

void lw_unwatch(void) { lapwing::watch().reset(); }
