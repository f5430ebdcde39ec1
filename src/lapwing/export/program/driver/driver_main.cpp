// The main of an exported program of several nests: reads its part of the arrays, does what program.bin says, operation
// by operation, and writes what came of it.
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "calls.hpp"
#include "job.hpp"

namespace lapwing {
namespace {

// As in lapwing/export/driver/tables.py.
enum Operation : std::int64_t {
    SET_NUMBER,
    SET_REGISTER,
    FILL,
    LOAD,
    COPY,
    EXCHANGE,
    CALL_NEST,
    CALL_LOCALLY,
    GO,
    CHOOSE,
    COUNT,
    END,
    STOP
};
enum Test : std::int64_t { IS_INTEGER, IS_FLOAT, IS_EQUAL };

// An array that is a result: the text with its name, and what elements that nobody has written hold: what is in the
// file of a memory, or an element's bytes.
struct Written {
    std::int64_t text, memory, is_file, low, high;
};

// A number that is a result, by its name: a register, or a text where that is below 0.
struct Printed {
    std::int64_t text, register_, known, is_float, bits;
};

struct End {
    std::vector<Written> arrays;
    std::vector<Printed> numbers;
    std::vector<std::vector<lw_box>> owned; // by this rank, of every array
};

class Driver {
public:
    Driver(Part common, Part own, std::int64_t chosen) {
        const Numbers head = common.list();
        engine_ = chosen < 0 ? head.at(0) : chosen;
        slice_seconds_ = std::bit_cast<double>(head.at(1));
        const bool fits = head.at(3) == lw_this_driver.memories && head.at(4) == lw_this_driver.modules;
        if (!fits) throw Failure("program.bin is of another program than this one. Export the program again");
        registers_.resize(static_cast<std::size_t>(head.at(2)));
        for (std::int64_t k = 0; k < lw_this_driver.memories; ++k) {
            const Numbers shape = common.list();
            const bool has_file = common.list().at(0) != 0;
            memories_.push_back(std::make_unique<Memory>(lw_this_driver.memory[k], shape, has_file, own));
        }
        code_ = common.list();
        for (std::int64_t k = 0; k < head.at(5); ++k) calls_.push_back(std::make_unique<NestCall>(common, own));
        for (std::int64_t k = 0; k < head.at(6); ++k) locals_.emplace_back(common, own);
        for (std::int64_t k = 0; k < head.at(7); ++k) exchanges_.push_back(own.rows<Move>());
        for (std::int64_t k = 0; k < head.at(8); ++k) {
            End end{common.rows<Written>(), common.rows<Printed>(), {}};
            for (std::size_t a = 0; a < end.arrays.size(); ++a) end.owned.push_back(own.rows<lw_box>());
            ends_.push_back(std::move(end));
        }
    }

    std::int64_t engine() const { return engine_; }

    // Collective.
    void prepare(const Options &options) {
        for (const auto &call : calls_) communicators_.make(call->ranks());
        options_ = run_options(options, engine_, slice_seconds_);
    }

    void load(const std::string &folder) {
        folder_ = folder;
        for (const auto &memory : memories_) {
            if (memory->has_file()) memory->load(folder);
        }
    }

    // Runs the program; with which of its ends it ends.
    std::size_t run() {
        for (std::size_t at = 0;;) {
            const std::int64_t *c = &code_[at];
            switch (c[0]) {
            case SET_NUMBER:
                reg(c[1]).i = c[2], at += 3;
                break;
            case SET_REGISTER:
                reg(c[1]) = reg(c[2]), at += 3;
                break;
            case FILL:
                memory(c[1]).fill(c + 2), at += 4;
                break;
            case LOAD:
                memory(c[1]).load(folder_), at += 2;
                break;
            case COPY:
                memory(c[1]).copy_of(memory(c[2])), at += 3;
                break;
            case EXCHANGE:
                move_elements(exchanges_[static_cast<std::size_t>(c[1])], memories_), at += 2;
                break;
            case CALL_NEST:
                call(*calls_[static_cast<std::size_t>(c[1])]), at += 2;
                break;
            case CALL_LOCALLY:
                locals_[static_cast<std::size_t>(c[1])].run(memories_, registers_), at += 2;
                break;
            case GO:
                at = static_cast<std::size_t>(c[1]);
                break;
            case CHOOSE:
                at = static_cast<std::size_t>(holds(c) ? c[4] : c[5]);
                break;
            case COUNT:
                at = static_cast<std::size_t>(count(c));
                break;
            case STOP:
                throw Failure(lw_this_driver.text[c[1]]);
            default:
                return static_cast<std::size_t>(c[1]);
            }
        }
    }

    void print(std::size_t number) {
        for (const Printed &printed : ends_[number].numbers) {
            const char *name = lw_this_driver.text[printed.text];
            std::string text;
            if (printed.register_ < 0) {
                text = lw_this_driver.text[printed.known];
            } else if (printed.is_float != 0) {
                text = decimal_of_bits(reg(printed.register_).f, printed.bits);
            } else if (printed.bits == 1) {
                text = reg(printed.register_).i != 0 ? "True" : "False";
            } else {
                text = decimal(static_cast<__int128>(reg(printed.register_).i));
            }
            std::printf("%s = %s\n", name, text.c_str());
        }
    }

