// The disk ring: while one slab is computed, later ones are read and earlier ones written back (P3, section 2).
//
// Slabs are numbered over all passes: number = pass * slabs + slab. Each is read, computed on and written, in order,
// and takes the memory of the one `slots` before it:
//
//     written <= released <= computed + ... <= loaded <= opened for reading <= written + slots
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "delays.hpp"
#include "disk_queue.hpp"
#include "disk_request.hpp"
#include "mirrored_memory.hpp"
#include "passes.hpp"
#include "storage.hpp"

namespace lapwing {

class DiskRing final : public Storage {
public:
    // arrays: the tile's; the bases of the streamed ones are set before every step.
    DiskRing(const lw_disk &disk, const lw_program &program, lw_array *arrays)
        : disk_(disk), passes_(program), arrays_(arrays), to_write_(disk.passes * disk.slabs),
          writable_(disk.notice == nullptr ? disk.passes : 0) {
        for (std::int64_t k = 0; k < disk.streamed; ++k) {
            const lw_streamed &array = disk.arrays[k];
            memory_.emplace_back(static_cast<std::size_t>(array.ring_rows * array.row_bytes));
        }
        for (Flow *flow : {&reading_, &writing_}) flow->sums.resize(static_cast<std::size_t>(disk.passes));
    }
    DiskRing(const DiskRing &) = delete;
    DiskRing &operator=(const DiskRing &) = delete;

    ~DiskRing() override {
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        wake_workers();
        for (std::thread &thread : threads_) thread.join();
    }

    void start() override {
        start_movers();
        if (disk_.notice == nullptr) return;
        threads_.emplace_back([this] { run_thread([this](auto &lock) { notice_passes(lock); }); });
    }

    bool is_ready(Position at) override {
        const std::int64_t pass = passes_.pass_of(at.sweep);
        const std::int64_t needed = pass * disk_.slabs + disk_.slabs_before[at.step];
        if (!abandoned_ && reading_.done.load(std::memory_order_acquire) < needed) {
            rethrow();
            return false;
        }
        for (std::int64_t k = 0; k < disk_.streamed; ++k) {
            const lw_streamed &array = disk_.arrays[k];
            const std::int64_t row = array.first_rows[at.step];
            arrays_[array.position].base = place(k, pass, row) - row * array.row_bytes + array.origin;
        }
        return true;
    }

    void rest() override {
        std::unique_lock lock(mutex_);
        progress_.wait_for(lock, std::chrono::microseconds(200));
    }

    void release(Position at, Trace &trace) override {
        const std::int64_t pass = passes_.pass_of(at.sweep);
        if (abandoned_ || at.sweep + 1 < passes_.end_of(pass)) return;
        dawdle();
        const std::int64_t released = pass * disk_.slabs + disk_.slabs_after[at.step];
        if (released == (pass + 1) * disk_.slabs) notice(LW_PASS_COMPUTED, pass, read_sum(pass));
        {
            const std::lock_guard lock(mutex_);
            released_ = released;
            record_moved(trace);
        }
        wake_workers();
    }

    // Earlier passes are written to their end, and no others: every rank writes those before the one in which the first
    // rank stopped. Without them others may not write the next, and would wait for ever, as this rank would for theirs.
    void abandon(std::int64_t sweep) override {
        abandoned_ = true;
        const std::int64_t counts = passes_.pass_of(sweep) * disk_.slabs;
        if (counts >= to_write_) return; // only this thread changes it
        {
            const std::lock_guard lock(mutex_);
            to_write_ = counts;
        }
        wake_workers();
    }

    bool has_finished(Trace &trace) override {
        rethrow();
        const std::lock_guard lock(mutex_);
        if (!is_written() || !is_noticed()) return false;
        record_moved(trace);
        trace.times().disk_busy = busy_;
        return true;
    }

private:
    static constexpr std::chrono::milliseconds question_interval{1};

