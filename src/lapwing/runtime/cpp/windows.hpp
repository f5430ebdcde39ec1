// Sets up the one-sided links of a rank: shared-memory segments within a node, windows between nodes.
#pragma once

#include <mpi.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "onesided.hpp"
#include "remote.hpp"
#include "waiting.hpp"

namespace lapwing {

// Collective: every rank of the communicator makes one, and closes it.
class Windows {
public:
    Windows(const lw_program &program, MPI_Comm comm) : program_(program), comm_(comm) {
        MPI_Comm_size(comm, &ranks_);
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node_);
        find_neighbours();
        for (std::int64_t k = 0; k < program.incoming; ++k) plan_inbound(program.incoming_channels[k]);
        for (std::int64_t k = 0; k < program.outgoing; ++k) plan_outbound(program.outgoing_channels[k]);
        allocate();
        exchange_places();
    }
    Windows(const Windows &) = delete;
    Windows &operator=(const Windows &) = delete;

    // Not done by the destructor: a rank that fails must not wait for the others.
    void close() {
        MPI_Win_free(&shared_);
        if (remote_ != MPI_WIN_NULL) {
            MPI_Win_unlock_all(remote_);
            MPI_Win_free(&remote_);
            // MPICH 5.0 can lose the first nonblocking collective after this (docs/architecture/ranks.md).
            MPI_Barrier(comm_);
        }
        MPI_Comm_free(&node_);
    }

    std::unique_ptr<OneSided> transport(const Courier &courier) {
        OneSided::Inbounds incoming;
        OneSided::Outbounds outgoing;
        for (End &end : inbound_) incoming.push_back(make_inbound(end));
        for (End &end : outbound_) outgoing.push_back(make_outbound(end));
        const bool drives = remote_ != MPI_WIN_NULL;
        return std::make_unique<OneSided>(courier, std::move(incoming), std::move(outgoing), drives ? drive : nullptr,
                                          this);
    }

private:
    // Where one end of a channel keeps what the other end writes: a counter, or a byte a slot; and slots.
    struct Place {
        std::int64_t signal = 0, slots = 0;
    };

    struct End {
        Ring ring;
        int node_rank; // of the peer, on this node; or MPI_UNDEFINED
        Place here, there;
        std::vector<char> storage; // messages that the network fetches
    };

    static constexpr std::int64_t line = 64;
    static std::int64_t round_up(std::int64_t bytes) { return (bytes + line - 1) / line * line; }

    void find_neighbours() {
        MPI_Group all, node;
        MPI_Comm_group(comm_, &all);
        MPI_Comm_group(node_, &node);
        std::vector<int> numbers(static_cast<std::size_t>(ranks_));
        for (int r = 0; r < ranks_; ++r) numbers[static_cast<std::size_t>(r)] = r;
        node_rank_.resize(numbers.size());
        MPI_Group_translate_ranks(all, ranks_, numbers.data(), node, node_rank_.data());
        MPI_Group_free(&all);
        MPI_Group_free(&node);
    }

    bool is_remote(const End &end) const { return end.node_rank == MPI_UNDEFINED; }

    void plan_inbound(const lw_channel &channel) {
        End &end = inbound_.emplace_back(make_end(channel));
        std::int64_t &bytes = is_remote(end) ? remote_bytes_ : shared_bytes_;
        end.here.signal = bytes;
        bytes += is_remote(end) ? round_up(end.ring.depth()) : static_cast<std::int64_t>(sizeof(Signal));
        end.here.slots = bytes;
        if (is_remote(end) || channel.there == nullptr) bytes += end.ring.bytes();
    }

    void plan_outbound(const lw_channel &channel) {
        End &end = outbound_.emplace_back(make_end(channel));
        std::int64_t &bytes = is_remote(end) ? remote_bytes_ : shared_bytes_;
        end.here.signal = bytes;
        bytes += is_remote(end) ? round_up(end.ring.depth()) : static_cast<std::int64_t>(sizeof(Signal));
        if (is_remote(end)) end.storage.resize(static_cast<std::size_t>(end.ring.bytes()));
    }

    End make_end(const lw_channel &channel) const {
        const int node_rank = node_rank_[static_cast<std::size_t>(channel.peer)];
        // Between nodes the receiver hears of a message a step late, and the sender of its slot too.
        const std::int64_t depth = channel.depth + (node_rank == MPI_UNDEFINED ? 1 : 0);
        return {Ring(program_, channel, depth), node_rank, {}, {}, {}};
    }

    void allocate() {
        MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN);
        MPI_Info apart;
        MPI_Info_create(&apart);
        MPI_Info_set(apart, "alloc_shared_noncontig", "true");
        const int status = MPI_Win_allocate_shared(shared_bytes_ + line, 1, apart, node_, &shared_here_, &shared_);
        MPI_Info_free(&apart);
        fail_together(status, "no shared memory for " + std::to_string(shared_bytes_) + " bytes of halo segments");
        shared_here_ = align(shared_here_);
        for (std::int64_t at = 0; at < shared_bytes_; ++at) shared_here_[at] = 0;
        for (End &end : inbound_) place_signal(end);
        for (End &end : outbound_) place_signal(end);

