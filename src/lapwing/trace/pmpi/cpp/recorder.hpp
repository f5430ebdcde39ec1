// One rank's recording: a mapped file that grows chunk by chunk, and a text file of call sites.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "record.hpp"

namespace lapwing::pmpi {

// What kind of call it is: whether a rank that is inside could do nothing else.
enum class Role { block, wait, start, poll };

// Whom a collective waits for: all ranks, the root alone, the root for all others, the ranks up to one's own.
enum class Pattern { none, all, from_root, to_root, prefix };

struct Function {
    const char *name;
    Role role;
    Pattern pattern = Pattern::none;
};

double now();

class Recorder {
public:
    // Opens the recording in the directory LAPWING_TRACE_DIRECTORY; without that, and after a failure, nothing is
    // recorded.
    void open(int rank, int size, const char *library);
    void close(State state);

    bool on() const { return on_; }
    Header &header() { return *header_; }

    // The functions below are called with `mutex` held.
    std::mutex mutex;

    int site(const Function &function, void *address);
    SiteTotals &totals(int site) { return totals_[site]; }

    // A new record, or -1 when the cap is reached.
    std::int32_t append(const Record &record);
    Record &at(std::int32_t index) { return chunks_[index / chunk_records][index % chunk_records]; }
    std::int32_t count() const { return static_cast<std::int32_t>(header_->records); }

private:
    static constexpr int most_chunks = 4096;

    bool map_chunk(int number);

    bool on_ = false;
    int file_ = -1, sites_file_ = -1;
    std::int64_t cap_ = 0;
    Header *header_ = nullptr;
    SiteTotals *totals_ = nullptr;
    Record *chunks_[most_chunks] = {};
    std::unordered_map<std::uint64_t, int> sites_;
};

Recorder &recorder();

} // namespace lapwing::pmpi
