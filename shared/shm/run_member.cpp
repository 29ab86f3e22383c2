#include "shm/run_member.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "core/io.hpp"
#include "shm/segment.hpp"

namespace carousel::shm {

bool maps_file(i32 pid, const std::string& name) {
    std::ifstream maps(fmt::format("/proc/{}/maps", pid));
    for (std::string line; std::getline(maps, line);)
        if (line.find(name) != std::string::npos) return true;
    return false;
}

bool maps_run(i32 pid, const std::string& run_id) {
    return maps_file(pid, fmt::format("/{}", segment::object_name(run_id)));
}

unique_fd open_member(process_id id, const std::string& run_id) {
    if (id.pid <= 0 || id.pid == ::getpid()) return {};
    const bool guessed = id.start_time == 0;
    if (guessed) id.start_time = start_time_of(id.pid);
    unique_fd fd(id.start_time != 0 ? open_pidfd(id) : -1);
    if (!fd || events_of(fd.get(), POLLIN) != 0) return {};
    // The maps are read after the open, so they are those of the process to which the pidfd refers.
    if (guessed && !maps_run(id.pid, run_id)) return {};
    return fd;
}

}  // namespace carousel::shm
