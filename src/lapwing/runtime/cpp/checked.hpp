// Calls of MPI whose errors end the run with a line that says why: mpi4py has errors returned, not fatal.
#pragma once

#include <mpi.h>

#include <string>

#include "waiting.hpp"

namespace lapwing {

inline std::string error_text(int status) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(status, text, &length);
    return std::string(text, static_cast<std::size_t>(length));
}

inline void checked(int status) {
    if (status != MPI_SUCCESS) throw Failure("MPI failed: " + error_text(status));
}

} // namespace lapwing
