// What one core takes at best for operations, loads and stores: each function does so many rounds of one thing.
#include <cmath>
#include <cstdint>
#include <type_traits>

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

#if defined(__x86_64__)
#define IN_VECTOR_REGISTER "+x"
#elif defined(__aarch64__)
#define IN_VECTOR_REGISTER "+w"
#else
#define IN_VECTOR_REGISTER "+m"
#endif

namespace {

// As many as hide the latency of an operation, and fit the registers.
constexpr int CHAINS = 12;
constexpr int ELEMENTS = 1024;
constexpr int LINKS = 256; // more than wait in any core

template <class T>
struct Vector {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
};

// The compiler knows nothing of the value afterwards: it neither joins operations nor leaves them out.
template <class T>
inline void keep(T &value) {
    if constexpr (std::is_integral_v<T>) {
        asm volatile("" : "+r"(value));
    } else {
        asm volatile("" : IN_VECTOR_REGISTER(value));
    }
}

struct Sum {
    template <class T>
    static T of(T a, T b) {
        return a + b;
    }
};
struct Product {
    template <class T>
    static T of(T a, T b) {
        return a * b;
    }
};
struct Minimum {
    template <class T>
    static T of(T a, T b) {
        return a < b ? a : b;
    }
};
struct Quotient {
    template <class T>
    static T of(T a, T b) {
        return a / b;
    }
};
struct Root {
    template <class T>
    static T of(T a, T) {
        return std::sqrt(a);
    }
};

// Each operation waits for the one before.
template <class T, class Operation>
void chain(std::int64_t rounds) {
    T value = T(1), other = T(1);
    keep(other);
    for (std::int64_t k = 0; k < rounds; ++k) {
        value = Operation::of(value, other);
        keep(value);
    }
}

// Chains that begin anew: the core is at the next one while operations of the one before still wait.
void short_chains(std::int64_t rounds) {
    double other = 1;
    keep(other);
    for (std::int64_t k = 0; k < rounds; ++k) {
        double value = 1;
        keep(value);
#pragma GCC unroll 16
        for (int link = 0; link < LINKS; ++link) {
            value = Product::of(value, other);
            keep(value);
        }
    }
}

// Sums, minima and, of inexact numbers, products that wait for nothing, in turns: of integers a product takes longer
// than others.
template <class V, bool is_inexact>
void simple(std::int64_t rounds) {
    V values[CHAINS] = {}, other = V{} + 1;
    keep(other);
    for (std::int64_t k = 0; k < rounds; ++k) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; ++c) {
            values[c] = c % 3 == 0                 ? Minimum::of(values[c], other)
                        : c % 3 == 1 && is_inexact ? Product::of(values[c], other)
                                                   : Sum::of(values[c], other);
            keep(values[c]);
        }
    }
}

// The same of an operation that scalars wait for longest.
template <class T, class Operation>
void apart(std::int64_t rounds) {
    T values[CHAINS] = {}, other = T(1);
    keep(other);
    for (std::int64_t k = 0; k < rounds; ++k) {
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; ++c) {
            values[c] = Operation::of(values[c], other);
            keep(values[c]);
        }
    }
}

// The same in arrays, which compilers vectorise.
template <class T, class Operation>
void in_arrays(std::int64_t rounds) {
    alignas(64) static T from[ELEMENTS], to[ELEMENTS];
    T other = T(1);
    keep(other);
    for (int k = 0; k < ELEMENTS; ++k) from[k] = T(1.5);
    for (std::int64_t k = 0; k < rounds; ++k) {
        for (int e = 0; e < ELEMENTS; ++e) to[e] = Operation::of(from[e], other);
        asm volatile("" : : "r"(to) : "memory");
    }
}

typedef Vector<std::int64_t>::type Words;
alignas(64) Words room[CHAINS]; // fits any first-level cache

template <class T>
void load(std::int64_t rounds) {
    const T *from = reinterpret_cast<const T *>(room);
    for (std::int64_t k = 0; k < rounds; ++k) {
        asm volatile("" : "+r"(from));
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; ++c) {
            T value = from[c];
            keep(value);
        }
    }
}

template <class T>
void store(std::int64_t rounds) {
    T *to = reinterpret_cast<T *>(room), value = T{} + 1;
    keep(value);
    for (std::int64_t k = 0; k < rounds; ++k) {
        asm volatile("" : "+r"(to));
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; ++c) {
            to[c] = value;
            keep(value);
        }
        asm volatile("" : : : "memory");
    }
}

} // namespace

#define OF_TYPE(NAME, T)                                                                                               \
    void latency_add_##NAME(std::int64_t n) { chain<T, Sum>(n); }                                                      \
    void latency_mul_##NAME(std::int64_t n) { chain<T, Product>(n); }                                                  \
    void latency_min_##NAME(std::int64_t n) { chain<T, Minimum>(n); }                                                  \
    void scalar_simple_##NAME(std::int64_t n) { simple<T, std::is_floating_point_v<T>>(n); }                           \
    void vector_simple_##NAME(std::int64_t n) { simple<Vector<T>::type, std::is_floating_point_v<T>>(n); }
#define OF_INEXACT_TYPE(NAME, T)                                                                                       \
    void latency_div_##NAME(std::int64_t n) { chain<T, Quotient>(n); }                                                 \
    void latency_sqrt_##NAME(std::int64_t n) { chain<T, Root>(n); }                                                    \
    void scalar_div_##NAME(std::int64_t n) { apart<T, Quotient>(n); }                                                  \
    void scalar_sqrt_##NAME(std::int64_t n) { apart<T, Root>(n); }                                                     \
    void vector_div_##NAME(std::int64_t n) { in_arrays<T, Quotient>(n); }                                              \
    void vector_sqrt_##NAME(std::int64_t n) { in_arrays<T, Root>(n); }

extern "C" {
OF_TYPE(float32, float)
OF_TYPE(float64, double)
OF_TYPE(int32, std::int32_t)
OF_TYPE(int64, std::int64_t)
OF_INEXACT_TYPE(float32, float)
OF_INEXACT_TYPE(float64, double)

std::int64_t vector_bytes() { return VECTOR_BYTES; }
// How many operations a round of all that are done apart, and in arrays, has.
std::int64_t operations_apart() { return CHAINS; }
std::int64_t operations_in_arrays() { return ELEMENTS; }

std::int64_t links() { return LINKS; }
void short_chains_of_products(std::int64_t n) { short_chains(n); }

void vector_load(std::int64_t n) { load<Words>(n); }
void vector_store(std::int64_t n) { store<Words>(n); }
void scalar_load(std::int64_t n) { load<std::int64_t>(n); }
void scalar_store(std::int64_t n) { store<std::int64_t>(n); }

// Goes through so many bytes again and again.
void read_all(std::int64_t rounds, const char *from, std::int64_t bytes) {
    for (std::int64_t n = 0; n < rounds; ++n) {
        const Words *const words = reinterpret_cast<const Words *>(from);
        const std::int64_t count = bytes / VECTOR_BYTES;
#pragma GCC unroll 8
        for (std::int64_t k = 0; k < count; ++k) {
            Words value = words[k];
            keep(value);
        }
    }
}

void update_all(std::int64_t rounds, char *at, std::int64_t bytes) {
    for (std::int64_t n = 0; n < rounds; ++n) {
        Words *const words = reinterpret_cast<Words *>(at);
        for (std::int64_t k = 0; k < bytes / VECTOR_BYTES; ++k) words[k] = ~words[k];
        asm volatile("" : : : "memory");
    }
}
}
