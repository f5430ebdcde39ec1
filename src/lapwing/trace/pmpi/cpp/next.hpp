// The MPI library's own functions. They are looked up when first called and not linked: this library is also loaded
// into the launcher and the shells between, which must not load an MPI, and into programs with another MPI than it was
// built with.
#pragma once

#include <mpi.h>

// Open MPI's constants are the addresses of objects. Weak, they are no reason to load it where nobody else does.
#ifdef OPEN_MPI
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_comm_self
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_mpi_double
#pragma weak ompi_mpi_group_null
#pragma weak ompi_mpi_int
#pragma weak ompi_mpi_op_min
#pragma weak ompi_mpi_uint64_t
#pragma weak ompi_request_null
#endif

namespace lapwing::pmpi {

// The function `name` of the libraries loaded after this one; ends the process with a message where there is none.
void *next_function(const char *name);

// The same, null where there is none.
void *find_next_function(const char *name);

template <class Type>
Type next_as(const char *name) {
    return reinterpret_cast<Type>(next_function(name));
}

} // namespace lapwing::pmpi

// The profiling entry of an MPI function: LW_NEXT(MPI_Send)(…) calls PMPI_Send.
#define LW_NEXT(function)                                                                                              \
    ([]() {                                                                                                            \
        static const auto found = lapwing::pmpi::next_as<decltype(&function)>("P" #function);                          \
        return found;                                                                                                  \
    }())