    // A slab that is being moved, or has been.
    struct Slab {
        Direction direction;
        std::int64_t number;
        std::vector<DiskRequest> requests = {};
        std::size_t taken = 0, finished = 0;
        std::int64_t bytes = 0;
        double begin = 0, end = 0;
        const char *const *files = nullptr;
        const std::uint64_t *keys = nullptr;
    };

    // All slabs that go one way, in order.
    struct Flow {
        const Direction direction;
        std::deque<Slab> moving = {}; // opened, and not yet moved with all before it
        std::atomic<std::int64_t> done{0};
        std::int64_t opened = 0;
        std::vector<std::uint64_t> sums = {}; // a pass
    };

    struct Task {
        Slab *slab = nullptr;
        DiskRequest request = {};
    };

    void start_movers() {
#ifdef LAPWING_LIBURING
        if (disk_.direct != 0) queue_ = std::make_unique<DiskQueue>(static_cast<unsigned>(disk_.queue_depth));
        if (queue_ != nullptr && queue_->is_open()) {
            threads_.emplace_back([this] { run_thread([this](auto &lock) { work_with_queue(lock); }); });
            return;
        }
#endif
        for (std::int64_t k = 0; k < disk_.queue_depth; ++k) {
            threads_.emplace_back([this] { run_thread([this](auto &lock) { work(lock); }); });
        }
    }

    void wake_workers() {
        work_.notify_all();
#ifdef LAPWING_LIBURING
        if (queue_ != nullptr) queue_->wake();
#endif
    }

    bool is_written() const { return writing_.done.load(std::memory_order_relaxed) >= to_write_; }
    bool is_noticed() const { return disk_.notice == nullptr || noticed_ * disk_.slabs >= to_write_; }
    bool is_over() const { return stopped_ || is_written(); }

    void work(std::unique_lock<std::mutex> &lock) {
        Mover mover(disk_.direct != 0);
        while (!is_over()) {
            const std::optional<Task> task = next();
            if (!task) {
                work_.wait(lock);
                continue;
            }
            lock.unlock();
            dawdle();
            mover.move(task->request, place(*task), task->slab->direction, task->slab->files);
            const std::uint64_t sum = checksum(*task);
            lock.lock();
            finish(*task, sum);
        }
    }

#ifdef LAPWING_LIBURING
    void work_with_queue(std::unique_lock<std::mutex> &lock) {
        Mover mover(true); // for what does not lie as the system needs it, and what it moved in part
        for (std::int64_t k = 0; k < disk_.queue_depth; ++k) unused_.push_back(&tickets_.emplace_back());
        const auto move = [&](const Task &task) {
            mover.move(task.request, place(task), task.slab->direction, task.slab->files);
        };
        while (!is_over()) {
            while (!queue_->is_full()) {
                const std::optional<Task> task = next();
                if (!task) break;
                Task *const ticket = unused_.back();
                *ticket = *task;
                lock.unlock();
                dawdle();
                const Slab &slab = *task->slab;
                const bool is_under_way =
                    queue_->submit(task->request, place(*task), slab.direction, slab.files, ticket);
                if (!is_under_way) move(*task);
                const std::uint64_t sum = is_under_way ? 0 : checksum(*task);
                lock.lock();
                if (is_under_way) {
                    unused_.pop_back();
                } else {
                    finish(*task, sum);
                }
            }
            if (is_over()) break;
            lock.unlock();
            const auto [done, whole] = queue_->next_done();
            Task *const ticket = static_cast<Task *>(done);
            if (ticket != nullptr && !whole) move(*ticket);
            const std::uint64_t sum = ticket == nullptr ? 0 : checksum(*ticket);
            lock.lock();
            if (ticket != nullptr) {
                finish(*ticket, sum);
                unused_.push_back(ticket);
            }
        }
    }
#endif

