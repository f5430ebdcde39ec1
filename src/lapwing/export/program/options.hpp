// The command line of an exported program.
#pragma once

#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lapwing.h"
#include "simulated.hpp"
#include "waiting.hpp"

namespace lapwing {

constexpr std::array engines = {"blocking", "overlap", "onesided", "helper"}; // by lw_engine

struct Options {
    std::string folder = ".";
    std::int64_t engine = -1; // as planned
    bool dry = false;         // in a simulated cluster: nothing is computed, and no array read or written
    bool help = false;
};

inline double seconds(const std::string &option, const std::string &text) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0)) throw Failure(option + " " + text + ": expected seconds");
    return value;
}

inline std::int64_t engine_number(const std::string &name) {
    for (std::size_t k = 0; k < engines.size(); ++k) {
        if (name == engines[k]) return static_cast<std::int64_t>(k);
    }
    throw Failure("--engine " + name + ": expected blocking, overlap, onesided or helper");
}

#ifdef LAPWING_SIMULATED

// "0:6e-5,1000000:1.006e-2": bytes and seconds.
inline Curve curve(const std::string &option, const std::string &text) {
    std::vector<std::pair<double, double>> samples;
    std::stringstream stream(text);
    double bytes = 0, seconds = 0;
    char colon = ':', comma = ',';
    while (comma == ',' && stream >> bytes >> colon >> seconds && colon == ':') {
        const bool ascends = samples.empty() || bytes > samples.back().first;
        if (!ascends || bytes < 0 || seconds < 0) break;
        samples.emplace_back(bytes, seconds);
        if (!(stream >> comma)) return Curve(std::move(samples));
    }
    throw Failure(option + " " + text + ": expected BYTES:SECONDS[,BYTES:SECONDS]..., with ascending bytes");
}

// Takes in an option that says what something costs a simulated CPU.
template <class Value>
bool is_cost(const std::string &word, Value value) {
    if (word == "--seconds-per-point") {
        costs().seconds_per_point = seconds(word, value());
    } else if (word == "--send-cpu") {
        costs().send = curve(word, value());
    } else if (word == "--receive-cpu") {
        costs().receive = curve(word, value());
    } else {
        return false;
    }
    return true;
}

#else

template <class Value>
bool is_cost(const std::string &, Value) {
    return false;
}

#endif

inline Options parse(int count, char **words) {
    Options options;
    for (int k = 1; k < count; ++k) {
        const std::string word = words[k];
        const auto value = [&]() -> std::string {
            if (++k == count) throw Failure(word + ": expected a value");
            return words[k];
        };
        if (word == "-h" || word == "--help") {
            options.help = true;
        } else if (word == "--dir") {
            options.folder = value();
        } else if (word == "--engine") {
            options.engine = engine_number(value());
        } else if (simulated && word == "--dry") {
            options.dry = true;
        } else if (!is_cost(word, value)) {
            throw Failure(word + ": unknown; --help lists the options");
        }
    }
    return options;
}

inline std::string usage(const char *name) {
    std::string text = std::string("mpiexec -n RANKS ") + name +
                       " [--dir DIR] [--engine blocking|overlap|onesided|helper]\n"
                       "  DIR holds program.bin and data/; results go to DIR/out/ (default: the working directory)\n";
    if (simulated) {
        text += "What things cost a simulated CPU, in seconds (default: nothing):\n"
                "  --seconds-per-point S   one iteration\n"
                "  --send-cpu B:S[,...]    sending a message of B bytes; in between lines are straight\n"
                "  --receive-cpu B:S[,...] receiving one\n"
                "  --dry                   compute nothing, read and write no array: only simulated time counts\n";
    }
    return text;
}

} // namespace lapwing
