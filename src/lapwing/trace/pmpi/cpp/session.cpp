#include "session.hpp"

#include <mpi.h>

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "call.hpp"

namespace lapwing::pmpi {

namespace {

constexpr int rounds = 20; // of questions for the time; the quickest answer counts

// Machines whose clocks are one: the kernel's boot, or a name given for tests.
std::uint64_t clock_domain() {
    char text[256] = {};
    const char *given = std::getenv("LAPWING_TRACE_CLOCK");
    if (given != nullptr) {
        std::strncpy(text, given, sizeof text - 1);
    } else if (const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); file >= 0) {
        if (read(file, text, sizeof text - 1) < 0) text[0] = '\0';
        close(file);
    }
    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    for (const char *c = text; *c != '\0'; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211u;
    return hash;
}

// This clock minus rank 0's, by round trips: rank 0 read its clock halfway, give or take half the quickest trip.
double measure_lead(int rank, const std::vector<std::uint64_t> &domains) {
    MPI_Comm comm;
    LW_NEXT(MPI_Comm_dup)(MPI_COMM_WORLD, &comm);
    double lead = 0, quickest = 1e9;
    for (int other = 1; other < static_cast<int>(domains.size()); ++other) {
        if (domains[static_cast<std::size_t>(other)] == domains[0]) continue;
        if (rank != 0 && rank != other) continue;
        for (int round = 0; round < rounds; ++round) {
            double theirs = 0;
            if (rank == 0) {
                LW_NEXT(MPI_Recv)(&theirs, 1, MPI_DOUBLE, other, 0, comm, MPI_STATUS_IGNORE);
                theirs = now();
                LW_NEXT(MPI_Send)(&theirs, 1, MPI_DOUBLE, other, 0, comm);
                continue;
            }
            const double asked = now();
            LW_NEXT(MPI_Send)(&theirs, 1, MPI_DOUBLE, 0, 0, comm);
            LW_NEXT(MPI_Recv)(&theirs, 1, MPI_DOUBLE, 0, 0, comm, MPI_STATUS_IGNORE);
            const double answered = now();
            if (answered - asked < quickest) {
                quickest = answered - asked;
                lead = 0.5 * (asked + answered) - theirs;
            }
        }
    }
    LW_NEXT(MPI_Comm_free)(&comm);
    return lead;
}

void compare_clocks(int which) {
    Header &header = recorder().header();
    std::vector<std::uint64_t> domains(static_cast<std::size_t>(header.size));
    const std::uint64_t own = clock_domain();
    LW_NEXT(MPI_Allgather)(&own, 1, MPI_UINT64_T, domains.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    header.clock_lead[which] = measure_lead(header.rank, domains);
    header.clock_at[which] = now();
}

int find_mpi_library(dl_phdr_info *module, std::size_t, void *argument) {
    const char *slash = std::strrchr(module->dlpi_name, '/');
    const char *file = slash != nullptr ? slash + 1 : module->dlpi_name;
    if (std::strncmp(file, "libmpi.so", 9) != 0 && std::strncmp(file, "libmpich.so", 11) != 0 &&
        std::strncmp(file, "libmpi_abi.so", 13) != 0)
        return 0;
    *static_cast<std::string *>(argument) = module->dlpi_name;
    return 1;
}

const char *own_kind() {
#ifdef OPEN_MPI
    return "Open MPI";
#else
    return "MPICH or one of its kind";
#endif
}

} // namespace

void refuse_other_mpi() {
    std::string path;
    dl_iterate_phdr(find_mpi_library, &path);
    const char *found = find_next_function("ompi_mpi_comm_world") != nullptr ? "Open MPI"
                        : path.find("libmpi_abi.so") != std::string::npos    ? "an MPI with the standard ABI"
                                                                             : "MPICH or one of its kind";
    if (std::strcmp(found, own_kind()) == 0) return;
    const char *directory = std::getenv("LAPWING_TRACE_DIRECTORY");
    if (directory == nullptr) return;
    const std::string note = std::string(directory) + "/other-mpi";
    const int file = open(note.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) dprintf(file, "%s\t%s\t%s\n", found, path.c_str(), own_kind());
    _exit(1);
}

void begin_session() {
    thread_number();
    int rank = 0, size = 0, length = 0;
    LW_NEXT(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
    LW_NEXT(MPI_Comm_size)(MPI_COMM_WORLD, &size);
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    LW_NEXT(MPI_Get_library_version)(library, &length);
    if (char *end = std::strchr(library, '\n')) *end = '\0';
    recorder().open(rank, size, library);
    // All ranks or none: comparing clocks takes all of them.
    int ready = recorder().on(), all_ready = 0;
    LW_NEXT(MPI_Allreduce)(&ready, &all_ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all_ready) {
        if (ready) recorder().close(State::running);
        return;
    }
    communicators().created(MPI_COMM_WORLD);
    communicators().created(MPI_COMM_SELF);
    compare_clocks(0);
    recorder().header().begin = now();
}

void end_session() {
    if (!recorder().on()) return;
    recorder().header().end = now();
    compare_clocks(1);
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    recorder().close(State::finalized);
}

void abort_session() {
    if (!recorder().on()) return;
    recorder().header().end = now();
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    recorder().close(State::aborted);
}

} // namespace lapwing::pmpi
