#include "recorder.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace lapwing::pmpi {

namespace {

constexpr std::int64_t totals_bytes = most_sites * static_cast<std::int64_t>(sizeof(SiteTotals));
constexpr std::int64_t chunk_bytes = chunk_records * static_cast<std::int64_t>(sizeof(Record));

// The file's blocks are reserved first: a store into a mapped hole on a full disk would kill the program.
void *map(int file, std::int64_t offset, std::int64_t bytes) {
    if (posix_fallocate(file, offset, bytes) != 0) return nullptr;
    void *memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
    return memory == MAP_FAILED ? nullptr : memory;
}

template <std::size_t size>
void copy_text(char (&target)[size], const char *text) {
    std::strncpy(target, text, size - 1);
}

const char *role_name(Role role) {
    switch (role) {
    case Role::block:
        return "block";
    case Role::wait:
        return "wait";
    case Role::start:
        return "start";
    case Role::poll:
        return "poll";
    }
    return "";
}

const char *pattern_name(Pattern pattern) {
    switch (pattern) {
    case Pattern::none:
        return "none";
    case Pattern::all:
        return "all";
    case Pattern::from_root:
        return "from_root";
    case Pattern::to_root:
        return "to_root";
    case Pattern::prefix:
        return "prefix";
    }
    return "";
}

// Every program's path, also of those that are not recorded: one that ran before has the rank's file.
void note_program(const char *directory) {
    char line[4096];
    const ssize_t length = readlink("/proc/self/exe", line, sizeof line - 1);
    const int file =
        ::open((std::string(directory) + "/programs").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (length > 0 && file >= 0) {
        line[length] = '\0';
        const ssize_t written = write(file, line, static_cast<std::size_t>(length) + 1);
        (void)written;
    }
    if (file >= 0) ::close(file);
}

} // namespace

double now() {
    // LAPWING_TRACE_CLOCK="NAME MILLISECONDS": for tests, a clock of its own that is ahead.
    static const double ahead = [] {
        const char *given = std::getenv("LAPWING_TRACE_CLOCK");
        const char *space = given != nullptr ? std::strchr(given, ' ') : nullptr;
        return space != nullptr ? 1e-3 * std::atof(space) : 0.0;
    }();
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return ahead + static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Recorder &recorder() {
    // Never destroyed: other libraries' destructors may still call MPI.
    static Recorder *one = new Recorder;
    return *one;
}

void Recorder::open(int rank, int size, const char *library) {
    const char *directory = std::getenv("LAPWING_TRACE_DIRECTORY");
    if (directory == nullptr) return;
    const char *cap = std::getenv("LAPWING_TRACE_RECORDS");
    cap_ = cap != nullptr ? std::atoll(cap) : std::int64_t{1} << 20;
    note_program(directory);
    const std::string path = std::string(directory) + "/rank-" + std::to_string(rank);
    // O_EXCL: a second MPI program under one command must not overwrite the first one's recording.
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    sites_file_ = ::open((path + ".sites").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char *start = file_ < 0 ? nullptr : static_cast<char *>(map(file_, 0, header_bytes + totals_bytes));
    if (start == nullptr || sites_file_ < 0) {
        std::fprintf(stderr, "lapwing trace: rank %d (process %d) is not recorded: cannot write %s: %s\n", rank,
                     static_cast<int>(getpid()), path.c_str(), std::strerror(errno));
        return;
    }
    header_ = reinterpret_cast<Header *>(start);
    totals_ = reinterpret_cast<SiteTotals *>(start + header_bytes);
    header_->version = format_version;
    header_->rank = rank;
    header_->size = size;
    header_->state = State::running;
    header_->process = getpid();
    gethostname(header_->host, sizeof header_->host - 1);
    copy_text(header_->library, library);
    if (readlink("/proc/self/exe", header_->program, sizeof header_->program - 1) < 0) header_->program[0] = '\0';
    std::memcpy(header_->magic, "LWPMPI", 6);
    on_ = true;
}

void Recorder::close(State state) {
    header_->state = state;
    on_ = false;
    // Blocks of the last chunk that were never used.
    const std::int64_t used =
        header_bytes + totals_bytes + header_->records * static_cast<std::int64_t>(sizeof(Record));
    if (ftruncate(file_, used) != 0) return;
}

bool Recorder::map_chunk(int number) {
    if (number >= most_chunks) return false;
    chunks_[number] =
        static_cast<Record *>(map(file_, header_bytes + totals_bytes + number * chunk_bytes, chunk_bytes));
    return chunks_[number] != nullptr;
}

std::int32_t Recorder::append(const Record &record) {
    const std::int64_t index = header_->records;
    const int chunk = static_cast<int>(index / chunk_records);
    if (index >= cap_ || (index % chunk_records == 0 && !map_chunk(chunk))) {
        cap_ = index; // a disk that is full once stays so: recorded is the beginning, without holes
        return -1;
    }
    chunks_[chunk][index % chunk_records] = record;
    ++header_->records;
    return static_cast<std::int32_t>(index);
}

int Recorder::site(const Function &function, void *address) {
    const std::uint64_t key =
        reinterpret_cast<std::uint64_t>(address) ^ (reinterpret_cast<std::uint64_t>(&function) << 20);
    const auto found = sites_.find(key);
    if (found != sites_.end()) return found->second;
    // The last number is shared by all sites that found no place.
    const int number =
        static_cast<int>(std::min<std::int64_t>(static_cast<std::int64_t>(sites_.size()), most_sites - 1));
    sites_.emplace(key, number);
    Dl_info info{};
    link_map *module = nullptr;
    const bool known = dladdr1(address, &info, reinterpret_cast<void **>(&module), RTLD_DL_LINKMAP) != 0;
    // A return address belongs to the line after the call where the call is a line's last instruction.
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(address) - 1 - (known ? module->l_addr : 0);
    const char *file = !known ? "" : module->l_name[0] != '\0' ? module->l_name : header_->program;
    dprintf(sites_file_, "%d\t%s\t%s\t%s\t%llx\t%s\t%s\n", number, function.name, role_name(function.role),
            pattern_name(function.pattern), static_cast<unsigned long long>(offset),
            known && info.dli_sname != nullptr ? info.dli_sname : "", file);
    return number;
}

} // namespace lapwing::pmpi
