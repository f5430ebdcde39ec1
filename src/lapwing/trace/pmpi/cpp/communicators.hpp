// Who a communicator's ranks are in MPI_COMM_WORLD, and a number for it that all its ranks agree on.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lapwing::pmpi {

struct Communicator {
    std::uint32_t number;
    std::uint32_t collectives = 0;
    std::vector<int> world; // by rank in the communicator (of the remote group, for an intercommunicator)

    int world_rank(int rank) const {
        return rank >= 0 && rank < static_cast<int>(world.size()) ? world[static_cast<std::size_t>(rank)] : -1;
    }
};

// Handles are integers or pointers, depending on the MPI.
template <class Handle>
std::uint64_t key_of(Handle handle) {
    return (std::uint64_t)handle;
}

class Communicators {
public:
    // All ranks of a communicator create those with the same ranks in the same order, so the order numbers them.
    Communicator &operator[](MPI_Comm handle);
    Communicator &of_window(MPI_Win handle);
    // By the handle's key, -1 when the communicator has been freed.
    int world_rank(std::uint64_t key, int rank) const {
        const auto found = communicators_.find(key);
        return found == communicators_.end() ? -1 : found->second.world_rank(rank);
    }
    void created(MPI_Comm handle) { (*this)[handle]; }
    void freed(MPI_Comm handle) { communicators_.erase(key_of(handle)); }
    void freed_window(MPI_Win handle) { windows_.erase(key_of(handle)); }

private:
    Communicator make(MPI_Group addressed, MPI_Group own);

    std::unordered_map<std::uint64_t, Communicator> communicators_, windows_;
    std::unordered_map<std::uint64_t, std::uint32_t> made_; // how many there were, by the ranks in them
};

} // namespace lapwing::pmpi
