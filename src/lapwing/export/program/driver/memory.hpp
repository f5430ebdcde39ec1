// The parts of arrays that a rank of an exported program of several nests has, and how elements go from rank to rank.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver.h"
#include "npy_file.hpp"
#include "program_file.hpp"
#include "simulated.hpp"

namespace lapwing {

inline std::int64_t volume(const lw_box &box, std::int64_t axes) {
    std::int64_t elements = 1;
    for (std::int64_t k = 0; k < axes; ++k) elements *= std::max<std::int64_t>(0, box.hi[k] - box.lo[k]);
    return elements;
}

// Calls f(the address of the first element of a row, the elements of the row) for every row of a box.
template <class F>
void each_row(const lw_box &box, std::int64_t axes, const lw_array &array, std::int64_t itemsize, F f) {
    if (volume(box, axes) == 0) return;
    const std::int64_t last = axes - 1;
    lw_box at = box;
    for (;;) {
        std::int64_t here = 0;
        for (std::int64_t k = 0; k < axes; ++k) here += at.lo[k] * array.stride[k];
        f(static_cast<char *>(array.base) + here * itemsize, box.hi[last] - box.lo[last]);
        std::int64_t k = last;
        for (; k > 0 && ++at.lo[k - 1] == box.hi[k - 1]; --k) at.lo[k - 1] = box.lo[k - 1];
        if (k == 0) return;
    }
}

// Copies a box of elements, element by element: rows need not be contiguous.
inline void copy_elements(const lw_box &box, std::int64_t axes, const lw_array &from, const lw_array &to,
                          std::int64_t itemsize) {
    if (volume(box, axes) == 0) return;
    const std::int64_t last = axes - 1;
    lw_box at = box;
    for (;;) {
        std::int64_t here = 0, there = 0;
        for (std::int64_t k = 0; k < axes; ++k) here += at.lo[k] * from.stride[k], there += at.lo[k] * to.stride[k];
        const char *source = static_cast<const char *>(from.base) + here * itemsize;
        char *target = static_cast<char *>(to.base) + there * itemsize;
        const std::int64_t count = box.hi[last] - box.lo[last];
        if (from.stride[last] == 1 && to.stride[last] == 1) {
            std::memcpy(target, source, static_cast<std::size_t>(count * itemsize));
        } else {
            for (std::int64_t k = 0; k < count; ++k) {
                std::memcpy(target + k * to.stride[last] * itemsize, source + k * from.stride[last] * itemsize,
                            static_cast<std::size_t>(itemsize));
            }
        }
        std::int64_t k = last;
        for (; k > 0 && ++at.lo[k - 1] == box.hi[k - 1]; --k) at.lo[k - 1] = box.lo[k - 1];
        if (k == 0) return;
    }
}

// Memory of so many elements, and the address that element (0, ..., 0) would have if one that is `origin` elements
// behind it is the first.
class Room {
public:
    void *allocate(std::int64_t elements, std::int64_t origin, std::int64_t itemsize, const char *name) {
        constexpr std::size_t line = 64;
        const auto bytes = static_cast<std::size_t>(elements * itemsize);
        const std::size_t rounded = (bytes + line) / line * line;
        memory_.reset(static_cast<char *>(std::aligned_alloc(line, rounded)));
        if (!memory_) throw Failure("no memory for " + std::to_string(bytes) + " bytes of " + name);
        std::memset(memory_.get(), 0, rounded);
        return reinterpret_cast<void *>(reinterpret_cast<std::intptr_t>(memory_.get()) + origin * itemsize);
    }

private:
    std::unique_ptr<char, decltype(&std::free)> memory_{nullptr, &std::free};
};

// A rank's part of an array: a box of its elements.
class Memory {
public:
    Memory(const lw_driver_memory &kind, Numbers shape, bool has_file, Part &part)
        : kind_(kind), shape_(std::move(shape)), has_file_(has_file) {
        const Numbers low = part.list(), high = part.list(), strides = part.list();
        std::int64_t origin = 0;
        for (std::size_t k = 0; k < shape_.size(); ++k) {
            box_.lo[k] = low.at(k), box_.hi[k] = high.at(k);
            array_.stride[k] = strides.at(k);
            array_.shape[k] = shape_[k];
            origin -= low[k] * strides[k];
        }
        const std::int64_t elements = std::max<std::int64_t>(1, (box_.hi[0] - box_.lo[0]) * strides[0]);
        array_.base = room_.allocate(elements, origin, kind.itemsize, kind.name);
    }

