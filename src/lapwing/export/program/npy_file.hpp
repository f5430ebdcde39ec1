// Boxes of elements between memory and .npy files (NumPy format 1.0 to 3.0, C order).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "lapwing.h"
#include "program_file.hpp"
#include "waiting.hpp"

namespace lapwing {

class NpyFile {
public:
    // Throws where the file does not hold an array of that element type and shape.
    NpyFile(std::string path, const std::string &element, Numbers shape, std::int64_t itemsize, bool writable)
        : path_(std::move(path)), shape_(std::move(shape)), itemsize_(itemsize),
          file_(::open(path_.c_str(), writable ? O_RDWR : O_RDONLY)) {
        if (file_ < 0) fail(std::string("cannot be opened: ") + std::strerror(errno));
        check_header(element);
    }
    NpyFile(const NpyFile &) = delete;
    NpyFile &operator=(const NpyFile &) = delete;
    ~NpyFile() { ::close(file_); }

    void read(const lw_box &box, const lw_array &array) const {
        each_row(box, array, [&](char *here, std::int64_t bytes, std::int64_t at) {
            transfer(bytes, [&](std::int64_t done) {
                return ::pread(file_, here + done, static_cast<std::size_t>(bytes - done), at + done);
            });
        });
    }

    void write(const lw_box &box, const lw_array &array) const {
        each_row(box, array, [&](const char *here, std::int64_t bytes, std::int64_t at) {
            transfer(bytes, [&](std::int64_t done) {
                return ::pwrite(file_, here + done, static_cast<std::size_t>(bytes - done), at + done);
            });
        });
    }

private:
    [[noreturn]] void fail(const std::string &what) const { throw Failure(path_ + " " + what); }

    std::string text_at(std::int64_t at, std::size_t bytes) const {
        std::string text(bytes, '\0');
        const ssize_t got = ::pread(file_, text.data(), bytes, at);
        if (got != static_cast<ssize_t>(bytes)) fail("is not a .npy file, or is cut off");
        return text;
    }

    void check_header(const std::string &element) {
        const std::string start = text_at(0, 12);
        if (start.substr(0, 6) != "\x93NUMPY") fail("is not a .npy file");
        const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(start[k]); };
        const bool is_short = byte(6) == 1;
        std::size_t bytes = byte(8) + 256U * byte(9);
        if (!is_short) bytes += 65536U * byte(10) + 16777216U * byte(11);
        const std::int64_t begin = is_short ? 10 : 12;
        const std::string header = text_at(begin, bytes);
        begin_ = begin + static_cast<std::int64_t>(bytes);
        std::string shape = "(";
        for (const std::int64_t n : shape_) shape += std::to_string(n) + (shape_.size() > 1 ? ", " : ",");
        if (shape_.size() > 1) shape.resize(shape.size() - 2);
        for (const std::string &part :
             {"'descr': '" + element + "'", std::string("'fortran_order': False"), "'shape': " + shape + ")"}) {
            if (header.find(part) == std::string::npos) fail("holds {" + header + "}: expected " + part);
        }
    }

    // Calls f(where a row of the box begins in memory, its bytes, where it begins in the file).
    template <class F>
    void each_row(const lw_box &box, const lw_array &array, F f) const {
        const std::size_t last = shape_.size() - 1;
        lw_box at = box;
        const std::int64_t bytes = (box.hi[last] - box.lo[last]) * itemsize_;
        for (std::size_t k = 0; k <= last; ++k) {
            if (box.lo[k] >= box.hi[k]) return;
        }
        for (;;) {
            std::int64_t here = 0, there = 0;
            for (std::size_t k = 0; k <= last; ++k) {
                here += at.lo[k] * array.stride[k];
                there = there * shape_[k] + at.lo[k];
            }
            f(static_cast<char *>(array.base) + here * itemsize_, bytes, begin_ + there * itemsize_);
            std::size_t k = last;
            for (; k > 0 && ++at.lo[k - 1] == box.hi[k - 1]; --k) at.lo[k - 1] = box.lo[k - 1];
            if (k == 0) return;
        }
    }

    // What a call moves may be less than it was asked for.
    template <class Call>
    void transfer(std::int64_t bytes, Call call) const {
        for (std::int64_t done = 0; done < bytes;) {
            const ssize_t moved = call(done);
            if (moved < 0 && errno != EINTR) fail(std::strerror(errno));
            if (moved == 0) fail("is cut off");
            done += moved > 0 ? moved : 0;
        }
    }

    std::string path_;
    Numbers shape_;
    std::int64_t itemsize_, begin_ = 0;
    int file_;
};

} // namespace lapwing
