#include "communicators.hpp"

#include <numeric>

#include "next.hpp"

namespace lapwing::pmpi {

namespace {

std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

std::vector<int> world_ranks(MPI_Group group) {
    MPI_Group everyone;
    LW_NEXT(MPI_Comm_group)(MPI_COMM_WORLD, &everyone);
    int size = 0;
    LW_NEXT(MPI_Group_size)(group, &size);
    std::vector<int> local(static_cast<std::size_t>(size)), world(static_cast<std::size_t>(size));
    std::iota(local.begin(), local.end(), 0);
    LW_NEXT(MPI_Group_translate_ranks)(group, size, local.data(), everyone, world.data());
    LW_NEXT(MPI_Group_free)(&everyone);
    return world;
}

std::uint64_t hash(const std::vector<int> &ranks) {
    std::uint64_t value = ranks.size();
    for (int rank : ranks) value = mixed(value + static_cast<std::uint64_t>(rank) + 1);
    return value;
}

} // namespace

Communicator Communicators::make(MPI_Group addressed, MPI_Group own) {
    Communicator made;
    made.world = world_ranks(addressed);
    std::uint64_t value = hash(made.world);
    if (own != MPI_GROUP_NULL) value += hash(world_ranks(own)); // both sides of an intercommunicator: any order
    made.number = static_cast<std::uint32_t>(mixed(value + 0x9e3779b97f4a7c15u * ++made_[value]));
    return made;
}

Communicator &Communicators::operator[](MPI_Comm handle) {
    const auto found = communicators_.find(key_of(handle));
    if (found != communicators_.end()) return found->second;
    MPI_Group own, remote;
    LW_NEXT(MPI_Comm_group)(handle, &own);
    int inter = 0;
    LW_NEXT(MPI_Comm_test_inter)(handle, &inter);
    if (inter) LW_NEXT(MPI_Comm_remote_group)(handle, &remote);
    Communicator made = inter ? make(remote, own) : make(own, MPI_GROUP_NULL);
    LW_NEXT(MPI_Group_free)(&own);
    if (inter) LW_NEXT(MPI_Group_free)(&remote);
    return communicators_.emplace(key_of(handle), std::move(made)).first->second;
}

Communicator &Communicators::of_window(MPI_Win handle) {
    const auto found = windows_.find(key_of(handle));
    if (found != windows_.end()) return found->second;
    MPI_Group group;
    LW_NEXT(MPI_Win_get_group)(handle, &group);
    Communicator made = make(group, MPI_GROUP_NULL);
    LW_NEXT(MPI_Group_free)(&group);
    return windows_.emplace(key_of(handle), std::move(made)).first->second;
}

} // namespace lapwing::pmpi
