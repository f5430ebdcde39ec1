// One call of an MPI function while it lasts, the operations it starts and those that finish in it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "communicators.hpp"
#include "next.hpp"
#include "recorder.hpp"

namespace lapwing::pmpi {

// What a message or collective is, before it is started.
struct Operation {
    Kind kind;
    std::uint64_t communicator; // a handle's key, for the sender's rank in a receive's status
    std::uint32_t number;       // the communicator's
    std::uint32_t sequence;
    std::int32_t peer, tag;
    std::int64_t bytes;
};

// Operations that are under way, by request. A library may give several finished sends one and the same request.
struct Pending {
    std::int32_t record; // -1 after the cap
    int site;
    std::uint64_t communicator;
    bool receive, cancelled;
};

struct Requests {
    std::unordered_map<std::uint64_t, std::deque<Pending>> pending;
    std::unordered_map<std::uint64_t, Operation> persistent;
    std::unordered_map<std::uint64_t, std::vector<std::int32_t>> one_sided; // unfinished, by window
};

// All three are guarded by recorder().mutex.
Requests &requests();
Communicators &communicators();

// The number of the calling thread, in the order in which they ask; the one that calls MPI_Init asks first.
int thread_number();

// The address of the program's line that called a Fortran routine, which calls a C function of this library; else null.
extern thread_local void *fortran_caller;

class Call {
public:
    // Nothing is recorded before MPI_Init, after MPI_Finalize, and of calls MPI makes itself.
    Call(const Function &function, void *address);
    ~Call();
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    explicit operator bool() const { return recorded_; }

    // To be called as soon as the MPI function has returned.
    void returned() { end_ = now(); }

    // What the call starts, before it does so; finishing here, unless it is given a request later.
    void send(MPI_Comm comm, int destination, int tag, std::int64_t bytes);
    void receive(MPI_Comm comm, int source, int tag);
    void collective(MPI_Comm comm, int root, std::int64_t bytes);
    void fence(MPI_Win window);
    void one_sided(MPI_Win window, int target, std::int64_t bytes);
    void probe(MPI_Comm comm, const MPI_Status &status);
    void start(const Operation &operation);

    // After the function has returned.
    void arrived(const MPI_Status &status); // the receive of this call has finished
    void pending(MPI_Request request);      // the operation of this call goes on under this request
    void restarted(MPI_Request request);    // a persistent one was started
    void finished(MPI_Request request, const MPI_Status &status);
    void flushed(MPI_Win window, int target); // -1: all targets
    void found();                             // a test was successful; said before what finished

    Operation describe_send(MPI_Comm comm, int destination, int tag, std::int64_t bytes);
    Operation describe_receive(MPI_Comm comm, int source, int tag);

private:
    void enter();
    void make_record();
    bool joins_last_poll();

    const Function &function_;
    void *address_;
    bool recorded_ = false;
    bool polled_ = false;
    int site_ = 0;
    std::int32_t record_ = -1;
    std::int32_t receive_ = -1;
    std::int32_t started_ = -1;
    bool has_operation_ = false, has_receive_ = false;
    Operation operation_{};
    std::uint64_t received_on_ = 0;
    double begin_ = 0, end_ = 0;
};

// Bytes of `count` elements; 0 for a null type.
std::int64_t size_of(std::int64_t count, MPI_Datatype type);

} // namespace lapwing::pmpi
