// Records a running pipeline, through a port or as a latest reader that the run does not wait for (`carousel
// record` starts it):
//   carousel-tape RUN OUT.mcap COMPRESSION port PORT       every frame once; the run waits for this program
//   carousel-tape RUN OUT.mcap COMPRESSION latest STAGE... the newest frames of each; missed ones are counted
// Or makes a complete file of one that lacks its end (`carousel recover` starts it):
//   carousel-tape recover FILE OUT.mcap
// If COMPRESSION is "", the first compression that is built in is used. On a full disk the program exits with
// code 75 and leaves the file complete. The program ends with the run, or on SIGINT or SIGTERM; in these
// cases it completes the file with an index. If the program is killed and started again with the same
// arguments during the run, it continues the file of the killed process.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <future>
#include <mutex>
#include <string_view>

#include <carousel/port.hpp>
#include "core/errors.hpp"
#include "core/process.hpp"
#include "run/directory.hpp"
#include "stages/compression/compression.hpp"
#include "stages/recording/recover.hpp"
#include "stages/recording/tape.hpp"

namespace {

using namespace carousel;
using namespace carousel::stages;

std::atomic<int> end_requested = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal's handler writes it");
constexpr f64 poll_interval_s = 0.2;

struct task {
    std::string run, out, compression;
    std::vector<std::string> of;
    [[nodiscard]] std::string note() const {
        const std::string folder = run.find('/') != std::string::npos ? run : run::run_folder(run);
        return fmt::format("{}/recording-{:x}", folder, std::hash<std::string>()(out));
    }
};

u64 slot_bytes(const ring::frame_format& f) {
    ring::frame_format copy = f;
    return copy.lay_out();
}

template <typename Frame>
frame_facts facts_of(const Frame& f, const input_payload& planes) {
    frame_facts facts;
    facts.meta() = f.meta();
    facts.parameters.assign(f.parameter_bytes().begin(), f.parameter_bytes().end());
    facts.set(f.metadata().bytes(), planes.used());
    return facts;
}

/// Slots in memory that the CPU can read. On the CPU the reader's slots are read in place, since a copy would
/// gain nothing.
class host_slots {
public:
    explicit host_slots(const std::vector<recorded_ring>& rings) {
        for (const recorded_ring& r : rings) slots_.emplace_back(slot_bytes(r.format));
    }
    const std::byte* take(std::size_t k, const input_payload& planes, device::device_kind where,
                          device::queue& q) {
        if (where == device::device_kind::cpu) return planes.slot();
        q.copy(slots_[k].data(), planes.slot(), slots_[k].size());
        return slots_[k].data();
    }

private:
    std::vector<std::vector<std::byte>> slots_;
};

// The frame is committed after its unit is written: if the process crashes between the two, the next process
// finds the unit in the file and does not write it again.
std::string record_port(const task& t) {
    const open_run run = open(t.run);
    reader_port port = run.reader(t.of.front());
    recording about;
    about.parameters = run.parameters();
    for (std::size_t k = 0; k < port.inputs().size(); ++k)
        about.rings.push_back({port.inputs()[k], port.format(k)});
    host_slots slots(about.rings);
    tape to(t.out, t.compression, about, t.note());
    to.open();
    while (end_requested == 0 && !port.ended()) {
        reader_frame* const f = port.next(poll_interval_s);
        if (f == nullptr) continue;
        std::vector<taped_frame> unit;
        for (std::size_t k = 0; k < about.rings.size(); ++k)
            unit.push_back({facts_of(*f, f->input(k)), slots.take(k, f->input(k), f->where(), f->queue())});
        f->queue().drain();
        if (!to.has(f->frame_number())) to.append(unit);
        f->commit();
    }
    const u64 frames = to.frames();
    to.finish();
    return fmt::format("{}: {} frames", t.out, frames);
}

/// A ring's newest frames. Each ring has its own thread, which sleeps only on that ring's doorbell, because
/// a port belongs to one thread, and because a slow ring must not delay the frames of another ring.
struct newest_ring {
    latest_port port;
    u64 first = 0, last = 0, taken = 0;

