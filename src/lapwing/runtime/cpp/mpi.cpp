// The runtime as built by the user's mpicxx.
#include <mpi.h>

#include <cstring>
#include <memory>

#include "blocking.hpp"
#include "nonblocking.hpp"
#include "pipeline.hpp"

namespace {

// Short enough that a message too large to be sent unasked never waits long for an answer, long enough to cost nothing:
// polling every 50 to 100 microseconds hid all of a 2 MiB message over TCP, without polling a sixth was hidden.
constexpr double slice_seconds = 75e-6;

std::unique_ptr<lapwing::Transport> make_transport(int engine, lapwing::Courier &courier, MPI_Comm comm) {
    if (engine == LW_BLOCKING) return std::make_unique<lapwing::Blocking>(courier, comm);
    return std::make_unique<lapwing::Nonblocking>(courier, comm);
}

} // namespace

int lw_run(const lw_program *program, const lw_module *module, lw_tile *tile, int engine, int64_t comm,
           double clock_offset, int dry, lw_progress progress, lw_times *times) {
    *times = {};
    lapwing::Courier courier(*program, *module, *tile, clock_offset, dry != 0, *times);
    const auto transport = make_transport(engine, courier, MPI_Comm_f2c(static_cast<MPI_Fint>(comm)));
    lapwing::Pipeline pipeline(*program, *module, *tile, courier, *transport, progress);
    return pipeline.run(slice_seconds, dry != 0);
}

void lw_library_version(char *out, int64_t size) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    std::strncpy(out, version, static_cast<std::size_t>(size) - 1);
    out[size - 1] = '\0';
}

double lw_clock(void) { return lapwing::now(); }
