// Times calls of a generated tile's functions, each by itself, in the order in which a rank makes them.
#include <cstdint>

#include "clock.hpp"
#include "lapwing.h"
#include "slicer.hpp"

namespace {

enum Kind { COMPUTE = 0, PACK = 1, UNPACK = 2 };

struct Call {
    std::int64_t kind, face;
    lw_box box;
};

} // namespace

// slice_seconds: computations are cut as the pipeline cuts steps between which it polls; 0: not cut.
extern "C" void lw_time_calls(const lw_phase *phase, const lw_module *module, lw_tile *tile, const Call *calls,
                              std::int64_t count, double slice_seconds, char *buffer, double *seconds) {
    lapwing::Slicer slicer(*phase, slice_seconds);
    double begin = lapwing::now();
    for (std::int64_t k = 0; k < count; ++k) {
        const Call &call = calls[k];
        const auto face = static_cast<std::int32_t>(call.face);
        if (call.kind == PACK) {
            module->pack(tile, face, &call.box, buffer);
        } else if (call.kind == UNPACK) {
            module->unpack(tile, face, &call.box, buffer);
        } else if (slice_seconds == 0) {
            module->compute(tile, &call.box);
        } else {
            double lap = lapwing::now();
            slicer.run(call.box, [&](const lw_box &slice) {
                module->compute(tile, &slice);
                const double spent = lapwing::now() - lap;
                lap += spent;
                return spent;
            });
        }
        const double end = lapwing::now();
        seconds[k] = end - begin;
        begin = end;
    }
}
