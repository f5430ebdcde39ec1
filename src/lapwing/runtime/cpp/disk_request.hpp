// One piece of work for a thread that moves slabs: bytes that lie in one piece in a file, or in memory that stays, and
// in runs in a ring.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "checksum.hpp"
#include "lapwing.h"
#include "waiting.hpp"

namespace lapwing {

enum class Direction { reading, writing };

// A part of an extent: `bytes` of them, from byte `skip` of run `first` on.
struct DiskRequest {
    const lw_extent *extent;
    std::int64_t first, skip, bytes;
};

constexpr std::int64_t most_runs = 1024; // of a call of the system (IOV_MAX)

// Cuts an extent into requests of at most so many bytes.
inline void cut(const lw_extent &extent, std::int64_t request_bytes, std::vector<DiskRequest> &out) {
    std::int64_t runs = 1;
    for (std::int64_t k = 0; k < extent.dims; ++k) runs *= extent.count[k];
    if (extent.run_bytes == 0) return;
    const std::int64_t together =
        std::clamp<std::int64_t>(request_bytes / extent.run_bytes, 1, std::min(extent.group, most_runs));
    for (std::int64_t group = 0; group < runs; group += extent.group) {
        for (std::int64_t run = group; run < group + extent.group; run += together) {
            const std::int64_t taken = std::min(together, group + extent.group - run);
            const std::int64_t bytes = taken * extent.run_bytes;
            const std::int64_t most = taken == 1 ? request_bytes : bytes;
            for (std::int64_t skip = 0; skip < bytes; skip += most) {
                out.push_back({&extent, run, skip, std::min(most, bytes - skip)});
            }
        }
    }
}

// Where a run of an extent is, in the file and in memory from where the first run is.
struct RunPlace {
    std::int64_t file, memory;
};

inline RunPlace place_of(const lw_extent &extent, std::int64_t run) {
    RunPlace place{extent.offset, 0};
    for (std::int64_t k = extent.dims - 1; k >= 0; --k) {
        const std::int64_t index = run % extent.count[k];
        run /= extent.count[k];
        place.file += index * extent.file_stride[k];
        place.memory += index * extent.memory_stride[k];
    }
    return place;
}

// Where the bytes of a request are in memory, run by run. first_run: where the first run of the extent is.
inline void gather(const DiskRequest &request, char *first_run, std::vector<iovec> &runs) {
    const lw_extent &extent = *request.extent;
    runs.clear();
    std::int64_t left = request.bytes, skip = request.skip;
    for (std::int64_t run = request.first; left > 0; ++run, skip = 0) {
        char *const begin = first_run + place_of(extent, run).memory + skip;
        const std::int64_t bytes = std::min(left, extent.run_bytes - skip);
        char *const end = runs.empty() ? nullptr : static_cast<char *>(runs.back().iov_base) + runs.back().iov_len;
        if (begin == end) {
            runs.back().iov_len += static_cast<std::size_t>(bytes);
        } else {
            runs.push_back({begin, static_cast<std::size_t>(bytes)});
        }
        left -= bytes;
    }
}

// Whether the system can move the bytes without a copy.
inline bool is_aligned(std::int64_t offset, const std::vector<iovec> &runs) {
    constexpr std::uint64_t alignment = 512;
    const auto fits = [](std::uint64_t number) { return number % alignment == 0; };
    return fits(static_cast<std::uint64_t>(offset)) && std::ranges::all_of(runs, [&](const iovec &run) {
               return fits(reinterpret_cast<std::uint64_t>(run.iov_base)) && fits(run.iov_len);
           });
}

// Moves the bytes of requests. Every thread has one of its own: it keeps the file it used last open.
class Mover {
public:
    explicit Mover(bool direct) : direct_(direct) {}
    Mover(const Mover &) = delete;
    Mover &operator=(const Mover &) = delete;
    ~Mover() { close_file(); }

    // first_run: where the first run of the extent lies in memory.
    void move(const DiskRequest &request, char *first_run, Direction direction, const char *const *files) {
        const lw_extent &extent = *request.extent;
        gather(request, first_run, runs_);
        const std::int64_t offset = place_of(extent, request.first).file + request.skip;
        if (extent.file < 0) {
            copy(reinterpret_cast<char *>(offset), direction);
        } else {
            transfer(files[extent.file], offset, request.bytes, direction);
        }
    }

private:
    void copy(char *other, Direction direction) const {
        for (const iovec &run : runs_) {
            if (direction == Direction::reading) {
                std::memcpy(run.iov_base, other, run.iov_len);
            } else {
                std::memcpy(other, run.iov_base, run.iov_len);
            }
            other += run.iov_len;
        }
    }

    void transfer(const char *name, std::int64_t offset, std::int64_t bytes, Direction direction) {
        const bool direct = direct_ && is_aligned(offset, runs_);
        if (file_ < 0 || name_ != name || direction_ != direction || is_direct_ != direct) {
            open_file(name, direction, direct);
        }
        std::size_t first = 0;
        while (bytes > 0) {
            const auto count = static_cast<int>(std::min<std::size_t>(runs_.size() - first, most_runs));
            const ssize_t moved = direction == Direction::reading ? preadv(file_, &runs_[first], count, offset)
                                                                  : pwritev(file_, &runs_[first], count, offset);
            if (moved < 0 && errno == EINTR) continue;
            if (moved < 0 && errno == EINVAL && is_direct_) {
                open_file(name, direction, false);
                continue;
            }
            if (moved < 0) fail(name, direction, std::strerror(errno));
            if (moved == 0) fail(name, direction, "the file is cut off");
            offset += moved;
            bytes -= moved;
            for (auto done = static_cast<std::size_t>(moved); done > 0;) {
                iovec &run = runs_[first];
                const std::size_t step = std::min(done, run.iov_len);
                run.iov_base = static_cast<char *>(run.iov_base) + step;
                run.iov_len -= step;
                done -= step;
                if (run.iov_len == 0) ++first;
            }
            // What is left of a transfer that was cut short need not be aligned.
            if (bytes > 0 && is_direct_ && !is_aligned(offset, runs_)) open_file(name, direction, false);
        }
    }

    void open_file(const char *name, Direction direction, bool direct) {
        close_file();
        const int mode = (direction == Direction::reading ? O_RDONLY : O_WRONLY) | O_CLOEXEC;
        if (direct) {
            file_ = open(name, mode | O_DIRECT);
            if (file_ < 0 && errno != EINVAL) fail(name, direction, std::strerror(errno));
        }
        is_direct_ = file_ >= 0;
        if (file_ < 0) file_ = open(name, mode);
        if (file_ < 0) fail(name, direction, std::strerror(errno));
        name_ = name;
        direction_ = direction;
        if (direct && !is_direct_) direct_ = false; // a file system that has no such way
    }

    void close_file() {
        if (file_ >= 0) close(file_);
        file_ = -1;
    }

    [[noreturn]] static void fail(const char *name, Direction direction, const std::string &reason) {
        throw Failure(std::string(direction == Direction::reading ? "reading " : "writing ") + name + ": " + reason);
    }

    bool direct_;
    int file_ = -1;
    bool is_direct_ = false;
    Direction direction_ = Direction::reading;
    std::string name_;
    std::vector<iovec> runs_;
};

} // namespace lapwing
