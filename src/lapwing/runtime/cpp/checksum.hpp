// A sum over the bytes of files that does not depend on the order in which they are looked at, nor on how they are cut:
// what several ranks wrote can be compared with what others, in other numbers, read.
//
// Word k of a file, of 8 bytes, counts w * m(k) modulo 2^64, m being odd, so that no change of one word goes unseen,
// and different from place to place, so that exchanged words do not either (multilinear hashing: Carter and Wegman
// 1979).
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lapwing {

class Checksum {
public:
    // key: of the file.
    static std::uint64_t of(const std::vector<iovec> &runs, std::uint64_t key, std::int64_t offset) {
        std::uint64_t sum = 0;
        auto at = static_cast<std::uint64_t>(offset);
        for (const iovec &run : runs) {
            sum += of(static_cast<const char *>(run.iov_base), run.iov_len, key, at);
            at += run.iov_len;
        }
        return sum;
    }

private:
    static constexpr std::uint64_t word = sizeof(std::uint64_t);

    static std::uint64_t of(const char *bytes, std::uint64_t count, std::uint64_t key, std::uint64_t at) {
        const char *const end = bytes + count;
        std::uint64_t sum = 0;
        if (at % word != 0) {
            const std::uint64_t head = std::min(word - at % word, count);
            sum += part(bytes, head, key, at);
            bytes += head;
            at += head;
        }
        std::uint64_t place = key + at / word;
        for (; end - bytes >= static_cast<std::ptrdiff_t>(word); bytes += word, ++place) {
            std::uint64_t value;
            std::memcpy(&value, bytes, word);
            sum += value * factor(place);
        }
        return sum + part(bytes, static_cast<std::uint64_t>(end - bytes), key, (place - key) * word);
    }

    // Bytes within one word.
    static std::uint64_t part(const char *bytes, std::uint64_t count, std::uint64_t key, std::uint64_t at) {
        std::uint64_t value = 0;
        std::memcpy(reinterpret_cast<char *>(&value) + at % word, bytes,
                    count); // little-endian, as all machines here are
        return value * factor(key + at / word);
    }

    static std::uint64_t factor(std::uint64_t place) {
        const std::uint64_t mixed = place * 0x9E3779B97F4A7C15u;
        return (mixed ^ mixed >> 32) | 1;
    }
};

} // namespace lapwing
