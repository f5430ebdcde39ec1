// program.bin: the numbers of one problem, and what every rank does.
//
//     "LWPROG1\n", ranks, and for the common part and then every rank where it begins and, at last, where the file
//     ends: 8 bytes each, little-endian. Parts hold numbers of variable length, seven bits a byte, signs in the lowest
//     bit.
//
// A table is its number of rows and then, column by column, runs of equal differences from row to row: a difference and
// how often it comes. Programs are regular, so a rank's takes some hundred bytes, however many steps it has.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "lapwing.h"
#include "waiting.hpp"

namespace lapwing {

static_assert(std::endian::native == std::endian::little, "program.bin and .npy files are read as they lie");

using Numbers = std::vector<std::int64_t>;

// Numbers of one part of the file.
class Part {
public:
    Part(std::string bytes, std::string where) : bytes_(std::move(bytes)), where_(std::move(where)) {}

    std::int64_t number() {
        std::uint64_t bits = 0;
        for (int shift = 0;; shift += 7) {
            if (at_ >= bytes_.size() || shift > 63) throw Failure(where_ + " is damaged. Export the program again");
            const auto byte = static_cast<unsigned char>(bytes_[at_++]);
            bits |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) break;
        }
        return static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
    }

    // Row by row.
    Numbers table(std::int64_t columns) {
        const std::int64_t rows = number();
        Numbers values(static_cast<std::size_t>(rows * columns));
        for (std::int64_t column = 0; column < columns; ++column) {
            std::uint64_t value = 0; // differences may wrap
            for (std::int64_t row = 0; row < rows;) {
                const auto difference = static_cast<std::uint64_t>(number());
                for (std::int64_t run = number(); run > 0 && row < rows; --run, ++row) {
                    value += difference;
                    values[static_cast<std::size_t>(row * columns + column)] = static_cast<std::int64_t>(value);
                }
            }
        }
        return values;
    }

    Numbers list() { return table(1); }

    // Rows of structures that hold nothing but 64-bit numbers, and pointers that are null.
    template <class Row>
    std::vector<Row> rows() {
        static_assert(std::is_trivially_copyable_v<Row> && sizeof(Row) % sizeof(std::int64_t) == 0);
        constexpr std::int64_t columns = sizeof(Row) / sizeof(std::int64_t);
        const Numbers values = table(columns);
        std::vector<Row> found(values.size() / columns);
        if (!found.empty()) std::memcpy(found.data(), values.data(), values.size() * sizeof(std::int64_t));
        return found;
    }

private:
    std::string bytes_, where_;
    std::size_t at_ = 0;
};

class ProgramFile {
public:
    explicit ProgramFile(const std::string &path) : path_(path), file_(path, std::ios::binary) {
        std::array<char, 8> magic{};
        file_.read(magic.data(), magic.size());
        if (!file_) throw Failure(path + " cannot be read. Run the program in its own directory, or name that: --dir");
        if (std::string(magic.data(), magic.size()) != "LWPROG1\n") throw Failure(path + " is not a Lapwing program");
        ranks_ = fixed();
    }

    std::int64_t ranks() const { return ranks_; }
    Part common() { return part(0); }
    Part of_rank(std::int64_t rank) { return part(1 + rank); }

private:
    std::int64_t fixed() {
        std::int64_t value = 0;
        file_.read(reinterpret_cast<char *>(&value), sizeof value);
        return value;
    }

    Part part(std::int64_t index) {
        constexpr std::int64_t entry = sizeof(std::int64_t);
        file_.seekg(2 * entry + index * entry);
        const std::int64_t begin = fixed(), end = fixed();
        if (!file_ || begin > end) throw Failure(path_ + " is damaged. Export the program again");
        std::string bytes(static_cast<std::size_t>(end - begin), '\0');
        file_.seekg(begin);
        file_.read(bytes.data(), end - begin);
        if (!file_) throw Failure(path_ + " is cut off. Export the program again");
        return {std::move(bytes), path_};
    }

    std::string path_;
    std::ifstream file_;
    std::int64_t ranks_ = 0;
};

// The steps and messages of one rank, of a nest or of the phases of a pipeline.
class Tables {
public:
    Tables() = default;
    explicit Tables(Part &part)
        : joined_(part.list()), steps_(part.rows<lw_box>()), places_(part.table(2)), moves_(part.rows<lw_box>()),
          incoming_(part.rows<lw_channel>()), outgoing_(part.rows<lw_channel>()), messages_(part.rows<lw_message>()),
          parts_(part.rows<lw_part>()) {}

    // With what they are of: it looks into the tables, which have to stay.
    lw_program program(std::int64_t phases, std::int64_t sweeps, std::int64_t batch, std::int64_t apart,
                       const lw_phase *phase) const {
        return {.phases = phases,
                .sweeps = sweeps,
                .steps = static_cast<std::int64_t>(steps_.size()),
                .batch = batch,
                .apart = apart,
                .phase = phase,
                .step_boxes = steps_.data(),
                .incoming = static_cast<std::int64_t>(incoming_.size()),
                .outgoing = static_cast<std::int64_t>(outgoing_.size()),
                .incoming_channels = incoming_.data(),
                .outgoing_channels = outgoing_.data(),
                .messages = messages_.data(),
                .parts = parts_.data(),
                .pass_sweeps = joined_.at(3),
                .pass_skew = 0,
                .opening_sweeps = 0,
                .pass_places = static_cast<std::int64_t>(places_.size() / 2),
                .places = places_.data(),
                .joined_sweeps = joined_.at(0),
                .last_joined = joined_.at(1),
                .closing_sweeps = joined_.at(2),
                .step_moves = moves_.empty() ? nullptr : moves_.data()};
    }

private:
    Numbers joined_; // joined_sweeps, last_joined, closing_sweeps and pass_sweeps of lw_program
    std::vector<lw_box> steps_;
    Numbers places_;
    std::vector<lw_box> moves_;
    std::vector<lw_channel> incoming_, outgoing_;
    std::vector<lw_message> messages_;
    std::vector<lw_part> parts_;
};

} // namespace lapwing
