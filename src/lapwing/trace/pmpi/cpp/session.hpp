// The recording from MPI_Init to MPI_Finalize.
#pragma once

namespace lapwing::pmpi {

// MPI functions called while one of these lives are not recorded.
class Quiet {
public:
    Quiet();
    ~Quiet();
    Quiet(const Quiet &) = delete;
    Quiet &operator=(const Quiet &) = delete;
};

// Ends the process, with a message, if its MPI has other types than the one this library was built with.
void refuse_other_mpi();

void begin_session();
void end_session();
void abort_session();

} // namespace lapwing::pmpi