    char *place(const Task &task) const {
        const lw_extent &extent = *task.request.extent;
        return place(extent.array, task.slab->number / disk_.slabs, extent.row) + extent.column;
    }

    // Of what was read, or has just been written and is not touched before its memory is used again.
    std::uint64_t checksum(const Task &task) const {
        const lw_extent &extent = *task.request.extent;
        if (disk_.notice == nullptr || extent.file < 0 || disk_.arrays[extent.array].written == 0) return 0;
        thread_local std::vector<iovec> runs;
        gather(task.request, place(task), runs);
        const std::int64_t offset = place_of(extent, task.request.first).file + task.request.skip;
        return Checksum::of(runs, task.slab->keys[extent.file], offset);
    }

    void finish(const Task &task, std::uint64_t sum) {
        Flow &flow = task.slab->direction == Direction::reading ? reading_ : writing_;
        flow.sums[static_cast<std::size_t>(task.slab->number / disk_.slabs)] += sum;
        ++task.slab->finished;
        settle(flow);
    }

    // What a thread does, under the lock but where it lets go of it.
    template <class Work>
    void run_thread(Work work) {
        std::unique_lock lock(mutex_);
        try {
            work(lock);
        } catch (...) {
            if (!lock.owns_lock()) lock.lock();
            if (!failure_) failure_ = std::current_exception();
            failed_.store(true, std::memory_order_release);
            stopped_ = true;
        }
        lock.unlock();
        wake_workers();
        progress_.notify_all();
    }

    std::uint64_t read_sum(std::int64_t pass) {
        const std::lock_guard lock(mutex_);
        return reading_.sums[static_cast<std::size_t>(pass)];
    }

    int notice(lw_event_of_pass event, std::int64_t pass, std::uint64_t sum) {
        return disk_.notice == nullptr ? 1 : disk_.notice(event, pass, sum);
    }

    // Says which passes are written, and asks whether the next one may be, where that is what writing waits for. A
    // thread of its own does: other ranks may wait for what it says while this one waits for their messages.
    void notice_passes(std::unique_lock<std::mutex> &lock) {
        while (!stopped_ && !is_noticed()) {
            const bool has_written = writing_.done.load(std::memory_order_relaxed) >= (noticed_ + 1) * disk_.slabs;
            const bool asks = !has_written && std::min(released_, to_write_) > writable_ * disk_.slabs;
            if (!has_written && !asks) {
                work_.wait(lock);
                continue;
            }
            const std::uint64_t sum = has_written ? writing_.sums[static_cast<std::size_t>(noticed_)] : 0;
            lock.unlock();
            const int answer =
                has_written ? notice(LW_PASS_WRITTEN, noticed_, sum) : notice(LW_PASS_MAY_BE_WRITTEN, writable_, 0);
            lock.lock();
            if (has_written) {
                ++noticed_;
                progress_.notify_all();
            } else if (answer != 0) {
                ++writable_;
                wake_workers();
            } else {
                work_.wait_for(lock, question_interval);
            }
        }
    }

    // Reading comes first: computing waits for it. Writing has its turn when the ring is full; where there is nothing
    // to write that makes room at once, and reading has its turn again.
    std::optional<Task> next() {
        for (bool opened = true; opened;) {
            opened = false;
            for (Flow *flow : {&reading_, &writing_}) {
                for (;;) {
                    if (!flow->moving.empty()) {
                        Slab &last = flow->moving.back();
                        if (last.taken < last.requests.size()) return Task{&last, last.requests[last.taken++]};
                    }
                    if (!may_open(*flow)) break;
                    open_next(*flow);
                    opened = true;
                }
            }
        }
        return std::nullopt;
    }

    bool may_open(const Flow &flow) const {
        if (flow.direction == Direction::writing) {
            return flow.opened < std::min({released_, writable_ * disk_.slabs, to_write_});
        }
        const std::int64_t written = writing_.done.load(std::memory_order_relaxed);
        return flow.opened < std::min(to_write_, written + std::min(disk_.slots, disk_.slabs));
    }

