#include "supervisor/hosts/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "os/console.hpp"
#include "os/subprocess.hpp"
#include "shm/process_id.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 rest_ns = 5 * ns_per_s, settle_ns = 500 * ns_per_ms;
constexpr std::size_t kept_bytes = 2000;
constexpr int killed_within_ms = 1000;

std::string last_line(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
        text.pop_back();
    const std::size_t at = text.find_last_of('\n');
    return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace

launcher::launcher(const host_spec& host, const hosts_plan& plan, std::string token)
    : host_(host), file_(plan.file), token_(std::move(token)), words_(plan.words) {}

// Does not wait for the launcher, because a supervisor that was started by ssh continues by itself, and a
// supervisor that was started by srun ends with this process.
launcher::~launcher() {
    if (!runs_) return;
    if (host_.launcher == launcher_kind::slurm) return;
    shm::signal_pidfd(child_.pidfd.get(), SIGTERM);
    (void)reap(child_.pidfd.get());
}

// ssh passes the command to a shell on the remote host, so its words are quoted. srun passes the words
// directly to the program.
std::vector<std::string> launcher::command() const {
    std::vector<std::string> there{host_.program.empty() ? executable_folder() + "/carousel" : host_.program,
                                   "host",
                                   "--file",
                                   host_.file.empty() ? file_ : host_.file,
                                   "--as",
                                   host_.name,
                                   "--launched"};
    there.insert(there.end(), words_.begin(), words_.end());
    if (host_.launcher == launcher_kind::slurm) {
        std::vector<std::string> all{"srun", "--nodes=1", "--ntasks=1", "--overlap",
                                     "--nodelist=" + (host_.login.empty() ? host_.name : host_.login)};
        there.emplace_back("--stay");
        all.insert(all.end(), there.begin(), there.end());
        return all;
    }
    std::string line;
    for (const std::string& w : there) line += (line.empty() ? "" : " ") + shell_word(w);
    return {"ssh",
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=10",
            host_.login.empty() ? host_.address : host_.login,
            "--",
            line};
}

void launcher::start(u64 now) {
    if (runs_ || now < retry_ns_ || host_.launcher == launcher_kind::none) return;
    retry_ns_ = now + rest_ns;
    lines_.clear();
    reached_ = false;
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    if (::pipe2(in, O_CLOEXEC) != 0) return fail(fmt::format("creating a pipe to it: {}", errno_text(errno)));
    const shm::unique_fd theirs_in(in[0]), ours_in(in[1]);
    if (::pipe2(out, O_CLOEXEC) != 0)
        return fail(fmt::format("creating a pipe to it: {}", errno_text(errno)));
    const shm::unique_fd theirs_out(out[1]);
    output_.reset(out[0]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(ours_in.get(), F_SETFL, O_NONBLOCK);
    const std::string text = token_ + "\n";
    try {
        child_ = spawn(
            {.argv = command(), .environment = {}, .input = theirs_in.get(), .output = theirs_out.get()});
    } catch (const error& e) {
        return fail("is it installed?");
    }
    const ssize_t sent = ::write(ours_in.get(), text.data(), text.size());
    if (sent == static_cast<ssize_t>(text.size())) {
        runs_ = true;
        return;
    }
    const std::string why = sent < 0 ? errno_text(errno) : "it is longer than a pipe holds";
    end_child();
    fail("sending the token to it: " + why);
}

// Kills the child, because a child that has not received the complete token would wait for the rest of the
// token indefinitely.
void launcher::end_child() {
    shm::signal_pidfd(child_.pidfd.get(), SIGKILL);
    (void)events_of(child_.pidfd.get(), POLLIN, now_ns() + killed_within_ms * ns_per_ms);
    (void)reap(child_.pidfd.get());
    child_ = {};
}

void launcher::fail(const std::string& why) {
    failure_ = fmt::format("host {} can't be started: {}: {}", host_.name, command().front(), why);
    reported_ = false;
}

void launcher::read_lines() {
    char bytes[4096];
    for (ssize_t n; output_ && (n = ::read(output_.get(), bytes, sizeof bytes)) > 0;) {
        lines_.append(bytes, static_cast<std::size_t>(n));
        if (lines_.size() > kept_bytes) lines_.erase(0, lines_.size() - kept_bytes);
    }
}

void launcher::poll(u64 now) {
    if (!runs_) return;
    read_lines();
    const exit_status how = reap(child_.pidfd.get());
    if (!how.known) return;
    runs_ = false;
    read_lines();
    if ((how.signal == 0 && how.exit_code == 0) || std::exchange(reached_, false)) {
        // The supervisor was listening, so the launcher did not fail (srun ends with the supervisor, whatever
        // the cause). If the supervisor died, its stages wait supervisor_grace_s for the next supervisor, so
        // the next attempt to start a supervisor is made soon.
        retry_ns_ = now + settle_ns;
        failure_.clear();
        return;
    }
    retry_ns_ = now + rest_ns;
    failure_ =
        fmt::format("host {} can't be started by {} ({}): {}", host_.name, command().front(),
                    how.signal != 0 ? signal_name(how.signal) : fmt::format("exit code {}", how.exit_code),
                    last_line(lines_));
    reported_ = false;
}

std::string launcher::new_failure() {
    if (reported_) return "";
    reported_ = true;
    return failure_;
}

}  // namespace carousel::supervisor
