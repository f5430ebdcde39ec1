// Ends the process when a call takes too long that nobody else can end: MPI_Init, which waits for all ranks.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace lapwing {

class Watch {
public:
    Watch(double seconds, std::string text) : text_(std::move(text)), thread_([this, seconds] { run(seconds); }) {}

    ~Watch() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        condition_.notify_one();
        thread_.join();
    }

private:
    static constexpr double LONGEST_SECONDS = 1e9; // decades; clocks count nanoseconds in 64 bits, and would overflow

    void run(double seconds) {
        std::unique_lock lock(mutex_);
        const std::chrono::duration<double> wait(std::min(seconds, LONGEST_SECONDS));
        if (condition_.wait_for(lock, wait, [this] { return over_; })) return;
        const auto written = write(STDERR_FILENO, text_.data(), text_.size());
        _exit(written < 0 ? 2 : 1);
    }

    std::string text_;
    std::mutex mutex_;
    std::condition_variable condition_;
    bool over_ = false;
    std::thread thread_; // last: it uses the others
};

inline std::unique_ptr<Watch> &watch() {
    static std::unique_ptr<Watch> watch;
    return watch;
}

} // namespace lapwing
