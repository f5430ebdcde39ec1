// Calls of MPI whose errors end the run with a line that says why: mpi4py has errors returned, not fatal.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "simulated.hpp"
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

// Whether all requests are complete; asking makes MPI progress.
inline bool are_complete(std::vector<MPI_Request> &requests) {
    int done = 0;
    checked(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
    if (!done) note_open(requests);
    return done != 0;
}

} // namespace lapwing
