// A program in a simulated cluster (SimGrid's SMPI): its clock is the simulator's, what it does takes as long as it is
// told, and a wait must be a call of MPI, since the simulator's time passes in none of the program's own. In other
// builds nothing of this is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#ifdef LAPWING_SIMULATED

#include <mpi.h>
#include <unistd.h>

namespace lapwing {

constexpr bool simulated = true;

inline double simulated_now() { return MPI_Wtime(); }

// Seconds as a function of bytes: samples, with straight lines between them and on beyond the last.
class Curve {
public:
    Curve() = default;
    explicit Curve(std::vector<std::pair<double, double>> samples) : samples_(std::move(samples)) {}

    double operator()(double bytes) const {
        if (samples_.empty()) return 0;
        if (samples_.size() == 1 || bytes <= samples_.front().first) return samples_.front().second;
        std::size_t k = 1;
        while (k + 1 < samples_.size() && samples_[k].first < bytes) ++k;
        const auto [b0, s0] = samples_[k - 1];
        const auto [b1, s1] = samples_[k];
        return s0 + (bytes - b0) * (s1 - s0) / (b1 - b0);
    }

private:
    std::vector<std::pair<double, double>> samples_;
};

// What things cost a simulated CPU, in seconds: an iteration, and sending and receiving a message of some bytes.
struct Costs {
    double seconds_per_point = 0;
    Curve send, receive;
};

inline Costs &costs() {
    static Costs costs;
    return costs;
}

// Hosts compute a flop in a nanosecond (lapwing/export/smpi.py).
inline void spend_seconds(double seconds) {
    constexpr double flops_per_second = 1e9;
    if (seconds > 0) smpi_execute_flops(seconds * flops_per_second);
}

inline void spend_computing(std::int64_t points) {
    spend_seconds(static_cast<double>(points) * costs().seconds_per_point);
}

// The simulator's own costs (smpi/os, smpi/or) leave out the receivers of synchronous and of large messages.
inline void spend_sending(std::int64_t bytes) { spend_seconds(costs().send(static_cast<double>(bytes))); }
inline void spend_receiving(std::int64_t bytes) { spend_seconds(costs().receive(static_cast<double>(bytes))); }

// The requests that were found open: nothing changes for who looked before one of them is complete.
inline std::vector<std::vector<MPI_Request> *> &open_requests() {
    static std::vector<std::vector<MPI_Request> *> found;
    return found;
}

inline void note_open(std::vector<MPI_Request> &requests) {
    auto &found = open_requests();
    if (std::find(found.begin(), found.end(), &requests) == found.end()) found.push_back(&requests);
}

// Lets time pass until one of the open requests is complete.
inline void wait_for_open_requests() {
    std::vector<MPI_Request> all;
    std::vector<MPI_Request *> places;
    for (std::vector<MPI_Request> *requests : open_requests()) {
        for (MPI_Request &request : *requests) {
            all.push_back(request);
            places.push_back(&request);
        }
    }
    if (all.empty()) {
        usleep(1); // a byte of a window is awaited
        return;
    }
    int done = MPI_UNDEFINED;
    MPI_Waitany(static_cast<int>(all.size()), all.data(), &done, MPI_STATUS_IGNORE);
    if (done != MPI_UNDEFINED) *places[static_cast<std::size_t>(done)] = all[static_cast<std::size_t>(done)];
}

} // namespace lapwing

#else

namespace lapwing {

constexpr bool simulated = false;

inline void spend_computing(std::int64_t) {}
inline void spend_sending(std::int64_t) {}
inline void spend_receiving(std::int64_t) {}
template <class Requests>
void note_open(Requests &) {}

} // namespace lapwing

#endif
