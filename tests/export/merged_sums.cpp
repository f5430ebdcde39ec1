// Exact float sums of several ranks, put together as exported programs do: a line a sum on standard input, of the bits
// of its type, what it begins with, and terms, the ranks' own apart by "|". The sums, a line each, on standard output.
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "reductions.hpp"

const lw_nest lw_this_nest = {"sums", 0, 0, 1, LW_EXACT_WORDS, 0, nullptr, nullptr, nullptr};

int main() {
    using namespace lapwing;
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::int64_t bits = 0;
        std::string word;
        lw_scalar initial;
        words >> bits >> word;
        initial.f = std::strtod(word.c_str(), nullptr);
        Words all(LW_EXACT_WORDS);
        while (words >> word) {
            if (word == "|") {
                all.resize(all.size() + LW_EXACT_WORDS);
            } else {
                lw_exact_add(&all[all.size() - LW_EXACT_WORDS].i, std::strtod(word.c_str(), nullptr));
            }
        }
        const lw_nest_reduction sum = {"sum", "+", 'f', bits, 1, 0, -1};
        std::cout << text_of(sum, merged(lw_this_nest, sum, all, initial)) << "\n";
    }
}
