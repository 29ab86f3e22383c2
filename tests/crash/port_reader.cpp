// An external program for tests: reads the newest frames of a ring of a number pipeline, whose values
// determine their frame: those of `middle` and of `fork.square` each by their own formula, all others as
// `numbers`.
//   carousel-test-port RUN RING [DEVICE [PAUSE_MS [PATIENCE_S]]]
// Prints a line per hundred frames: "frame N"; at the end "ended: HOW, F frames, R revoked, V void", exit
// code 0. A value that is not its frame's, or a sequence that doesn't grow: exit code 99.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <carousel/port.hpp>
#include "core/crash_point.hpp"

namespace {

using namespace carousel;

u64 expected_of(u64 frame_number, const std::string& ring) {
    const u64 made = frame_number * 1000;
    if (ring == "middle") return made * 3 + 1;
    return ring == "fork.square" ? made * made : made;
}

/// On any device.
u64 value_of(const latest_frame& f) {
    u64 value = 0;
    f.queue().copy(&value, f.plane<const u64>("value").data(), sizeof value);
    f.queue().drain();
    return value;
}

int read_newest(const std::string& run, const std::string& stage, const std::string& device, u32 pause_ms,
                f64 patience_s) {
    latest_port newest = open(run, {.device = device}).latest(stage, {.patience_s = patience_s});
    u64 frames = 0, before = 0;
    for (latest_frame& f : newest) {
        const u64 value = value_of(f);
        if (value != expected_of(f.frame_number(), stage) || (frames > 0 && f.frame_number() <= before)) {
            fmt::print("frame {} behind {} holds {}\n", f.frame_number(), before, value);
            return 99;
        }
        before = f.frame_number();
        if (frames++ % 100 == 0) fmt::print("frame {}\n", before);
        std::fflush(stdout);
        if (pause_ms > 0) ::usleep(pause_ms * 1000);
    }
    const latest_losses l = newest.losses();
    fmt::print("ended: {}, {} frames, {} revoked, {} torn, {} void\n", newest.ending(), frames, l.revoked,
               l.torn, l.tombstones);
    return l.torn == 0 ? 0 : 99;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return exit_code::usage;
    try {
        arm_crash_points("reader");
        return read_newest(argv[1], argv[2], argc > 3 ? argv[3] : "",
                           argc > 4 ? static_cast<u32>(std::atoi(argv[4])) : 0,
                           argc > 5 ? std::atof(argv[5]) : 10);
    } catch (const error& e) {
        fmt::print("{}\n", e.what());
        return e.code();
    }
}