        std::int64_t most = 0;
        MPI_Allreduce(&remote_bytes_, &most, 1, MPI_INT64_T, MPI_MAX, comm_);
        if (most > 0) allocate_remote();
        MPI_Barrier(comm_);
    }

    void allocate_remote() {
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
        const int status = MPI_Win_allocate(remote_bytes_, 1, MPI_INFO_NULL, comm_, &remote_here_, &remote_);
        fail_together(status, "no window for " + std::to_string(remote_bytes_) + " bytes of halo segments");
        if (!is_unified()) {
            throw Failure("this MPI's windows are not in the unified memory model, which engine onesided needs between "
                          "nodes. Use --engine overlap");
        }
        for (std::int64_t at = 0; at < remote_bytes_; ++at) remote_here_[at] = 0;
        MPI_Win_lock_all(MPI_MODE_NOCHECK, remote_);
    }

    bool is_unified() const {
        if (simulated) return true; // all ranks share one memory there, but the simulator does not say so
        int *model = nullptr, found = 0;
        MPI_Win_get_attr(remote_, MPI_WIN_MODEL, &model, &found);
        return found && *model == MPI_WIN_UNIFIED;
    }

    // All ranks fail together: one that went on would wait for the others.
    void fail_together(int status, const std::string &what) const {
        int worst = MPI_SUCCESS;
        int failed = status != MPI_SUCCESS;
        MPI_Allreduce(&failed, &worst, 1, MPI_INT, MPI_MAX, comm_);
        if (!worst) return;
        throw Failure(what + " (" + (failed ? error_text(status) : "on another rank") +
                      "). Use --engine overlap, which needs none");
    }

    void place_signal(End &end) {
        if (!is_remote(end)) new (shared_here_ + end.here.signal) Signal;
    }

    static char *align(char *address) {
        const auto number = reinterpret_cast<std::uintptr_t>(address);
        return address + (line - number % line) % line;
    }

    // Every end tells the other where it keeps what the other writes.
    void exchange_places() {
        constexpr int of_inbound = 2, of_outbound = 4;
        std::vector<MPI_Request> requests;
        const auto swap = [&](std::vector<End> &ends, int own_tag, int other_tag) {
            for (End &end : ends) {
                const int peer = static_cast<int>(end.ring.channel().peer);
                const int tag = message_tag(end.ring.channel());
                MPI_Irecv(&end.there, sizeof end.there, MPI_BYTE, peer, other_tag + tag, comm_,
                          &requests.emplace_back());
                MPI_Isend(&end.here, sizeof end.here, MPI_BYTE, peer, own_tag + tag, comm_, &requests.emplace_back());
            }
        };
        swap(inbound_, of_inbound, of_outbound);
        swap(outbound_, of_outbound, of_inbound);
        checked(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    }

    // The segment of a rank of this node, mapped here.
    char *segment(int node_rank) const {
        MPI_Aint bytes = 0;
        int unit = 0;
        char *base = nullptr;
        MPI_Win_shared_query(shared_, node_rank, &bytes, &unit, &base);
        return align(base);
    }

    Signal &signal_here(const End &end) const {
        return *std::launder(reinterpret_cast<Signal *>(shared_here_ + end.here.signal));
    }

    Signal &signal_there(const End &end) const {
        return *std::launder(reinterpret_cast<Signal *>(segment(end.node_rank) + end.there.signal));
    }

    std::unique_ptr<Inbound> make_inbound(End &end) {
        const std::int64_t peer = end.ring.channel().peer, depth = end.ring.depth();
        if (is_remote(end)) {
            end.ring.place(remote_here_ + end.here.slots);
            return std::make_unique<RemoteInbound>(end.ring, remote_here_ + end.here.signal,
                                                   TurnWriter(remote_, peer, end.there.signal, depth));
        }
        if (end.ring.channel().there != nullptr) {
            return std::make_unique<DirectInbound>(end.ring, signal_here(end), signal_there(end));
        }
        end.ring.place(shared_here_ + end.here.slots);
        return std::make_unique<SharedInbound>(end.ring, signal_here(end), signal_there(end));
    }

    std::unique_ptr<Outbound> make_outbound(End &end) {
        const std::int64_t peer = end.ring.channel().peer, depth = end.ring.depth();
        if (is_remote(end)) {
            end.ring.place(end.storage.data());
            return std::make_unique<RemoteOutbound>(end.ring, remote_, end.there.slots, remote_here_ + end.here.signal,
                                                    TurnWriter(remote_, peer, end.there.signal, depth));
        }
        if (end.ring.channel().there != nullptr) {
            return std::make_unique<DirectOutbound>(end.ring, signal_there(end), signal_here(end));
        }
        end.ring.place(segment(end.node_rank) + end.there.slots);
        return std::make_unique<SharedOutbound>(end.ring, signal_there(end), signal_here(end));
    }

    // A probe that finds a message makes no progress, and one may wait: that another rank has stopped. With this tag
    // nobody sends.
    static void drive(void *windows) {
        constexpr int tag_of_none = 7;
        int found = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, tag_of_none, static_cast<Windows *>(windows)->comm_, &found, MPI_STATUS_IGNORE);
    }

    const lw_program &program_;
    MPI_Comm comm_, node_ = MPI_COMM_NULL;
    int ranks_ = 0, rank_ = 0;
    std::vector<int> node_rank_;
    std::vector<End> inbound_, outbound_;
    std::int64_t shared_bytes_ = 0, remote_bytes_ = 0;
    MPI_Win shared_ = MPI_WIN_NULL, remote_ = MPI_WIN_NULL;
    char *shared_here_ = nullptr, *remote_here_ = nullptr;
};

} // namespace lapwing