    const lw_driver_memory &kind() const { return kind_; }
    const lw_array &array() const { return array_; }
    const lw_box &box() const { return box_; }
    const Numbers &shape() const { return shape_; }
    bool has_file() const { return has_file_; }

    void load(const std::string &folder) {
        if (volume(box_, kind_.axes) > 0) file(folder, kind_.name, false).read(box_, array_);
    }

    NpyFile file(const std::string &folder, const std::string &name, bool writable) const {
        return NpyFile(folder + "/" + name + ".npy", kind_.element, shape_, kind_.itemsize, writable);
    }

    // element: its bytes, in two words.
    void fill(const std::int64_t *element) {
        each_row(box_, kind_.axes, array_, kind_.itemsize, [&](char *row, std::int64_t count) {
            for (std::int64_t k = 0; k < count; ++k) {
                std::memcpy(row + k * kind_.itemsize, element, static_cast<std::size_t>(kind_.itemsize));
            }
        });
    }

    // What is kept of a copy is there in what it is a copy of.
    void copy_of(const Memory &other) { copy_elements(box_, kind_.axes, other.array_, array_, kind_.itemsize); }

    std::int64_t bytes(const lw_box &box) const { return volume(box, kind_.axes) * kind_.itemsize; }

    void pack(const lw_box &box, char *out) const {
        each_row(box, kind_.axes, array_, kind_.itemsize, [&](const char *row, std::int64_t count) {
            std::memcpy(out, row, static_cast<std::size_t>(count * kind_.itemsize));
            out += count * kind_.itemsize;
        });
    }

    void unpack(const lw_box &box, const char *in) {
        each_row(box, kind_.axes, array_, kind_.itemsize, [&](char *row, std::int64_t count) {
            std::memcpy(row, in, static_cast<std::size_t>(count * kind_.itemsize));
            in += count * kind_.itemsize;
        });
    }

private:
    const lw_driver_memory &kind_;
    Numbers shape_;
    bool has_file_;
    lw_box box_{};
    lw_array array_{};
    Room room_;
};

// Elements that this rank sends to a peer, or gets from it.
struct Move {
    std::int64_t memory, peer, sends;
    lw_box box;
};

inline void move_elements(const std::vector<Move> &moves, std::vector<std::unique_ptr<Memory>> &memories) {
    std::vector<std::vector<char>> buffers;
    std::vector<MPI_Request> requests;
    for (const Move &move : moves) {
        const Memory &memory = *memories[static_cast<std::size_t>(move.memory)];
        const std::int64_t bytes = memory.bytes(move.box);
        if (bytes > INT32_MAX) throw Failure("a message of more than 2 GiB. Export the program for more ranks");
        std::vector<char> &buffer = buffers.emplace_back(static_cast<std::size_t>(bytes));
        MPI_Request &request = requests.emplace_back();
        const int peer = static_cast<int>(move.peer), count = static_cast<int>(bytes);
        if (move.sends != 0) {
            memory.pack(move.box, buffer.data());
            spend_sending(bytes);
            MPI_Isend(buffer.data(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request);
        } else {
            MPI_Irecv(buffer.data(), count, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request);
        }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t k = 0; k < moves.size(); ++k) {
        if (moves[k].sends != 0) continue;
        Memory &memory = *memories[static_cast<std::size_t>(moves[k].memory)];
        spend_receiving(memory.bytes(moves[k].box));
        memory.unpack(moves[k].box, buffers[k].data());
    }
}

} // namespace lapwing
