// The functions of MPI as the program calls them: each notes what it does and calls the library's own.
//
// Both MPI_Send and PMPI_Send are replaced: Open MPI's Fortran routines call the latter. Only the outermost call is
// recorded.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "call.hpp"
#include "session.hpp"

using namespace lapwing::pmpi;

namespace {

// The program's status, or one of our own where it is not interested.
class Status {
public:
    MPI_Status *of(MPI_Status *status) { return status == MPI_STATUS_IGNORE ? &own_ : status; }

private:
    MPI_Status own_{};
};

class Statuses {
public:
    MPI_Status *of(MPI_Status *statuses, int count) {
        if (statuses != MPI_STATUSES_IGNORE) return statuses;
        own_.resize(static_cast<std::size_t>(std::max(count, 1)));
        return own_.data();
    }

private:
    std::vector<MPI_Status> own_;
};

std::int64_t peers(MPI_Comm comm) {
    int inter = 0, size = 0;
    LW_NEXT(MPI_Comm_test_inter)(comm, &inter);
    if (inter) {
        LW_NEXT(MPI_Comm_remote_size)(comm, &size);
    } else {
        LW_NEXT(MPI_Comm_size)(comm, &size);
    }
    return size;
}

bool is_root(MPI_Comm comm, int root) {
    int inter = 0, rank = 0;
    LW_NEXT(MPI_Comm_test_inter)(comm, &inter);
    if (inter) return root == MPI_ROOT;
    LW_NEXT(MPI_Comm_rank)(comm, &rank);
    return rank == root;
}

// Of a rank that is not the root; in the root's own group of an intercommunicator it has no part.
std::int64_t outgoing(int root, std::int64_t count, MPI_Datatype type) {
    return root == MPI_PROC_NULL ? 0 : size_of(count, type);
}

template <class Count>
std::int64_t sum(const Count counts[], MPI_Comm comm) {
    std::int64_t total = 0;
    for (std::int64_t rank = 0; rank < peers(comm); ++rank) total += counts[rank];
    return total;
}

template <class Count>
std::int64_t sum(const Count counts[], const MPI_Datatype types[], MPI_Comm comm) {
    std::int64_t total = 0;
    for (std::int64_t rank = 0; rank < peers(comm); ++rank)
        total += counts[rank] > 0 ? size_of(counts[rank], types[rank]) : 0;
    return total;
}

void remember(MPI_Request request, const Operation &operation) {
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    requests().persistent[key_of(request)] = operation;
}

// Messages that MPI_Mprobe found are received where it found them.
struct Found {
    MPI_Comm comm;
    int source, tag;
};
std::unordered_map<std::uint64_t, Found> &found_messages() {
    static auto *all = new std::unordered_map<std::uint64_t, Found>;
    return *all;
}

void note_found(Call &call, MPI_Message message, MPI_Comm comm, const MPI_Status &status) {
    call.probe(comm, status);
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    found_messages()[key_of(message)] = {comm, status.MPI_SOURCE, status.MPI_TAG};
}

void take(Call &call, MPI_Message message) {
    Found found{};
    {
        const std::lock_guard<std::mutex> lock(recorder().mutex);
        const auto entry = found_messages().find(key_of(message));
        if (entry == found_messages().end()) return;
        found = entry->second;
        found_messages().erase(entry);
    }
    call.receive(found.comm, found.source, found.tag);
}

void created(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL) return;
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    communicators().created(comm);
}

void forget(MPI_Comm comm) {
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    communicators().freed(comm);
}

void forget_window(MPI_Win window) {
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    communicators().freed_window(window);
    requests().one_sided.erase(key_of(window));
}

void forget_request(MPI_Request request) {
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    requests().persistent.erase(key_of(request));
    requests().pending.erase(key_of(request));
}

void note_cancelled(MPI_Request request) {
    const std::lock_guard<std::mutex> lock(recorder().mutex);
    const auto found = requests().pending.find(key_of(request));
    if (found != requests().pending.end() && !found->second.empty()) found->second.front().cancelled = true;
}

