// Requests under way in a queue of the system's (io_uring, by liburing): one thread hands in many, and sleeps until one
// is done. Built where liburing's headers are found; elsewhere, and where the system has no such queue, threads wait
// for a request each (disk_ring.hpp). LAPWING_NO_LIBURING leaves it out, for tests.
#pragma once

#ifdef LAPWING_NO_LIBURING
#undef LAPWING_LIBURING
#endif

#ifdef LAPWING_LIBURING

#include <liburing.h>
#include <sys/eventfd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "disk_request.hpp"

namespace lapwing {

class DiskQueue {
public:
    explicit DiskQueue(unsigned depth) : places_(depth) {
        for (unsigned k = 0; k < depth; ++k) free_.push_back(k);
        bell_ = eventfd(0, EFD_CLOEXEC);
        is_open_ = bell_ >= 0 && io_uring_queue_init(depth + 1, &queue_, 0) == 0;
        if (is_open_) listen();
    }
    DiskQueue(const DiskQueue &) = delete;
    DiskQueue &operator=(const DiskQueue &) = delete;
    ~DiskQueue() {
        while (is_open_ && under_way() > 0) next_done(); // it still writes to memory that is about to go
        if (is_open_) io_uring_queue_exit(&queue_);
        if (bell_ >= 0) close(bell_);
        for (const File &file : files_) close(file.descriptor);
    }

    bool is_open() const { return is_open_; }
    bool is_full() const { return free_.empty(); }

    // Hands a request in; false where it has to be moved otherwise, since its bytes do not lie as the system needs
    // them.
    bool submit(const DiskRequest &request, char *first_run, Direction direction, const char *const *files,
                void *ticket) {
        if (request.extent->file < 0) return false;
        const unsigned place = free_.back();
        Place &at = places_[place];
        gather(request, first_run, at.runs);
        const std::int64_t offset = place_of(*request.extent, request.first).file + request.skip;
        if (at.runs.size() > most_runs || !is_aligned(offset, at.runs)) return false;
        const int descriptor = descriptor_of(files[request.extent->file], direction);
        io_uring_sqe *const entry = descriptor < 0 ? nullptr : io_uring_get_sqe(&queue_);
        if (entry == nullptr) return false;
        at.bytes = request.bytes;
        at.ticket = ticket;
        const auto count = static_cast<unsigned>(at.runs.size());
        if (direction == Direction::reading) {
            io_uring_prep_readv(entry, descriptor, at.runs.data(), count, static_cast<std::uint64_t>(offset));
        } else {
            io_uring_prep_writev(entry, descriptor, at.runs.data(), count, static_cast<std::uint64_t>(offset));
        }
        io_uring_sqe_set_data64(entry, place);
        free_.pop_back();
        return true;
    }

    // Wakes who waits in next_done: there is more to hand in. Any thread may call it.
    void wake() const {
        const std::uint64_t once = 1;
        [[maybe_unused]] const ssize_t written = write(bell_, &once, sizeof once);
    }

    // Starts what was handed in and sleeps until a request is done. What was handed in with it, and whether all its
    // bytes were moved; null where it was woken.
    std::pair<void *, bool> next_done() {
        io_uring_submit(&queue_);
        io_uring_cqe *done = nullptr;
        if (io_uring_wait_cqe(&queue_, &done) != 0) return {nullptr, false};
        const std::uint64_t place = io_uring_cqe_get_data64(done);
        const std::int64_t moved = done->res;
        io_uring_cqe_seen(&queue_, done);
        if (place == of_bell) {
            listen();
            return {nullptr, false};
        }
        free_.push_back(static_cast<unsigned>(place));
        return {places_[place].ticket, moved == places_[place].bytes};
    }

private:
    struct Place {
        std::vector<iovec> runs;
        std::int64_t bytes = 0;
        void *ticket = nullptr;
    };

    struct File {
        std::string name;
        Direction direction;
        int descriptor;
    };

    static constexpr std::size_t most_files = 16;
    static constexpr std::uint64_t of_bell = ~std::uint64_t{0};

    std::size_t under_way() const { return places_.size() - free_.size(); }

    void listen() {
        io_uring_sqe *const entry = io_uring_get_sqe(&queue_);
        io_uring_prep_read(entry, bell_, &rung_, sizeof rung_, 0);
        io_uring_sqe_set_data64(entry, of_bell);
    }

    // Files stay open, for the next request is likely to be for one of the last.
    int descriptor_of(const char *name, Direction direction) {
        for (const File &file : files_) {
            if (file.direction == direction && file.name == name) return file.descriptor;
        }
        const int mode = (direction == Direction::reading ? O_RDONLY : O_WRONLY) | O_CLOEXEC | O_DIRECT;
        const int descriptor = open(name, mode);
        if (descriptor < 0) return descriptor;
        if (files_.size() == most_files) {
            io_uring_submit(&queue_); // what is submitted keeps its file
            close(files_.front().descriptor);
            files_.erase(files_.begin());
        }
        files_.push_back({name, direction, descriptor});
        return descriptor;
    }

    io_uring queue_{};
    bool is_open_ = false;
    int bell_ = -1;
    std::uint64_t rung_ = 0;
    std::vector<Place> places_;
    std::vector<unsigned> free_;
    std::vector<File> files_;
};

} // namespace lapwing

#endif
