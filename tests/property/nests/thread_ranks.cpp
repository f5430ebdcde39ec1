// Ranks as threads of one process, without MPI: the one-sided transport over shared memory, driven by polling or by
// helper threads, on arrays in memory or on disk. Built with -fsanitize=thread, so that every hand-over that is not one
// is found.
#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "helper.hpp"
#include "onesided.hpp"
#include "run.hpp"

namespace lapwing {
namespace {

// The two counters of a channel, and its slots if it is not direct.
struct Wires {
    Signal arrived, finished;
    std::vector<char> slots;
};

using Name = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>; // source, target, lag, sweep of a pass
using AllWires = std::map<Name, std::unique_ptr<Wires>>;

AllWires wires_between(const lw_program *programs, std::int64_t ranks) {
    AllWires all;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const lw_program &program = programs[rank];
        for (std::int64_t k = 0; k < program.incoming; ++k) {
            const lw_channel &channel = program.incoming_channels[k];
            auto &wires = all[{channel.peer, rank, channel.lag, channel.pass_sweep}];
            wires = std::make_unique<Wires>();
            wires->slots.resize(static_cast<std::size_t>(Ring(program, channel, channel.depth).bytes()));
        }
    }
    return all;
}

// As Windows makes them for ranks of one node.
OneSided transport_of(const Courier &courier, std::int64_t rank, const AllWires &all) {
    const lw_program &program = courier.program();
    OneSided::Inbounds incoming;
    OneSided::Outbounds outgoing;
    for (std::int64_t k = 0; k < program.incoming; ++k) {
        const lw_channel &channel = program.incoming_channels[k];
        Wires &wires = *all.at({channel.peer, rank, channel.lag, channel.pass_sweep});
        Ring ring(program, channel, channel.depth);
        ring.place(wires.slots.data());
        if (channel.there != nullptr) {
            incoming.push_back(std::make_unique<DirectInbound>(ring, wires.arrived, wires.finished));
        } else {
            incoming.push_back(std::make_unique<SharedInbound>(ring, wires.arrived, wires.finished));
        }
    }
    for (std::int64_t k = 0; k < program.outgoing; ++k) {
        const lw_channel &channel = program.outgoing_channels[k];
        Wires &wires = *all.at({rank, channel.peer, channel.lag, channel.pass_sweep});
        Ring ring(program, channel, channel.depth);
        ring.place(wires.slots.data());
        if (channel.there != nullptr) {
            outgoing.push_back(std::make_unique<DirectOutbound>(ring, wires.arrived, wires.finished));
        } else {
            outgoing.push_back(std::make_unique<SharedOutbound>(ring, wires.arrived, wires.finished));
        }
    }
    return {courier, std::move(incoming), std::move(outgoing), nullptr, nullptr};
}

// What a rank has been told of its passes, by whichever of its threads: it asks before it writes one. Relaxed: the
// rank's threads are not to be ordered by what they tell.
struct Passes {
    std::atomic<std::int64_t> computed{0}, writable{0};
};

constexpr std::size_t most_ranks = 8;
std::array<Passes, most_ranks> passes_of_ranks;

template <std::size_t rank>
int notice(std::int64_t event, std::int64_t pass, std::uint64_t) {
    auto &[computed, writable] = passes_of_ranks[rank];
    constexpr auto relaxed = std::memory_order_relaxed;
    if (event == LW_PASS_COMPUTED && pass != computed.fetch_add(1, relaxed)) {
        throw Failure("passes are computed out of order");
    }
    if (event == LW_PASS_WRITTEN && pass >= writable.load(relaxed)) throw Failure("a pass is written that may not be");
    if (event != LW_PASS_MAY_BE_WRITTEN) return 1;
    if (pass > computed.load(relaxed) || looks_away()) return 0;
    writable.fetch_add(1, relaxed);
    return 1;
}

template <std::size_t... rank>
constexpr auto notices_of(std::index_sequence<rank...>) {
    return std::array{notice<rank>...};
}
constexpr auto notices = notices_of(std::make_index_sequence<most_ranks>());

int run_rank(const Run &run, std::int64_t rank, const AllWires &all) {
    Courier courier(run.program, run.modules, run.tiles, false);
    Trace trace(run.kept.capacity, 0, 0);
    OneSided transport = transport_of(courier, rank, all);
    if (run.options.engine == LW_HELPER) {
        Trace helper_trace(run.kept.capacity, 0, 1);
        HelperThread progress(run.program, transport, trace, helper_trace, run.rules(), run.options.helper_cpu);
        return run.execute(courier, progress, trace);
    }
    Polling progress(transport, trace, run.rules());
    return run.execute(courier, progress, trace);
}

} // namespace
} // namespace lapwing

// Runs the programs of all ranks at once. disks: of each rank, or null; with asks they ask before passes are written.
// Returns LW_DONE, or LW_FAILED and why in failure.
extern "C" int lw_run_threads(std::int64_t ranks, const lw_program *programs, const lw_module *module,
                              lw_tile *const *tiles, const lw_options *options, const lw_disk *disks, std::int64_t asks,
                              char *failure, std::int64_t size) {
    using namespace lapwing;
    const AllWires all = wires_between(programs, ranks);
    for (auto &[computed, writable] : passes_of_ranks) computed = writable = 0;
    std::vector<std::string> failures(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            lw_event events[64];
            lw_trace trace{events, 64, 0};
            lw_times times{};
            lw_options own = *options;
            lw_disk disk{};
            if (disks != nullptr) {
                disk = disks[rank];
                disk.notice = asks != 0 ? notices.at(static_cast<std::size_t>(rank)) : nullptr;
                own.disk = &disk;
            }
            const Run run{programs[rank], module, tiles[rank], own, nullptr, trace, times};
            try {
                const int status = run_rank(run, rank, all);
                if (status != LW_DONE) failures[static_cast<std::size_t>(rank)] = "status " + std::to_string(status);
            } catch (const std::exception &error) {
                failures[static_cast<std::size_t>(rank)] = error.what();
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    std::string text;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const std::string &what = failures[static_cast<std::size_t>(rank)];
        if (!what.empty()) text += "rank " + std::to_string(rank) + ": " + what + "\n";
    }
    text.copy(failure, static_cast<std::size_t>(size) - 1);
    return text.empty() ? LW_DONE : LW_FAILED;
}