void all_finished(Call &call, const std::vector<MPI_Request> &started, const MPI_Status *statuses) {
    for (std::size_t k = 0; k < started.size(); ++k) call.finished(started[k], statuses[k]);
}

void some_finished(Call &call, const std::vector<MPI_Request> &started, int count, const int *which,
                   const MPI_Status *statuses) {
    for (int k = 0; k < count; ++k) call.finished(started[static_cast<std::size_t>(which[k])], statuses[k]);
}

} // namespace

// --- the table ----------------------------------------------------------------

#define LW_LIST(...) __VA_ARGS__
#define LW_ADDRESS __builtin_extract_return_addr(__builtin_return_address(0))

// function, role, pattern, parameters, arguments, what is noted before the library's function and what after it.
// `call` is the call, `given` the status, `result` what the function returned.
#define LW_FUNCTION(function, role, pattern, parameters, arguments, before, after)                                     \
    LW_DEFINE(function, role, pattern, parameters, arguments, before, after)
#define LW_DEFINE(function, role, pattern, parameters, arguments, before, after)                                       \
    extern "C" __attribute__((visibility("default"))) int function(LW_LIST parameters) {                               \
        static constexpr Function about{#function, role, pattern};                                                     \
        [[maybe_unused]] Status given;                                                                                 \
        Call call(about, LW_ADDRESS);                                                                                  \
        if (call) {                                                                                                    \
            before;                                                                                                    \
        }                                                                                                              \
        const int result = LW_NEXT(function)(LW_LIST arguments);                                                       \
        if (call) {                                                                                                    \
            call.returned();                                                                                           \
            if (result == MPI_SUCCESS) {                                                                               \
                after;                                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        return result;                                                                                                 \
    }                                                                                                                  \
    extern "C" __attribute__((visibility("default"), alias(#function))) int P##function(LW_LIST parameters);

#define NAME(function) function
#define COUNT int
#define PLACE int
#include "counted.def"
#undef NAME
#undef COUNT
#undef PLACE

#if MPI_VERSION >= 4
#define NAME(function) function##_c
#define COUNT MPI_Count
#define PLACE MPI_Aint
#include "counted.def"
#undef NAME
#undef COUNT
#undef PLACE
#endif

#include "uncounted.def"

// --- waits and tests ------------------------------------------------------------
// They need the requests as they were before: MPI sets those that are done to MPI_REQUEST_NULL.

// The head of a wrapper: `function` with its parameters, passed on unrecorded where nothing is to be recorded.
#define LW_COMPLETION(function, role, parameters, arguments)                                                           \
    extern "C" __attribute__((visibility("default"), alias(#function))) int P##function parameters;                    \
    extern "C" __attribute__((visibility("default"))) int function parameters {                                        \
        static constexpr Function about{#function, role};                                                              \
        Call call(about, LW_ADDRESS);                                                                                  \
        if (!call) return LW_NEXT(function) arguments;

#define LW_REQUESTS const std::vector<MPI_Request> started(requests, requests + std::max(count, 0))

LW_COMPLETION(MPI_Wait, Role::wait, (MPI_Request * request, MPI_Status *status), (request, status))
const MPI_Request started = *request;
Status given;
const int result = LW_NEXT(MPI_Wait)(request, given.of(status));
call.returned();
if (result == MPI_SUCCESS) call.finished(started, *given.of(status));
return result;
}

LW_COMPLETION(MPI_Waitall, Role::wait, (int count, MPI_Request requests[], MPI_Status *statuses),
              (count, requests, statuses))
LW_REQUESTS;
Statuses given;
const int result = LW_NEXT(MPI_Waitall)(count, requests, given.of(statuses, count));
call.returned();
if (result == MPI_SUCCESS) all_finished(call, started, given.of(statuses, count));
return result;
}

LW_COMPLETION(MPI_Waitany, Role::wait, (int count, MPI_Request requests[], int *index, MPI_Status *status),
              (count, requests, index, status))
LW_REQUESTS;
Status given;
const int result = LW_NEXT(MPI_Waitany)(count, requests, index, given.of(status));
call.returned();
if (result == MPI_SUCCESS && *index != MPI_UNDEFINED)
    call.finished(started[static_cast<std::size_t>(*index)], *given.of(status));
return result;
}

LW_COMPLETION(MPI_Waitsome, Role::wait,
              (int count, MPI_Request requests[], int *done, int indices[], MPI_Status *statuses),
              (count, requests, done, indices, statuses))
LW_REQUESTS;
Statuses given;
const int result = LW_NEXT(MPI_Waitsome)(count, requests, done, indices, given.of(statuses, count));
call.returned();
if (result == MPI_SUCCESS && *done != MPI_UNDEFINED)
    some_finished(call, started, *done, indices, given.of(statuses, count));
return result;
}

LW_COMPLETION(MPI_Test, Role::poll, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
const MPI_Request started = *request;
Status given;
const int result = LW_NEXT(MPI_Test)(request, flag, given.of(status));
call.returned();
if (result == MPI_SUCCESS && *flag) {
    call.found();
    call.finished(started, *given.of(status));
}
return result;
}

LW_COMPLETION(MPI_Testall, Role::poll, (int count, MPI_Request requests[], int *flag, MPI_Status *statuses),
              (count, requests, flag, statuses))
LW_REQUESTS;
Statuses given;
const int result = LW_NEXT(MPI_Testall)(count, requests, flag, given.of(statuses, count));
call.returned();
if (result == MPI_SUCCESS && *flag) {
    call.found();
    all_finished(call, started, given.of(statuses, count));
}
return result;
}

LW_COMPLETION(MPI_Testany, Role::poll, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
              (count, requests, index, flag, status))
LW_REQUESTS;
Status given;
const int result = LW_NEXT(MPI_Testany)(count, requests, index, flag, given.of(status));
call.returned();
if (result == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED) {
    call.found();
    call.finished(started[static_cast<std::size_t>(*index)], *given.of(status));
}
return result;
}

LW_COMPLETION(MPI_Testsome, Role::poll,
              (int count, MPI_Request requests[], int *done, int indices[], MPI_Status *statuses),
              (count, requests, done, indices, statuses))
LW_REQUESTS;
Statuses given;
const int result = LW_NEXT(MPI_Testsome)(count, requests, done, indices, given.of(statuses, count));
call.returned();
if (result == MPI_SUCCESS && *done != MPI_UNDEFINED && *done > 0) {
    call.found();
    some_finished(call, started, *done, indices, given.of(statuses, count));
}
return result;
}

// --- the beginning and the end --------------------------------------------------

extern "C" {
#define LW_ALIAS(function) __attribute__((visibility("default"), alias(#function)))
int PMPI_Init(int *argc, char ***argv) LW_ALIAS(MPI_Init);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided) LW_ALIAS(MPI_Init_thread);
int PMPI_Finalize() LW_ALIAS(MPI_Finalize);
int PMPI_Abort(MPI_Comm comm, int code) LW_ALIAS(MPI_Abort);

__attribute__((visibility("default"))) int MPI_Init(int *argc, char ***argv) {
    refuse_other_mpi();
    Quiet quiet;
    const int result = LW_NEXT(MPI_Init)(argc, argv);
    if (result == MPI_SUCCESS) begin_session();
    return result;
}

__attribute__((visibility("default"))) int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    refuse_other_mpi();
    Quiet quiet;
    const int result = LW_NEXT(MPI_Init_thread)(argc, argv, required, provided);
    if (result == MPI_SUCCESS) begin_session();
    return result;
}

__attribute__((visibility("default"))) int MPI_Finalize() {
    Quiet quiet;
    end_session();
    return LW_NEXT(MPI_Finalize)();
}

__attribute__((visibility("default"))) int MPI_Abort(MPI_Comm comm, int code) {
    Quiet quiet;
    abort_session();
    return LW_NEXT(MPI_Abort)(comm, code);
}
}
