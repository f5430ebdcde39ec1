#include "call.hpp"

#include "session.hpp"

#include <atomic>

namespace lapwing::pmpi {

namespace {

thread_local int depth = 0;
thread_local std::int32_t last_poll = -1; // this thread's last record, if it was an unsuccessful poll
std::atomic<int> threads{0};

using Lock = std::lock_guard<std::mutex>;

} // namespace

int thread_number() {
    thread_local const int number = threads++;
    return number;
}

thread_local void *fortran_caller = nullptr;

Requests &requests() {
    static Requests *one = new Requests;
    return *one;
}

Communicators &communicators() {
    static Communicators *one = new Communicators;
    return *one;
}

std::int64_t size_of(std::int64_t count, MPI_Datatype type) {
    if (type == MPI_DATATYPE_NULL) return 0;
    MPI_Count size = 0;
    LW_NEXT(MPI_Type_size_x)(type, &size);
    return count * static_cast<std::int64_t>(size);
}

Quiet::Quiet() { ++depth; }
Quiet::~Quiet() { --depth; }

Call::Call(const Function &function, void *address)
    : function_(function), address_(fortran_caller != nullptr ? fortran_caller : address) {
    if (depth++ != 0 || !recorder().on()) return;
    recorded_ = true;
    polled_ = function.role == Role::poll;
    enter();
}

void Call::enter() {
    const Lock lock(recorder().mutex);
    begin_ = now();
    site_ = recorder().site(function_, address_);
    if (!polled_) make_record(); // polls are recorded afterwards: most join the one before
}

void Call::make_record() {
    Record record{};
    record.begin = begin_;
    record.kind = static_cast<std::uint8_t>(Kind::call);
    record.thread = static_cast<std::uint8_t>(thread_number());
    record.site = site_;
    record.peer = record.tag = record.finish = -1;
    record.start = 1;
    record_ = recorder().append(record);
    if (record_ < 0) ++recorder().header().dropped;
    last_poll = -1;
}

Call::~Call() {
    --depth;
    if (!recorded_) return;
    const double end = end_ != 0 ? end_ : now();
    const Lock lock(recorder().mutex);
    if (!recorder().on()) return; // MPI_Finalize and MPI_Abort close the recording
    SiteTotals &totals = recorder().totals(site_);
    ++totals.calls;
    totals.seconds += end - begin_;
    end_ = end;
    if (polled_ && joins_last_poll()) return;
    if (record_ < 0) return;
    Record &record = recorder().at(record_);
    record.end = end;
    record.seconds = end - begin_;
}

bool Call::joins_last_poll() {
    if (last_poll >= 0 && recorder().at(last_poll).site == site_) {
        Record &record = recorder().at(last_poll);
        record.end = end_;
        record.seconds += end_ - begin_;
        ++record.start;
        return true;
    }
    make_record();
    last_poll = record_;
    return false;
}

void Call::found() {
    const Lock lock(recorder().mutex);
    polled_ = false;
    make_record();
}

// --- what a call starts -------------------------------------------------------

Operation Call::describe_send(MPI_Comm comm, int destination, int tag, std::int64_t bytes) {
    const Lock lock(recorder().mutex);
    Communicator &on = communicators()[comm];
    return {Kind::send, key_of(comm), on.number, 0, on.world_rank(destination), tag, bytes};
}

Operation Call::describe_receive(MPI_Comm comm, int source, int tag) {
    const Lock lock(recorder().mutex);
    Communicator &on = communicators()[comm];
    return {Kind::receive, key_of(comm), on.number, 0, on.world_rank(source), tag, 0};
}

void Call::send(MPI_Comm comm, int destination, int tag, std::int64_t bytes) {
    if (destination != MPI_PROC_NULL) start(describe_send(comm, destination, tag, bytes));
}

void Call::receive(MPI_Comm comm, int source, int tag) {
    if (source == MPI_PROC_NULL) return;
    start(describe_receive(comm, source, tag));
    receive_ = started_;
    received_on_ = key_of(comm);
    has_receive_ = true;
}

void Call::collective(MPI_Comm comm, int root, std::int64_t bytes) {
    Operation operation{};
    {
        const Lock lock(recorder().mutex);
        Communicator &on = communicators()[comm];
        operation = {Kind::collective, key_of(comm), on.number, on.collectives++, on.world_rank(root), -1, bytes};
    }
    start(operation);
}

void Call::fence(MPI_Win window) {
    Operation operation{};
    {
        const Lock lock(recorder().mutex);
        Communicator &on = communicators().of_window(window);
        operation = {Kind::collective, 0, on.number, on.collectives++, -1, -1, 0};
    }
    start(operation);
}

void Call::one_sided(MPI_Win window, int target, std::int64_t bytes) {
    if (target == MPI_PROC_NULL) return;
    Operation operation{};
    {
        const Lock lock(recorder().mutex);
        Communicator &on = communicators().of_window(window);
        operation = {Kind::one_sided, 0, on.number, 0, on.world_rank(target), -1, bytes};
    }
    start(operation);
    const Lock lock(recorder().mutex);
    if (started_ >= 0) requests().one_sided[key_of(window)].push_back(started_);
}

void Call::start(const Operation &operation) {
    const Lock lock(recorder().mutex);
    operation_ = operation;
    has_operation_ = true;
    recorder().totals(site_).bytes += operation.bytes;
    Record record{};
    record.begin = begin_;
    record.bytes = operation.bytes;
    record.kind = static_cast<std::uint8_t>(operation.kind);
    record.thread = static_cast<std::uint8_t>(thread_number());
    record.site = site_;
    record.peer = operation.peer;
    record.tag = operation.tag;
    record.communicator = operation.number;
    record.sequence = operation.sequence;
    record.start = record.finish = record_;
    started_ = record_ < 0 ? -1 : recorder().append(record);
}

void Call::probe(MPI_Comm comm, const MPI_Status &status) {
    const Lock lock(recorder().mutex);
    if (record_ < 0 || status.MPI_SOURCE < 0) return;
    Communicator &on = communicators()[comm];
    Record &record = recorder().at(record_);
    record.peer = on.world_rank(status.MPI_SOURCE);
    record.tag = status.MPI_TAG;
    record.communicator = on.number;
}

// --- how operations go on and finish ------------------------------------------

namespace {

void settle(std::int32_t index, int site, std::uint64_t communicator, const MPI_Status &status) {
    if (status.MPI_SOURCE < 0) return; // MPI_PROC_NULL, or an empty status
    int bytes = 0;
    MPI_Count elements = 0;
    LW_NEXT(MPI_Get_count)(&status, MPI_BYTE, &bytes);
    if (bytes == MPI_UNDEFINED) {
        LW_NEXT(MPI_Get_elements_x)(&status, MPI_BYTE, &elements);
    } else {
        elements = bytes;
    }
    const Lock lock(recorder().mutex);
    recorder().totals(site).bytes += elements;
    if (index < 0) return;
    Record &record = recorder().at(index);
    record.bytes = elements;
    record.tag = status.MPI_TAG;
    // The communicator may have been freed meanwhile; a peer named in the call need not be looked up.
    if (record.peer >= 0) return;
    record.peer = communicators().world_rank(communicator, status.MPI_SOURCE);
}

} // namespace

void Call::arrived(const MPI_Status &status) {
    if (!has_receive_) return;
    settle(receive_, site_, received_on_, status);
    const Lock lock(recorder().mutex);
    if (receive_ >= 0) recorder().at(receive_).end = end_;
}

void Call::pending(MPI_Request request) {
    if (!has_operation_ || request == MPI_REQUEST_NULL) return;
    const Lock lock(recorder().mutex);
    if (started_ >= 0) recorder().at(started_).finish = -1;
    requests().pending[key_of(request)].push_back(
        {started_, site_, operation_.communicator, operation_.kind == Kind::receive, false});
}

void Call::restarted(MPI_Request request) {
    Operation operation{};
    {
        const Lock lock(recorder().mutex);
        const auto found = requests().persistent.find(key_of(request));
        if (found == requests().persistent.end()) return;
        operation = found->second;
    }
    start(operation);
    pending(request);
}

void Call::finished(MPI_Request request, const MPI_Status &status) {
    if (request == MPI_REQUEST_NULL) return;
    Pending done{};
    {
        const Lock lock(recorder().mutex);
        const auto found = requests().pending.find(key_of(request));
        if (found == requests().pending.end() || found->second.empty()) return;
        done = found->second.front();
        found->second.pop_front();
        if (found->second.empty()) requests().pending.erase(found);
    }
    int cancelled = 0;
    if (done.cancelled) LW_NEXT(MPI_Test_cancelled)(&status, &cancelled);
    if (done.receive && !cancelled) settle(done.record, done.site, done.communicator, status);
    const Lock lock(recorder().mutex);
    if (done.record < 0) return;
    Record &record = recorder().at(done.record);
    record.end = end_;
    record.finish = record_;
    if (cancelled) record.kind = static_cast<std::uint8_t>(Kind::cancelled);
}

void Call::flushed(MPI_Win window, int target) {
    const Lock lock(recorder().mutex);
    const auto found = requests().one_sided.find(key_of(window));
    if (found == requests().one_sided.end()) return;
    const int peer = target < 0 ? -1 : communicators().of_window(window).world_rank(target);
    std::erase_if(found->second, [&](std::int32_t index) {
        Record &record = recorder().at(index);
        if (peer >= 0 && record.peer != peer) return false;
        record.end = end_;
        record.finish = record_;
        return true;
    });
}

} // namespace lapwing::pmpi
