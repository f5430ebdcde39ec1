// A ring of memory that is mapped twice, one mapping right behind the other: what wraps around its end lies in one
// piece.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "waiting.hpp"

namespace lapwing {

class MirroredMemory {
public:
    // bytes: a multiple of the page size.
    explicit MirroredMemory(std::size_t bytes) : bytes_(bytes) {
        const int file = memfd_create("lapwing-ring", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) fail(file);
        void *const place = mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (place == MAP_FAILED) fail(file);
        base_ = static_cast<char *>(place);
        for (char *half : {base_, base_ + bytes}) {
            if (mmap(half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) fail(file);
        }
        close(file);
    }
    MirroredMemory(MirroredMemory &&other) noexcept
        : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    MirroredMemory &operator=(MirroredMemory &&) = delete;
    ~MirroredMemory() {
        if (base_ != nullptr) munmap(base_, 2 * bytes_);
    }

    char *base() const { return base_; }

private:
    [[noreturn]] void fail(int file) {
        const std::string reason = std::strerror(errno);
        if (file >= 0) close(file);
        if (base_ != nullptr) munmap(base_, 2 * bytes_);
        throw Failure("no memory for a ring of " + std::to_string(bytes_) + " bytes: " + reason +
                      ". A smaller --memory asks for less");
    }

    char *base_ = nullptr;
    std::size_t bytes_;
};

} // namespace lapwing