    void record(tape& to, std::mutex& one_at_a_time, std::size_t ring) {
        while (end_requested == 0 && !port.ended()) {
            latest_frame* const f = port.next(poll_interval_s);
            if (f == nullptr) continue;
            const std::lock_guard lock(one_at_a_time);
            if (to.has(f->frame_number(), ring)) continue;
            if (taken++ == 0) first = f->frame_number();
            last = f->frame_number();
            to.append({facts_of(*f, f->planes()), f->planes().slot()}, ring);
        }
    }
    [[nodiscard]] u64 missed() const noexcept { return taken > 0 ? last - first + 1 - taken : 0; }
};

// A unit has one frame of one ring, because the rings get their newest frames at different times. This
// thread writes each frame into the file before it takes the next frame of its ring.
std::string record_latest(const task& t) {
    std::vector<newest_ring> rings;
    recording about;
    for (const std::string& of : t.of) {
        const open_run run = open(t.run, {.device = "cpu"});
        rings.push_back({run.latest(of)});
        about.parameters = run.parameters();
        about.rings.push_back({rings.back().port.stage(), rings.back().port.format()});
    }
    tape to(t.out, t.compression, about, t.note());
    to.open();
    std::mutex one_at_a_time;
    std::vector<std::future<void>> threads;
    for (std::size_t k = 0; k < rings.size(); ++k)
        threads.push_back(std::async(std::launch::async, [&, k] {
            try {
                rings[k].record(to, one_at_a_time, k);
            } catch (...) {
                // An error in one thread ends the recording: the other threads detect the error at their
                // next check and end as well.
                end_requested = 1;
                throw;
            }
        }));
    for (std::future<void>& each : threads) each.wait();
    const u64 frames = to.frames();
    u64 missed = 0;
    std::vector<std::string> taken;
    for (const newest_ring& r : rings) {
        missed += r.missed();
        taken.push_back(fmt::format("{} of {}", r.taken, r.port.stage()));
    }
    try {
        for (std::future<void>& each : threads) each.get();
    } catch (const disk_full_error&) {
        throw;  // the disk has no room for the end of the file either, so the file is left unchanged
    } catch (...) {
        to.finish();
        throw;
    }
    to.finish();
    return fmt::format("{}: {} frames, {} were missed by this process{}", t.out, frames, missed,
                       rings.size() > 1 ? fmt::format(", which wrote {}", fmt::join(taken, ", ")) : "");
}

std::string chosen(const std::string& compression) {
    const std::vector<std::string>& there = compressions();
    if (compression.empty()) return there.front();
    if (std::find(there.begin(), there.end(), compression) != there.end()) return compression;
    throw config_error(
        fmt::format("compression \"{}\": expected one of {}", compression, fmt::join(there, ", ")));
}

int recover_file(const std::string& from, const std::string& to) try {
    fmt::print("{}\n", recover(from, to));
    return exit_code::ok;
} catch (const error& e) {
    fmt::print(stderr, "carousel recover: {}\n", e.what());
    return e.code();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::string_view(argv[1]) == "recover") return recover_file(argv[2], argv[3]);
    const bool port = argc == 6 && std::string_view(argv[4]) == "port";
    if (!port && (argc < 6 || std::string_view(argv[4]) != "latest")) {
        fmt::print(
            stderr,
            "carousel-tape RUN OUT.mcap COMPRESSION port PORT | latest STAGE... (`carousel record` starts "
            "it)\n");
        return exit_code::usage;
    }
    task t{argv[1], argv[2], argv[3], {argv + 5, argv + argc}};
    for (const int signal : {SIGINT, SIGTERM}) handle_unless_ignored(signal, [](int) { end_requested = 1; });
    try {
        prepare_process_limits();
        t.compression = chosen(t.compression);
        fmt::print("{}\n", port ? record_port(t) : record_latest(t));
        return exit_code::ok;
    } catch (const disk_full_error& e) {
        // This process does not wait for space, because it would hold the frame beyond the frame's deadline;
        // the next process gets the frame.
        fmt::print(stderr,
                   "carousel-tape: {}. The frames in the file are complete: fix the cause, then run the same "
                   "command again; {}\n",
                   e.what(),
                   port ? "until then its port has no program" : "the frames until then are not recorded");
        return e.code();
    } catch (const error& e) {
        fmt::print(stderr, "carousel-tape: {}\n", e.what());
        return e.code();
    }
}
