// `carousel doctor`: reports what processes can detect about each other. The signs of a death are measured on
// a child that is killed for this purpose.

#include "doctor/doctor.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "ipc/memory.hpp"
#include "ipc/spaces.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#include "supervisor/mps/mps_control.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr const char* first_pid_namespace =
    "pid:[4026531836]";  // the kernel's number of the initial namespace
constexpr int death_limit_ms = 2000;
constexpr u64 late_ns = 20 * ns_per_ms;

/// Returns the milliseconds from `start` until the fd is ready for `events`; negative: not within the limit.
f64 ready_after_ms(int fd, short events, u64 start) {
    if (events_of(fd, events, now_ns() + death_limit_ms * ns_per_ms) == 0) return -1;
    return static_cast<f64>(now_ns() - start) / static_cast<f64>(ns_per_ms);
}

std::string container() {
    std::error_code failed;
    if (fs::exists("/.dockerenv", failed)) return "a Docker container";
    if (fs::exists("/run/.containerenv", failed)) return "a Podman container";
    std::ifstream in("/proc/1/cgroup");
    for (std::string line; std::getline(in, line);)
        if (line.find("kubepods") != std::string::npos || line.find("docker") != std::string::npos ||
            line.find("lxc") != std::string::npos)
            return "a container";
    return "";
}

void examine_fd_passing(std::vector<finding>& all) {
    const auto failed = [&](const std::string& why) {
        all.push_back({"passing memory", verdict::fail, why,
                       "stages receive their rings as file descriptors: check whether a container's seccomp "
                       "profile forbids SCM_RIGHTS"});
    };
    try {
        const auto [one, other] = shm::socket_pair();
        const shm::unique_fd memory(::memfd_create("carousel-doctor", MFD_CLOEXEC));
        if (!memory) return failed("memfd_create: " + errno_text(errno));
        if (::write(memory.get(), "carousel", 8) != 8) return failed("writing a memfd: " + errno_text(errno));
        shm::message got;
        if (!shm::send_message(one.get(), "fd", {memory.get()}))
            return failed("sending a file descriptor (SCM_RIGHTS): " + errno_text(errno));
        if (shm::receive_message(other.get(), got, ns_per_s) != shm::receive_status::ok ||
            got.fds.size() != 1)
            return failed("a sent file descriptor did not arrive");
        char text[8] = {};
        if (::pread(got.fds[0].get(), text, 8, 0) != 8 || std::string(text, 8) != "carousel")
            return failed("the contents of the passed memory differ");
    } catch (const error& e) {
        return failed(e.what());
    }
    all.push_back(
        {"passing memory", verdict::ok, "file descriptors pass between processes (SCM_RIGHTS)", ""});
}

void examine_mps(std::vector<finding>& all) {
    bool daemon = false;
    std::error_code failed;
    for (fs::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
        std::ifstream in(at->path() / "comm");
        std::string name;
        std::getline(in, name);
        if (name.starts_with("nvidia-cuda-mps")) daemon = true;  // the kernel cuts names at 15 characters
    }
    const std::string found = find_mps_control();
    const std::string can = found.empty()
                                ? "isolation = \"mps\" is unavailable: nvidia-cuda-mps-control is not in PATH"
                                : fmt::format("isolation = \"mps\" is available ({})", found);
    all.push_back({"MPS", verdict::ok,
                   can + (daemon ? "; an MPS daemon is running (started by a run or by this machine's "
                                   "administrator; stages use only the daemon of their own run)"
                                 : ""),
                   ""});
}

}  // namespace

void examine_processes(std::vector<finding>& all) {
    std::error_code failed;
    const std::string space = fs::read_symlink("/proc/self/ns/pid", failed).string(), inside = container();
    const bool own = space != first_pid_namespace || !inside.empty();
    all.push_back({"PID namespace", verdict::ok,
                   own ? fmt::format("{}{}; start all programs of a run inside it",
                                     inside.empty() ? "a separate PID namespace" : inside,
                                     space.empty() ? "" : ", " + space)
                       : "the machine's PID namespace",
                   ""});
    if (shm::start_time_of(::getpid()) == 0)
        all.push_back({"/proc", verdict::fail, "start times of processes can't be read from /proc/PID/stat",
                       "mount /proc (mount -t proc proc /proc)"});
    examine_fd_passing(all);
    examine_mps(all);
}

void examine_death_signs(std::vector<finding>& all) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        all.push_back({"death detection by EOF", verdict::fail, "socketpair: " + errno_text(errno), ""});
        return;
    }
    shm::unique_fd ours(ends[0]), theirs(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ours.get());
        for (;;) ::pause();
    }
    const int refused = child < 0 ? errno : 0;
    theirs.reset();
    if (child < 0) {
        all.push_back({"death detection by EOF", verdict::fail, "fork: " + no_thread_text(refused),
                       "end other processes, or raise the limit that the error names"});
        return;
    }
    const shm::unique_fd process(shm::open_pidfd({child, shm::start_time_of(child)}));
    const std::string why = errno_text(errno);
    const u64 start = now_ns();
    ::kill(child, SIGKILL);  // the child is not reaped yet, so its pid cannot be reused
    const f64 by_eof = ready_after_ms(ours.get(), POLLIN | POLLHUP, start);
    const f64 by_pidfd = process ? ready_after_ms(process.get(), POLLIN, start) : -1;
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    const bool soon = by_eof >= 0 && by_eof * static_cast<f64>(ns_per_ms) < static_cast<f64>(late_ns);
    all.push_back(
        {"death detection by EOF", soon ? verdict::ok : verdict::warn,
         by_eof < 0 ? "not detected within 2 s" : fmt::format("detected {:.2f} ms after a kill", by_eof),
         soon ? "" : "the pidfd is used instead, so frames wait longer after a stage's death"});
    all.push_back({"death detection by pidfd", by_pidfd >= 0 ? verdict::ok : verdict::fail,
                   !process       ? "pidfd_open: " + why
                   : by_pidfd < 0 ? "not detected within 2 s"
                                  : fmt::format("detected {:.2f} ms after a kill", by_pidfd),
                   by_pidfd >= 0 ? "" : "use Linux 5.4 or newer and a container that permits pidfd_open"});
}

// `carousel doctor`: reports whether this machine can hold spaces for programs that are not stages, and the
// state of existing spaces.

void examine_spaces(std::vector<finding>& all) {
    try {
        (void)ipc::memory::make("doctor", 1 << 20);  // this creates, seals, maps and removes a segment
    } catch (const error& e) {
        all.push_back(
            {"spaces", verdict::warn, e.what(),
             "pipelines run without it; `carousel hold` needs sealed memfds (Linux 3.17 or newer)"});
        return;
    }
    u32 held = 0, orphaned = 0, dead = 0;
    for (const ipc::found_space& s : ipc::spaces_here()) {
        held += s.state == ipc::space_state::held ? 1U : 0U;
        orphaned += s.state == ipc::space_state::orphaned ? 1U : 0U;
        dead += s.state == ipc::space_state::dead ? 1U : 0U;
    }
    all.push_back({"spaces", orphaned > 0 ? verdict::warn : verdict::ok,
                   fmt::format("memory can be sealed and passed to other processes; spaces in {3}: {0} held, "
                               "{1} without a holder, {2} dead",
                               held, orphaned, dead, ipc::spaces_folder()),
                   orphaned > 0
                       ? "`carousel hold NAME` takes over a space without a holder (`carousel ps` lists them)"
                   : dead > 0 ? "`carousel clean` removes the files of dead spaces"
                              : ""});
}

}  // namespace carousel::supervisor