    // Collective.
    void store(std::size_t number, const std::string &folder) {
        const End &end = ends_[number];
        together([&] {
            if (rank_of(MPI_COMM_WORLD) == 0) prepare_results(end, folder);
        });
        together([&] {
            for (std::size_t k = 0; k < end.arrays.size(); ++k) {
                if (end.owned[k].empty()) continue;
                const Memory &from = memory(end.arrays[k].memory);
                const NpyFile file = from.file(folder + "/out", lw_this_driver.text[end.arrays[k].text], true);
                for (const lw_box &box : end.owned[k]) file.write(box, from.array());
            }
        });
    }

private:
    lw_scalar &reg(std::int64_t number) { return registers_[static_cast<std::size_t>(number)]; }
    Memory &memory(std::int64_t number) { return *memories_[static_cast<std::size_t>(number)]; }

    void call(NestCall &nest) {
        lw_options options = options_;
        const MPI_Comm comm = communicators_.of(nest.ranks());
        if (comm != MPI_COMM_NULL) options.comm = MPI_Comm_c2f(comm);
        nest.run(options, memories_, registers_);
    }

    bool holds(const std::int64_t *c) {
        const lw_scalar value = reg(c[1]);
        if (c[2] == IS_EQUAL) return value.i == c[3];
        return c[2] == IS_FLOAT ? value.f != 0 : value.i != 0;
    }

    std::int64_t count(const std::int64_t *c) {
        std::int64_t &position = reg(c[1]).i;
        if (position == c[2]) return c[7];
        reg(c[5]).i = c[3] + c[4] * position++;
        return c[6];
    }

    // Elements that nobody has written are as they were.
    void prepare_results(const End &end, const std::string &folder) {
        std::filesystem::create_directories(folder + "/out");
        for (const Written &written : end.arrays) {
            const std::string path = folder + "/out/" + lw_this_driver.text[written.text] + ".npy";
            if (written.is_file != 0) {
                const std::string from = folder + "/data/" + memory(written.low).kind().name + ".npy";
                std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing);
            } else {
                write_filled(path, memory(written.memory), &written.low);
            }
        }
    }

    // A file with the same element everywhere.
    static void write_filled(const std::string &path, const Memory &of, const std::int64_t *element) {
        std::string shape;
        std::int64_t left = 1;
        for (const std::int64_t n : of.shape()) shape += std::to_string(n) + ", ", left *= n;
        if (of.shape().size() > 1)
            shape.resize(shape.size() - 2);
        else
            shape.resize(shape.size() - 1);
        std::string header =
            std::string("{'descr': '") + of.kind().element + "', 'fortran_order': False, 'shape': (" + shape + "), }";
        while ((10 + header.size() + 1) % 64 != 0) header += ' ';
        header += '\n';
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        const auto length = static_cast<std::uint16_t>(header.size());
        file.write("\x93NUMPY\x01\x00", 8);
        file.write(reinterpret_cast<const char *>(&length), 2);
        file << header;
        constexpr std::int64_t at_once = 65536;
        std::string some;
        for (std::int64_t k = 0; k < std::min(left, at_once); ++k) {
            some.append(reinterpret_cast<const char *>(element), static_cast<std::size_t>(of.kind().itemsize));
        }
        for (; left > 0; left -= at_once) {
            const std::int64_t bytes = std::min(left, at_once) * of.kind().itemsize;
            file.write(some.data(), static_cast<std::streamsize>(bytes));
        }
        if (!file.flush()) throw Failure(path + " cannot be written");
    }

    std::int64_t engine_;
    double slice_seconds_;
    std::string folder_;
    Registers registers_;
    Memories memories_;
    Numbers code_;
    std::vector<std::unique_ptr<NestCall>> calls_;
    std::vector<LocalCall> locals_;
    std::vector<std::vector<Move>> exchanges_;
    std::vector<End> ends_;
    Communicators communicators_;
    lw_options options_{};
};

void work(const Options &options) {
    std::unique_ptr<Driver> driver;
    together([&] {
        if (options.dry) throw Failure("--dry: what this program does next depends on what it computes. Leave it out");
        ProgramFile file(options.folder + "/program.bin");
        check_ranks(file);
        driver = std::make_unique<Driver>(file.common(), file.of_rank(rank_of(MPI_COMM_WORLD)), options.engine);
        driver->load(options.folder + "/data");
    });
    driver->prepare(options);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = lw_clock();
    std::size_t end = 0;
    try {
        end = driver->run();
    } catch (const std::exception &error) {
        end_all(lw_this_driver.name, error.what());
    }
    const double own = lw_clock() - begin;
    double slowest = 0;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank_of(MPI_COMM_WORLD) == 0) {
        print_seconds(lw_this_driver.name, driver->engine(), slowest);
        driver->print(end);
    }
    driver->store(end, options.folder);
}

} // namespace
} // namespace lapwing

int main(int count, char **words) { return lapwing::run_main(count, words, lw_this_driver.name, lapwing::work); }
