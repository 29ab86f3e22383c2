#include "ipc/introduction.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "ipc/space_block.hpp"

namespace carousel::ipc {
namespace {

using nlohmann::json;

clock_identity clock_in(const json& introduction) {
    clock_identity c;
    i64 value = 0;
    read_member(introduction, "time_namespace", c.time_namespace);
    if (read_member(introduction, "monotonic_offset_ns", value)) c.offset_ns = value;
    if (read_member(introduction, "realtime_ns", value)) c.realtime_ns = value;
    return c;
}

}  // namespace

u64 own_pid_namespace() {
    struct stat info {};
    return ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

json introduction() {
    const shm::process_id self = shm::this_process();
    const clock_identity clock = own_clock();
    json j{{"version", space_version},
           {"pid", self.pid},
           {"start_time", self.start_time},
           {"pid_namespace", own_pid_namespace()},
           {"time_namespace", clock.time_namespace}};
    if (clock.offset_ns) j["monotonic_offset_ns"] = *clock.offset_ns;
    if (clock.realtime_ns) j["realtime_ns"] = *clock.realtime_ns;
    return j;
}

introduced identify(int socket, const json& introduction) {
    if (const i64 shift = clock_shift_ns(clock_in(introduction), own_clock()); shift != 0)
        throw config_error(clock_shift_text(shift));
    u64 start_time = 0;
    read_member(introduction, "start_time", start_time);
    errno = 0;
    shm::peer_process peer = shm::peer_process_of(socket, start_time);
    const int code = peer.pidfd ? 0 : errno;
    if (peer.id.pid > 0) {
        // Without a start time, the next holder could not distinguish this process from a later one.
        if (!peer.pidfd || peer.id.start_time == 0)
            throw config_error(
                fmt::format("process {} can't be watched: {}", peer.id.pid,
                            code == ESRCH ? "it has ended"
                                          : "its holder can open neither its pidfd nor its /proc: allow "
                                            "pidfd_open in the holder's seccomp profile, and mount /proc"));
        return {peer.id, own_pid_namespace(), std::move(peer.pidfd)};
    }
    if (!peer.pidfd)
        throw config_error(
            "its process can't be watched: it is in another pid namespace, which takes Linux 6.5 or newer, "
            "or "
            "it has ended");
    introduced other{{0, start_time}, 0, std::move(peer.pidfd)};
    if (!read_member(introduction, "pid", other.process.pid) || other.process.pid <= 0 ||
        !read_member(introduction, "pid_namespace", other.pid_namespace))
        throw config_error("it is in another pid namespace, which its build does not support: rebuild it");
    // 0 would mean this holder's own namespace
    if (other.pid_namespace == 0 || other.pid_namespace == own_pid_namespace()) other.pid_namespace = ~u64{0};
    return other;
}

}  // namespace carousel::ipc
