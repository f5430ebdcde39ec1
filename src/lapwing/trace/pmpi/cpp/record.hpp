// What a rank's recording looks like on disk; recording.py reads it. A file is a Header, site totals, then records.
//
// All times are seconds of CLOCK_MONOTONIC on the rank's own machine. The file is mapped, so that what was recorded is
// there however the rank ends.
#pragma once

#include <cstdint>

namespace lapwing::pmpi {

constexpr int format_version = 1;
constexpr std::int64_t header_bytes = 4096;
constexpr std::int64_t most_sites = 8192;
constexpr std::int64_t chunk_records = 1 << 16;

enum class State : std::int32_t { running = 1, finalized = 2, aborted = 3 };

struct Header {
    char magic[8]; // "LWPMPI" and two zeros, written last
    std::int32_t version, rank, size, threads;
    State state;
    std::int32_t process;
    std::int64_t records; // in the file
    std::int64_t dropped; // calls that came after the cap
    double begin, end;    // from the end of MPI_Init to the start of MPI_Finalize
    double clock_at[2];   // when this clock was compared with rank 0's: at both ends
    double clock_lead[2]; // this clock minus rank 0's
    char host[256];
    char library[512];
    char program[1024];
};
static_assert(sizeof(Header) <= header_bytes);

// Counts everything, also what came after the cap.
struct SiteTotals {
    std::int64_t calls;
    std::int64_t bytes;
    double seconds; // inside the calls
    std::int64_t reserved;
};

enum class Kind : std::uint8_t {
    none = 0,
    call = 1,
    send = 2,
    receive = 3,
    collective = 4,
    one_sided = 5,
    cancelled = 6
};

// A call of an MPI function, or an operation: one message's or collective's part on this rank. An operation starts in
// one call and finishes in the same or another. Records stand in order of their starts.
struct Record {
    double begin;              // entry into the call; of an operation: into the one that starts it
    double end;                // exit; 0 as long as it lasts
    double seconds;            // call: inside MPI (less than end - begin where several polls are one record)
    std::int64_t bytes;        // operation: payload
    std::uint8_t kind, thread; // Kind; 0 is the thread that called MPI_Init
    std::uint16_t reserved;
    std::int32_t site;          // of the call; of an operation: where it was started
    std::int32_t peer;          // rank in MPI_COMM_WORLD, or the root's; -1: any, all or none
    std::int32_t tag;           // -1: any or none
    std::uint32_t communicator; // the same number on all ranks
    std::uint32_t sequence;     // collective: how many there were before on the communicator
    std::int32_t start;         // operation: index of the call that started it; call: how many polls it stands for
    std::int32_t finish;        // operation: index of the call in which it finished, or -1
};
static_assert(sizeof(Record) == 64);

} // namespace lapwing::pmpi
