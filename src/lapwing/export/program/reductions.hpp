// The reductions of all ranks put together, as Python prints them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "nest.h"
#include "support.h"

namespace lapwing {

using Words = std::vector<lw_scalar>;

// An exact sum (support.h) rounded once, to the nearest number of that many bits, ties to even. Bit 0 stands for
// 2^-1074.
class RoundedSum {
public:
    RoundedSum(const std::vector<const lw_scalar *> &rows, double initial) {
        for (const lw_scalar *row : rows) {
            std::int64_t one[LW_EXACT_WORDS];
            for (int k = 0; k < LW_EXACT_WORDS; ++k) one[k] = row[k].i;
            lw_exact_carry(one); // before adding, so that digits cannot overflow
            for (int k = 1; k < LW_EXACT_WORDS; ++k) sum_[k] += one[k];
        }
        lw_exact_add(sum_, initial);
        lw_exact_carry(sum_);
        negative_ = sum_[LW_EXACT_WORDS - 1] < 0;
        if (!negative_) return;
        for (int k = LW_EXACT_HEADER; k < LW_EXACT_WORDS; ++k) sum_[k] = -sum_[k];
        lw_exact_carry(sum_);
    }

    double as_double() const { return rounded<double>(53, 0); }
    float as_float() const { return rounded<float>(24, 1074 - 149); }

private:
    // lowest: the bit of the type's least number.
    template <class Float>
    Float rounded(int precision, int lowest) const {
        const std::int64_t nans = sum_[1], plus = sum_[2], minus = sum_[3];
        if (nans > 0 || (plus > 0 && minus > 0)) return NAN;
        if (plus > 0 || minus > 0) return plus > 0 ? INFINITY : -INFINITY;
        int top = 32 * LW_EXACT_DIGITS - 1;
        while (top >= 0 && !bit(top)) --top;
        const int last = std::max(top - precision + 1, lowest);
        std::int64_t mantissa = 0;
        for (int k = top; k >= last; --k) mantissa = 2 * mantissa + bit(k);
        if (last > 0 && bit(last - 1)) {
            bool more = false;
            for (int k = 0; k < last - 1 && !more; ++k) more = bit(k);
            if (more || mantissa % 2 != 0) ++mantissa;
        }
        const Float size = std::ldexp(static_cast<Float>(mantissa), last - 1074);
        return negative_ ? -size : size;
    }

    bool bit(int k) const { return (sum_[LW_EXACT_HEADER + k / 32] >> (k % 32) & 1) != 0; }

    std::int64_t sum_[LW_EXACT_WORDS] = {};
    bool negative_ = false;
};

inline std::string decimal(__int128 value) {
    if (value < 0) return "-" + decimal(-value);
    const std::string last(1, static_cast<char>('0' + static_cast<int>(value % 10)));
    return value < 10 ? last : decimal(value / 10) + last;
}

// The shortest text that is read back as the same number.
template <class Float>
std::string decimal(Float value) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

inline std::string decimal_of_bits(double value, std::int64_t bits) {
    return bits == 32 ? decimal(static_cast<float>(value)) : decimal(value);
}

// An integer as a type of that many bits holds it; Python's own (0 bits) hold any.
inline __int128 wrapped(__int128 value, char kind, std::int64_t bits) {
    if (bits == 0) return value;
    const auto low = static_cast<std::uint64_t>(value) << (64 - bits);
    return kind == 'u' ? static_cast<__int128>(low >> (64 - bits)) : static_cast<std::int64_t>(low) >> (64 - bits);
}

// The words of one accumulator on every rank. all: those of all accumulators, one rank's after the other's.
inline std::vector<const lw_scalar *> words_of(const lw_nest &nest, const lw_nest_reduction &reduction,
                                               const Words &all) {
    std::vector<const lw_scalar *> rows;
    for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(nest.words)) {
        rows.push_back(&all[at + static_cast<std::size_t>(reduction.first_word)]);
    }
    return rows;
}

// The rank that has the extremum of all ranks, and of equal ones that of the first iteration, or of the last.
inline std::size_t rank_with_extremum(const lw_nest &nest, std::int64_t leader, const Words &all) {
    const lw_nest_reduction &extremum = nest.reduction[leader];
    const std::vector<const lw_scalar *> values = words_of(nest, extremum, all);
    const bool least = extremum.operation[0] == '<', last = extremum.operation[1] == '=';
    const auto place = [&](std::size_t rank) {
        std::vector<std::int64_t> found;
        for (std::int64_t k = 0; k < nest.reductions; ++k) {
            const lw_nest_reduction &loop = nest.reduction[k];
            const bool counts = loop.leader == leader && loop.operation == std::string("at");
            if (counts) found.push_back(words_of(nest, loop, all)[rank]->i);
        }
        return found;
    };
    const auto is_less = [&](std::size_t a, std::size_t b) {
        return extremum.kind == 'f' ? values[a]->f < values[b]->f : values[a]->i < values[b]->i;
    };
    const auto is_equal = [&](std::size_t a, std::size_t b) {
        return extremum.kind == 'f' ? values[a]->f == values[b]->f : values[a]->i == values[b]->i;
    };
    std::size_t best = 0;
    for (std::size_t rank = 1; rank < values.size(); ++rank) {
        const bool is_better = least ? is_less(rank, best) : is_less(best, rank);
        const bool counts = last ? place(rank) > place(best) : place(rank) < place(best);
        if (is_better || (is_equal(rank, best) && counts)) best = rank;
    }
    return best;
}

// What a reduction comes to: a float, or an integer.
struct Merged {
    double number = 0;
    __int128 whole = 0;
};

// all: the accumulators of every rank, one rank's after the other's; initial: what sums began with.
inline Merged merged(const lw_nest &nest, const lw_nest_reduction &reduction, const Words &all, lw_scalar initial) {
    const std::vector<const lw_scalar *> rows = words_of(nest, reduction, all);
    const auto of = [&](const lw_scalar &word) {
        return reduction.kind == 'f' ? Merged{word.f, 0} : Merged{0, static_cast<__int128>(word.i)};
    };
    if (reduction.leader >= 0) return of(*rows[rank_with_extremum(nest, reduction.leader, all)]);
    if (reduction.exact) {
        const RoundedSum sum(rows, initial.f);
        return {reduction.bits == 32 ? static_cast<double>(sum.as_float()) : sum.as_double(), 0};
    }
    const std::string operation = reduction.operation;
    if (operation == "+") {
        __int128 total = initial.i;
        for (const lw_scalar *row : rows) total += row->i;
        return {0, wrapped(total, reduction.kind, reduction.bits)};
    }
    lw_scalar found = *rows.front();
    const auto take_better = [&](auto lw_scalar::*field) {
        for (const lw_scalar *row : rows) {
            const auto value = row->*field;
            if (operation == "set" || operation == "noted") { // by whichever rank has set it
                if (value != initial.*field) found = *row;
                continue;
            }
            if (operation == "max" ? value > found.*field : value < found.*field) found = *row;
        }
    };
    if (operation == "max" || operation == "min" || operation == "set" || operation == "noted") {
        if (reduction.kind == 'f')
            take_better(&lw_scalar::f);
        else
            take_better(&lw_scalar::i);
    }
    return of(found);
}

inline std::string text_of(const lw_nest_reduction &reduction, const Merged &value) {
    return reduction.kind == 'f' ? decimal_of_bits(value.number, reduction.bits) : decimal(value.whole);
}

} // namespace lapwing
