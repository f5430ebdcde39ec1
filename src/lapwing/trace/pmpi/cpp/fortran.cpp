// Fortran's routines as the program calls them. They note the address of the calling line and go on to the library's
// own routine, which comes back to this library through the C function (MPICH: MPI_Send, Open MPI: PMPI_Send).
//
// All arguments are addresses, with the mpi_f08 module too (descriptors), so the number of them is all there is to
// know.
#include "call.hpp"
#include "next.hpp"

namespace {

using namespace lapwing::pmpi;

class Caller {
public:
    explicit Caller(void *address) : outermost_(fortran_caller == nullptr) {
        if (outermost_) fortran_caller = address;
    }
    ~Caller() {
        if (outermost_) fortran_caller = nullptr;
    }
    Caller(const Caller &) = delete;
    Caller &operator=(const Caller &) = delete;

private:
    bool outermost_;
};

} // namespace

// Hundreds of functions that do nothing but call others: to optimise them takes seconds, and gains nothing.
#pragma GCC optimize("O0")

#define LW_PARAMETERS_1 void *a
#define LW_GIVEN_1 a
#define LW_PARAMETERS_2 LW_PARAMETERS_1, void *b
#define LW_GIVEN_2 LW_GIVEN_1, b
#define LW_PARAMETERS_3 LW_PARAMETERS_2, void *c
#define LW_GIVEN_3 LW_GIVEN_2, c
#define LW_PARAMETERS_4 LW_PARAMETERS_3, void *d
#define LW_GIVEN_4 LW_GIVEN_3, d
#define LW_PARAMETERS_5 LW_PARAMETERS_4, void *e
#define LW_GIVEN_5 LW_GIVEN_4, e
#define LW_PARAMETERS_6 LW_PARAMETERS_5, void *f
#define LW_GIVEN_6 LW_GIVEN_5, f
#define LW_PARAMETERS_7 LW_PARAMETERS_6, void *g
#define LW_GIVEN_7 LW_GIVEN_6, g
#define LW_PARAMETERS_8 LW_PARAMETERS_7, void *h
#define LW_GIVEN_8 LW_GIVEN_7, h
#define LW_PARAMETERS_9 LW_PARAMETERS_8, void *i
#define LW_GIVEN_9 LW_GIVEN_8, i
#define LW_PARAMETERS_10 LW_PARAMETERS_9, void *j
#define LW_GIVEN_10 LW_GIVEN_9, j
#define LW_PARAMETERS_11 LW_PARAMETERS_10, void *k
#define LW_GIVEN_11 LW_GIVEN_10, k
#define LW_PARAMETERS_12 LW_PARAMETERS_11, void *l
#define LW_GIVEN_12 LW_GIVEN_11, l
#define LW_PARAMETERS_13 LW_PARAMETERS_12, void *m
#define LW_GIVEN_13 LW_GIVEN_12, m

#define LW_SYMBOL(symbol, arguments)                                                                                   \
    extern "C" __attribute__((visibility("default"))) void symbol(LW_PARAMETERS_##arguments) {                         \
        static const auto next = next_as<void (*)(LW_PARAMETERS_##arguments)>(#symbol);                                \
        const Caller caller(__builtin_extract_return_addr(__builtin_return_address(0)));                               \
        next(LW_GIVEN_##arguments);                                                                                    \
    }

// A routine under the names that compilers and the module mpi_f08 give it.
#define LW_ROUTINE(lower, upper, arguments)                                                                            \
    LW_SYMBOL(lower, arguments)                                                                                        \
    LW_SYMBOL(lower##_, arguments)                                                                                     \
    LW_SYMBOL(lower##__, arguments)                                                                                    \
    LW_SYMBOL(upper, arguments)                                                                                        \
    LW_SYMBOL(lower##_f08_, arguments)                                                                                 \
    LW_SYMBOL(lower##_f08ts_, arguments)

#include "fortran.def"
