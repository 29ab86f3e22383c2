#include "supervisor/mps/mps_control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "os/spawn.hpp"
#include "os/subprocess.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr const char* program = "nvidia-cuda-mps-control";
constexpr std::string_view longest_socket =
    "/control_privileged";  // the longest name of a socket that the daemon creates in its folder
constexpr u64 end_patience_ns = 3'000'000'000;

// What daemon and server get of this process's environment: what programs need to run, and the settings of a
// user for the server. CUDA_VISIBLE_DEVICES is not among them, because it would be applied twice: by the
// server, and by its clients to the devices that the server has selected.
constexpr std::array passed_to_daemon{"PATH",
                                      "LD_LIBRARY_PATH",
                                      "HOME",
                                      "TMPDIR",
                                      "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                      "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING",
                                      "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                                      "CUDA_DEVICE_MAX_CONNECTIONS"};

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

std::string words_in(const std::string& file) { return trimmed(read_file(file).value_or("")); }

/// The first process of the answer to get_server_list.
shm::process_id first_server(const std::string& list) {
    const i32 pid = std::atoi(list.c_str());
    return pid > 0 ? shm::process_id{pid, shm::start_time_of(pid)} : shm::process_id{};
}

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
    throw device_error(
        fmt::format("starting a private MPS daemon for isolation = \"mps\": {}; {}", what, remedy));
}

}  // namespace

std::string find_mps_control() {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = (folder.empty() ? "." : folder) + "/" + program;
        if (::access(file.c_str(), X_OK) == 0) return file;
    }
    return "";
}

