#include "supervisor/left_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "core/errors.hpp"
#include "ring/words.hpp"
#include "shm/process_id.hpp"
#include "shm/segment.hpp"
#include "supervisor/spawn.hpp"

namespace carousel::supervisor {
namespace {

bool maps_run(i32 pid, const std::string& run_id) {
    std::ifstream maps(fmt::format("/proc/{}/maps", pid));
    const std::string wanted = "/" + shm::segment::object_name(run_id);
    for (std::string line; std::getline(maps, line);)
        if (line.find(wanted) != std::string::npos) return true;
    return false;
}

}  // namespace

shm::unique_fd open_claimer(const shm::incarnation& entry, const std::string& run_id) {
    const ring::entry_word w = ring::entry_word::of(ring::load(entry.identity));
    shm::process_id id{static_cast<i32>(w.pid), ring::load(entry.start_time)};
    if (id.pid <= 0 || id.pid == ::getpid()) return {};
    const bool guessed = id.start_time == 0;
    if (guessed) id.start_time = shm::start_time_of(id.pid);
    shm::unique_fd fd(id.start_time != 0 ? shm::open_pidfd(id) : -1);
    // The maps are read behind the open: what they say is of the process that the pidfd pins.
    if (!fd || has_ended(fd.get()) || (guessed && !maps_run(id.pid, run_id))) return {};
    return fd;
}

u32 living_stages(const std::string& run_id) try {
    const shm::segment s = shm::segment::observe(run_id);
    u32 count = 0;
    for (const shm::incarnation& e : s.block().entry) {
        const ring::entry_state state = ring::entry_word::of(ring::load(e.identity)).state;
        const bool sits = state == ring::entry_state::starting || state == ring::entry_state::live;
        count += sits && open_claimer(e, run_id) ? 1 : 0;
    }
    return count;
} catch (const error&) {
    return 0;
}

}  // namespace carousel::supervisor
