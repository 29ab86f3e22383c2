#include "tests/device/child.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <stdexcept>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"

extern char** environ;

namespace carousel::test {
namespace {

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0) throw std::runtime_error("no /proc/self/exe");
    return {path, static_cast<std::size_t>(length)};
}

}  // namespace

std::string program_next_to_test(const std::string& name) {
    const std::string self = own_path();
    return self.substr(0, self.rfind('/') + 1) + name;
}

child::child(const std::string& role, const std::string& program, std::vector<std::string> arguments) {
    auto [mine, theirs] = shm::socket_pair();
    const std::string path = program.empty() ? own_path() : program;
    if (program.empty()) arguments = {"child process"};  // the hidden test case in child_roles.cpp
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    std::string variable = "CAROUSEL_TEST_CHILD=" + role;
    std::vector<char*> environment;
    for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
    environment.push_back(variable.data());
    environment.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), child_socket);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    const int failed = ::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("starting " + path + ": " + errno_text(failed));
    socket_ = std::move(mine);
}

child::~child() { kill(); }

void child::send(const nlohmann::json& what, const std::vector<int>& fds) {
    if (!shm::send_message(socket_.get(), what.dump(), fds))
        throw std::runtime_error("the child process is gone");
}

nlohmann::json child::receive(std::vector<shm::unique_fd>* fds) {
    shm::message m;
    if (shm::receive_message(socket_.get(), m, 30 * ns_per_s) != shm::receive_status::ok) {
        throw std::runtime_error("the child process said nothing");
    }
    if (fds != nullptr) *fds = std::move(m.fds);
    return nlohmann::json::parse(m.text);
}

void child::kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    pid_ = -1;
}

bool child::alive() { return pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == 0; }

int child::exit_code() {
    for (int i = 0; pid_ > 0 && i < 3000; ++i) {
        if (::waitpid(pid_, &status_, WNOHANG) == pid_) {
            pid_ = -1;
            return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
}

nlohmann::json to_json(const device::memory_handle& handle) {
    return {{"kind", static_cast<int>(handle.kind)},
            {"bytes", handle.bytes},
            {"uuid", handle.uuid},
            {"pieces", handle.pieces},
            {"ipc", bytes_to_json(handle.ipc)}};
}

device::memory_handle handle_from(const nlohmann::json& j, int fd) {
    device::memory_handle handle;
    handle.kind = static_cast<device::memory_kind>(j.at("kind").get<int>());
    handle.bytes = j.at("bytes").get<u64>();
    handle.uuid = j.at("uuid").get<std::string>();
    handle.ipc = bytes_from<64>(j.at("ipc"));
    handle.pieces = j.at("pieces").get<u32>();
    handle.fd = fd;
    return handle;
}

device::memory_handle handle_from(const nlohmann::json& j, const std::vector<shm::unique_fd>& fds) {
    device::memory_handle handle = handle_from(j, fds.at(0).get());
    if (handle.kind == device::memory_kind::vmm)
        for (const shm::unique_fd& fd : fds) handle.piece_fds.push_back(fd.get());
    return handle;
}

}  // namespace carousel::test