    void open_next(Flow &flow) {
        Slab slab{flow.direction, flow.opened++};
        const std::int64_t pass = slab.number / disk_.slabs, at = slab.number % disk_.slabs;
        const bool in = flow.direction == Direction::reading;
        const lw_generation &generation = (in ? disk_.reads : disk_.writes)[pass];
        slab.files = generation.files;
        slab.keys = generation.keys;
        for (const lw_generation *part : {&generation, disk_.frontiers}) {
            for (std::int64_t k = part->first_extent[at]; k < part->first_extent[at + 1]; ++k) {
                cut(part->extents[k], disk_.request_bytes, slab.requests);
            }
            if (part == &generation) {
                for (const DiskRequest &request : slab.requests) slab.bytes += request.bytes;
            }
        }
        slab.begin = now();
        if (reading_.moving.empty() && writing_.moving.empty()) busy_since_ = slab.begin;
        flow.moving.push_back(std::move(slab));
        settle(flow); // it may have nothing to move
    }

    void record_moved(Trace &trace) {
        for (const Slab &slab : moved_) {
            const Position at{passes_.first_of(slab.number / disk_.slabs), slab.number % disk_.slabs};
            const bool in = slab.direction == Direction::reading;
            trace.record(in ? LW_READ : LW_WRITE, {at, -1, slab.bytes}, slab.begin, slab.end);
            (in ? trace.times().read_bytes : trace.times().written_bytes) += slab.bytes;
        }
        moved_.clear();
    }

    // Slabs that are moved make way.
    void settle(Flow &flow) {
        std::int64_t done = flow.done.load(std::memory_order_relaxed);
        bool moved = false;
        while (!flow.moving.empty() && flow.moving.front().finished == flow.moving.front().requests.size()) {
            Slab &slab = flow.moving.front();
            slab.end = now();
            slab.requests.clear();
            moved_.push_back(std::move(slab));
            flow.moving.pop_front();
            ++done;
            moved = true;
        }
        if (!moved) return;
        if (reading_.moving.empty() && writing_.moving.empty()) busy_ += now() - busy_since_;
        flow.done.store(done, std::memory_order_release);
        work_.notify_all();
        progress_.notify_all();
    }

    void rethrow() {
        if (!failed_.load(std::memory_order_acquire)) return;
        const std::lock_guard lock(mutex_);
        std::rethrow_exception(failure_);
    }

    // Where a row of a pass lies.
    char *place(std::int64_t array, std::int64_t pass, std::int64_t row) const {
        const lw_streamed &streamed = disk_.arrays[array];
        std::int64_t in_ring = (row + pass * streamed.turn) % streamed.ring_rows;
        if (in_ring < 0) in_ring += streamed.ring_rows;
        return memory_[static_cast<std::size_t>(array)].base() + in_ring * streamed.row_bytes;
    }

    const lw_disk &disk_;
    const Passes passes_;
    lw_array *arrays_;
    std::vector<MirroredMemory> memory_;
    std::vector<std::thread> threads_;
    bool abandoned_ = false;

    std::mutex mutex_; // of all that follows, but for what is atomic
    std::condition_variable work_, progress_;
    Flow reading_{Direction::reading}, writing_{Direction::writing};
    std::int64_t released_ = 0, to_write_; // slabs
    std::int64_t writable_;                // passes that may be written
    std::int64_t noticed_ = 0;             // passes that are known to be written
    std::vector<Slab> moved_;              // not yet recorded
    double busy_ = 0, busy_since_ = 0;
    bool stopped_ = false;
    std::exception_ptr failure_;
#ifdef LAPWING_LIBURING
    std::unique_ptr<DiskQueue> queue_;
    std::deque<Task> tickets_;
    std::vector<Task *> unused_;
#endif
    std::atomic<bool> failed_{false};
};

} // namespace lapwing
