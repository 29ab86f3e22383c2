#include "cli/start.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>

#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "os/descriptors.hpp"
#include "os/event_loop.hpp"
#include "os/log_pipe.hpp"
#include "os/spawn.hpp"
#include "os/table.hpp"
#include "shm/fd_socket.hpp"

extern char** environ;

namespace carousel::supervisor {
namespace {

constexpr std::size_t last_lines = 20;
constexpr int repoll_ms = 30;

/// Blocks the termination signals during the wait, so that this process can first end the child and then
/// exit.
class signals_blocked {
public:
    signals_blocked() {
        const sigset_t wanted = end_signals();
        pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;
    [[nodiscard]] int taken() const noexcept { return pending_signal(); }

private:
    sigset_t before_{};
};

struct child {
    pid_t pid = 0;
    shm::unique_fd pidfd, output;
    line_splitter lines;
    std::deque<std::string> last;

    /// Reads the child's output, and keeps the last lines of the output.
    void listen() {
        char bytes[4096];
        const auto keep = [this](std::string_view line) {
            last.emplace_back(line);
            if (last.size() > last_lines) last.pop_front();
        };
        ssize_t n = 0;
        while (output && (n = ::read(output.get(), bytes, sizeof bytes)) > 0)
            lines.feed({bytes, static_cast<std::size_t>(n)}, keep);
        if (output && n == 0) {
            lines.finish(keep);
            output.reset();
        }
    }
};

child start(const std::vector<std::string>& words) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) throw shm_error("creating a pipe: " + errno_text(errno));
    child c;
    c.output.reset(ends[0]);
    const shm::unique_fd theirs(ends[1]), nowhere = open_null(O_RDONLY);
    ::fcntl(c.output.get(), F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, nowhere.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, theirs.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, theirs.get(), STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    std::vector<std::string> all = words;
    all.insert(all.begin(), "carousel");
    std::vector<char*> argv;
    argv.reserve(all.size() + 1);
    for (std::string& w : all) argv.push_back(w.data());
    argv.push_back(nullptr);
    const int failed = retry_shortage(
        [&] { return posix_spawn(&c.pid, "/proc/self/exe", &files, &attributes, argv.data(), environ); });
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0)
        throw_system_error("starting carousel in the background", failed, no_thread_text(failed));
    c.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, c.pid, 0)));
    if (!c.pidfd) throw shm_error(fmt::format("opening a pidfd for pid {}: {}", c.pid, errno_text(errno)));
    return c;
}

/// Returns the stages' rows of `ps`; empty if the pipeline does not reply yet.
std::vector<run::ps_stage> stages_of(const detach_request& d, pid_t pid) {
    const auto record = run::read_record(run::run_folder(d.name));
    if (!record || record->supervisor.pid != pid) return {};
    try {
        return run::read_ps(run::client(*record).ask(run::ps_request{}, 0, 2)).stages;
    } catch (const error&) {
        return {};
    }
}

bool is_ready(const run::ps_stage& stage) {
    const std::string state = stage.state.value_or("");
    return state == "running" || state == "done" || state == "stopped" || state == "vacant";
}

/// Lists the ports without a program. A port's program may attach at any time, so the caller does not wait
/// for it.
std::string vacant_text(const std::vector<run::ps_stage>& stages, std::size_t& processes) {
    std::string text;
    for (const run::ps_stage& s : stages)
        if (s.state.value_or("") == "vacant")
            text += fmt::format("{}{}", text.empty() ? "; no program at " : ", ", s.name.value_or("?")),
                --processes;
    return text;
}

void print_hints(const detach_request& d, std::ostream& out) {
    const std::string& c = d.command;
    out << fmt::format(
        "  folder  {0}\n  watch   {1} ps -p {2}    {1} logs -f -p {2}    {1} top -p {2}\n  end     {1} down "
        "-p {2}\n",
        run::run_folder(d.name), c, d.name);
}

int print_end(const detach_request& d, child& c, u64 since, std::ostream& out, std::ostream& err) {
    c.listen();
    const exit_status how = reap(c.pidfd.get());
    const int code = how.signal != 0 ? 128 + how.signal : how.exit_code;
    std::ostream& to = code == exit_code::ok ? out : err;
    to << fmt::format("pipeline \"{}\" {} after {}; its last lines:\n", d.name,
                      code == exit_code::ok ? "has ended" : fmt::format("has failed with exit code {}", code),
                      human_seconds(static_cast<f64>(now_ns() - since) / 1e9));
    for (const std::string& line : c.last) to << line << "\n";
    return code;
}

}  // namespace

int run_in_background(const detach_request& d, std::ostream& out, std::ostream& err) {
    const signals_blocked signals;
    const u64 since = now_ns(), until = since + static_cast<u64>(d.patience_s * 1e9);
    child c = start(d.words);
    std::vector<run::ps_stage> stages;
    while (now_ns() < until) {
        if (events_of(c.pidfd.get(), POLLIN, now_ns() + repoll_ms * ns_per_ms) != 0)
            return print_end(d, c, since, out, err);
        c.listen();
        if (const int signal = signals.taken(); signal != 0) {
            err << fmt::format("interrupted: ending pipeline \"{}\"\n", d.name);
            // The first signal makes the child finish the frames in progress. The child could then wait for
            // stages that never become ready, so a second signal ends the child at once.
            bool ended = false;
            for (int tries = 0; tries < 10 && !ended; ++tries) {
                if (tries < 2) shm::signal_pidfd(c.pidfd.get(), signal);
                ended = events_of(c.pidfd.get(), POLLIN, now_ns() + 3 * ns_per_s) != 0;
                c.listen();
            }
            return 128 + signal;
        }
        stages = stages_of(d, c.pid);
        if (stages.empty() || !std::all_of(stages.begin(), stages.end(), is_ready)) continue;
        std::size_t processes = stages.size();
        const std::string vacant = vacant_text(stages, processes);
        out << fmt::format("pipeline \"{}\" runs in the background (pid {}): {} {} ready after {}{}\n",
                           d.name, c.pid, processes, processes == 1 ? "process" : "processes",
                           human_seconds(static_cast<f64>(now_ns() - since) / 1e9), vacant);
        print_hints(d, out);
        return exit_code::ok;
    }
    std::string late;
    for (const run::ps_stage& s : stages)
        if (!is_ready(s))
            late += fmt::format("{}{} is {}", late.empty() ? "" : ", ", s.name.value_or("?"),
                                s.state.value_or("?"));
    err << fmt::format(
        "pipeline \"{}\" (pid {}) continues in the background, but is not ready after {}: {}\n", d.name,
        c.pid, human_seconds(d.patience_s), late.empty() ? "it does not answer yet" : late);
    print_hints(d, err);
    return exit_code::stage_failed;
}

}  // namespace carousel::supervisor