void mps_control::start(u32 timeout_ms) const {
    const std::string found = find_mps_control();
    if (found.empty())
        refuse(fmt::format("there is no {} in PATH", program),
               "install it with NVIDIA's driver (package nvidia-cuda-mps), or use isolation = \"process\"");
    if (folder_.size() + longest_socket.size() >= sizeof(sockaddr_un::sun_path))
        refuse(fmt::format("the path of its folder, {}, is too long for a unix socket", folder_),
               "choose a shorter --name, or a shorter XDG_RUNTIME_DIR");
    std::error_code failed;
    fs::remove_all(folder_, failed);
    if ((::mkdir(domain_.c_str(), 0700) != 0 && errno != EEXIST) ||
        (folder_ != domain_ && ::mkdir(folder_.c_str(), 0700) != 0) ||
        ::mkdir((folder_ + "/log").c_str(), 0700) != 0)
        refuse(fmt::format("creating the folder {}: {}", folder_, errno_text(errno)),
               "check free space and write permission");
    const std::string reply = folder_ + "/log/start.log";
    shm::unique_fd output(::open(reply.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    spawn_request r;
    r.argv = {"env", "-i"};
    for (std::string& word : daemon_environment()) r.argv.push_back(std::move(word));
    r.argv.insert(r.argv.end(), {found, "-d"});
    r.output = output.get();
    const spawned p = spawn(r);
    const bool in_time = events_of(p.pidfd.get(), POLLIN, now_ns() + timeout_ms * ns_per_ms) != 0;
    if (!in_time)
        ::kill(-p.pid, SIGKILL);  // kills the child's process group; the child is not reaped yet, so the
                                  // group's number cannot have been reused
    if (!in_time) (void)events_of(p.pidfd.get(), POLLIN, now_ns() + ns_per_s);
    const exit_status s = reap(p.pidfd.get());
    const char* remedy = "try `nvidia-cuda-mps-control -d` by hand, or use isolation = \"process\"";
    const std::string words = words_in(reply);
    if (in_time && s.known && s.signal == 0 && s.exit_code == 0 && daemon().pid != 0 &&
        is_responding(timeout_ms))
        return;
    (void)end(0);
    if (!in_time)
        refuse(fmt::format("{} -d has not returned within {:.3g} s", found, timeout_ms / 1000.0), remedy);
    refuse(fmt::format("{} -d ended with {}{}{}", found,
                       s.signal != 0 ? signal_name(s.signal) : fmt::format("exit code {}", s.exit_code),
                       s.signal == 0 && s.exit_code == 0 ? ", and no daemon answers" : "",
                       words.empty() ? "" : ": " + words),
           remedy);
}

bool mps_control::end(u32 quit_ms) const noexcept try {
    if (quit_ms > 0 && daemon().pid != 0) (void)query("quit", quit_ms);
    const bool gone = shm::end_marked_processes(shm::mps_part_mark(folder_), end_patience_ns);
    std::error_code ignored;
    if (gone) fs::remove_all(folder_, ignored);
    return gone;
} catch (const std::exception&) {
    return false;  // no memory or no file descriptor was left
}

shm::process_id mps_control::daemon() const {
    // The daemon is the oldest marked process, because it starts before its server and its other children.
    shm::process_id oldest;
    for (const shm::process_id& id : shm::marked_processes(shm::mps_part_mark(folder_)))
        if (oldest.pid == 0 || id.start_time < oldest.start_time ||
            (id.start_time == oldest.start_time && id.pid < oldest.pid))
            oldest = id;
    return oldest;
}

shm::process_id mps_control::server(u32 timeout_ms) const {
    const reply servers = query("get_server_list", timeout_ms);
    return servers.ok ? first_server(servers.text) : shm::process_id{};
}

mps_control::reply mps_control::query(const std::string& command, u32 timeout_ms) const {
    std::vector<std::string> argv{"env"};
    for (std::string& e : client_environment(0)) argv.push_back(std::move(e));
    argv.emplace_back(program);
    const subprocess_result r = run_subprocess(argv, command + "\n", timeout_ms);
    if (!r.succeeded())
        return {false, fmt::format("`{}`: {} {}", command, r.ending(timeout_ms), trimmed(r.messages))};
    return {true, trimmed(r.output)};
}

mps_control::started_server mps_control::start_server(u32 timeout_ms) const {
    const reply started = query(fmt::format("start_server -uid {}", ::getuid()), timeout_ms);
    if (!started.ok) return {started.text, {}};
    const reply servers = query("get_server_list", timeout_ms);
    if (!servers.ok) return {servers.text, {}};
    if (const shm::process_id server = first_server(servers.text); server.pid > 0) return {"", server};
    return {fmt::format("no server is running ({})", started.text.empty() ? servers.text : started.text), {}};
}

bool mps_control::is_responding(u32 timeout_ms) const { return query("get_server_list", timeout_ms).ok; }

std::string mps_control::terminate_client(i32 pid, u32 timeout_ms) const {
    const reply servers = query("get_server_list", timeout_ms);
    if (!servers.ok) return servers.text;
    const int server = std::atoi(servers.text.c_str());
    if (server <= 0) return fmt::format("no server is running ({})", servers.text);
    const reply done = query(fmt::format("terminate_client {} {}", server, pid), timeout_ms);
    // The exit code is 0 in every case; the last line is the server's answer, a CUresult: 0, or for example
    // "Invalid process 17!", "1".
    const std::string code =
        done.text.substr(done.text.rfind('\n') == std::string::npos ? 0 : done.text.rfind('\n') + 1);
    if (done.ok && code == "0") return "";
    return done.ok ? fmt::format("terminate_client answered \"{}\"", done.text) : done.text;
}

std::vector<std::string> mps_control::daemon_environment() const {
    std::vector<std::string> words = client_environment(0);
    words.push_back(shm::mps_mark(domain_));
    words.push_back(shm::mps_part_mark(folder_));
    for (const char* name : passed_to_daemon)
        if (const char* value = std::getenv(name); value != nullptr)
            words.push_back(fmt::format("{}={}", name, value));
    return words;
}

std::vector<std::string> mps_control::client_environment(u32 generation) const {
    std::vector<std::string> words{"CUDA_MPS_PIPE_DIRECTORY=" + folder_,
                                   "CUDA_MPS_LOG_DIRECTORY=" + folder_ + "/log",
                                   fmt::format("CAROUSEL_MPS_CLIENT={}", generation),
                                   // the interface of query(); version 3 has other commands
                                   "CUDA_MPS_PROTOCOL_VERSION=2"};
    // A stage works on one stream. With the driver's default of eight connections, creating four contexts at
    // once takes 0.2 s longer (measured); a stage with more streams can set this variable itself.
    if (std::getenv("CUDA_DEVICE_MAX_CONNECTIONS") == nullptr)
        words.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS=1");
    return words;
}

}  // namespace carousel::supervisor
