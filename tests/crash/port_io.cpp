// An external program for tests that takes part in a run as its source or as a sink, or that observes it.
//   carousel-test-port-io write|write-plain|read|read-all|latest|end|stray|type|shape|next|made-with|
//                         newest-made-with RUN PORT [PAUSE_US [HOLD_AT HOLD_MS]]
// write-plain: it writes without its mark, so that equal runs have equal frames. read-all: it continues after
// a frame whose sequence doesn't follow.
// end: it writes, and ends its stream before the frame HOLD_AT. stray: it writes into its first input. type,
// shape: it opens its input's plane as another type or shape. next: it requests the next frame and commits
// none. latest: it reads the newest frames of the stage PORT. made-with: it reads, and prints for each frame
// the number of its parameters and their "ambient"; newest-made-with: the same for the newest frames of the
// stage PORT. Each element of the plane "value" (u64) must be the frame's sequence below a mark of its
// writer's incarnation; one frame has one incarnation only, or it is torn. HOLD_AT: the frame that is kept
// for HOLD_MS before its commit. Prints a line per hundred frames: "frame N"; "revoked N" if a commit was
// refused; at the end "ended, F frames", exit code 0. A frame that is incomplete, or a sequence that doesn't
// grow by one within an incarnation: exit code 99.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <carousel/port.hpp>
#include "core/crash_point.hpp"
#include "core/json.hpp"

namespace {

using namespace carousel;

struct task {
    std::string run, port;
    u32 pause_us = 0;
    u64 hold_at = ~u64{0};
    u32 hold_ms = 0;
    u64 frames = 0;

    /// Returns true if the commit was refused.
    template <typename Frame>
    bool finish(Frame& f) {
        const u64 n = f.frame_number();
        if (n >= hold_at) {
            fmt::print("holds {}\n", n);
            std::fflush(stdout);
            hold_at = ~u64{0};
            ::usleep(hold_ms * 1000);
        }
        if (pause_us > 0) ::usleep(pause_us);
        try {
            f.commit();
        } catch (const port_revoked& e) {
            fmt::print("revoked {}: {}\n", n, e.what());
            std::fflush(stdout);
            return true;
        }
        if (frames++ % 100 == 0) fmt::print("frame {}\n", n);
        std::fflush(stdout);
        return false;
    }
};

/// `mark`: what each element has above the frame's number.
int write(task& t, u64 mark, u64 end = ~u64{0}) {
    writer_port w = open(t.run).writer(t.port);
    while (auto f = w.next()) {
        if (f.frame_number() == end) {
            w.end();
            break;
        }
        const plane_view<u64> value = f.plane<u64>("value");
        const u64 content = mark << 40U | f.frame_number();
        std::vector<u64> all(value.extent(0), content);
        f.queue().copy(value.data(), all.data(), all.size() * sizeof(u64));
        f.queue().drain();
        (void)t.finish(f);
    }
    return 0;
}

int read(task& t, bool all_frames) {
    reader_port r = open(t.run).reader(t.port);
    u64 expected = ~u64{0};
    for (auto& f : r) {
        const plane_view<const u64> value = f.plane<const u64>("value");
        std::vector<u64> all(value.extent(0));
        f.queue().copy(all.data(), value.data(), all.size() * sizeof(u64));
        f.queue().drain();
        const u64 n = f.frame_number();
        if (expected != ~u64{0} && n != expected) {
            fmt::print("frame {} for {}\n", n, expected);
            if (!all_frames) return 99;
        }
        for (const u64 v : all)
            if (v != all.front() || (v & 0xFF'FFFF'FFFFU) != n)
                return fmt::print("frame {} holds {:#x}\n", n, v), 99;
        f.set_hash(n);
        expected = t.finish(f) ? ~u64{0} : n + 1;
    }
    return 0;
}

int latest(task& t) {
    u64 last = 0;
    for (auto& f : open(t.run).latest(t.port)) {
        const plane_view<const u64> value = f.plane<const u64>("value");
        std::vector<u64> all(value.extent(0));
        f.queue().copy(all.data(), value.data(), all.size() * sizeof(u64));
        f.queue().drain();
        const u64 n = f.frame_number();
        if (t.frames > 0 && n <= last) return fmt::print("frame {} behind {}\n", n, last), 99;
        for (const u64 v : all)
            if (v != all.front() || (v & 0xFF'FFFF'FFFFU) != n)
                return fmt::print("frame {} holds {:#x}\n", n, v), 99;
        if (t.frames++ % 100 == 0) fmt::print("frame {}\n", n);
        std::fflush(stdout);
        if (t.pause_us > 0) ::usleep(t.pause_us);
        last = n;
    }
    return 0;
}

template <typename Frame>
void print_parameters(const Frame& f, const ring::parameter_schema& schema) {
    fmt::print("frame {} of set {}: {}\n", f.frame_number(), f.parameter_number(),
               schema.values_json(f.parameter_bytes())["ambient"].dump());
    std::fflush(stdout);
}

int made_with(const task& t) {
    const open_run run = open(t.run);
    const ring::parameter_schema schema = run.parameters();
    reader_port r = run.reader(t.port);
    for (auto& f : r) {
        print_parameters(f, schema);
        f.commit();
    }
    return 0;
}

int newest_made_with(const task& t) {
    const open_run run = open(t.run);
    const ring::parameter_schema schema = run.parameters();
    for (auto& f : run.latest(t.port)) print_parameters(f, schema);
    return 0;
}

int write_out_of_bounds(task& t) {
    reader_port r = open(t.run).reader(t.port);
    for (auto& f : r) {
        const plane_view<const u64> value = f.plane<const u64>("value");
        *const_cast<volatile u64*>(value.data()) = ~u64{0};
        fmt::print("has written into frame {}\n", f.frame_number());
        break;
    }
    return 99;
}

int mistake(task& t, const std::string& what) {
    reader_port r =
        open(t.run).reader(t.port, {.planes = {{"value", what == "shape" ? "u64[511]" : "u64[512]"}}});
    reader_frame* const f = r.next(20);
    if (f == nullptr) return 99;
    if (what == "type") (void)f->plane<const f32>("value");
    for (int k = 0; k < 2; ++k) try {
            return (void)r.next(1), 99;
        } catch (const config_error&) {
        }
    return (void)r.next(1), 99;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return exit_code::usage;
    const std::string what = argv[1];
    task t{argv[2], argv[3]};
    if (argc > 4) t.pause_us = static_cast<u32>(std::atoi(argv[4]));
    if (argc > 6)
        t.hold_at = static_cast<u64>(std::atoll(argv[5])), t.hold_ms = static_cast<u32>(std::atoi(argv[6]));
    try {
        arm_crash_points(what);
        const auto mark = static_cast<u64>(::getpid());
        const int code = what == "write"              ? write(t, mark)
                         : what == "write-plain"      ? write(t, 0)
                         : what == "end"              ? write(t, mark, t.hold_at)
                         : what == "wild-write"       ? write_out_of_bounds(t)
                         : what == "latest"           ? latest(t)
                         : what == "read"             ? read(t, false)
                         : what == "read-all"         ? read(t, true)
                         : what == "made-with"        ? made_with(t)
                         : what == "newest-made-with" ? newest_made_with(t)
                                                      : mistake(t, what);
        if (code == 0) fmt::print("ended, {} frames\n", t.frames);
        return code;
    } catch (const error& e) {
        fmt::print("{}\n", e.what());
        return e.code();
    }
}
