// `carousel debug STAGE`: attaches a debugger to a stage's process, and suspends the stage's deadlines as
// long as the debugger runs (control/debug_message.hpp).

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "control/debug_message.hpp"
#include "core/clock.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"
#include "runs/client.hpp"
#include "shm/fd_socket.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 debug_patience_ns = 5 * ns_per_s;
constexpr u64 debug_poll_ns = 100 * ns_per_ms;

struct debug_arguments : client_arguments {
    std::string stage, gdb;
    std::vector<std::string> commands;
    bool batch = false;
};

std::string debugger_for(const debug_arguments& a, bool cuda) {
    if (!a.gdb.empty()) {
        if (a.gdb.find('/') != std::string::npos && ::access(a.gdb.c_str(), X_OK) == 0) return a.gdb;
        if (std::string found = program_in_path(a.gdb); !found.empty()) return found;
        throw config_error(fmt::format("--gdb {}: no such program", a.gdb));
    }
    const std::string gdb = program_in_path("gdb");
    if (!cuda && !gdb.empty()) return gdb;
    // cuda-gdb debugs host code, too: a machine with the CUDA toolkit needs no gdb.
    if (std::string found = program_in_path("cuda-gdb"); !found.empty()) return found;
    for (const char* path : {"/usr/local/cuda/bin/cuda-gdb", "/opt/cuda/bin/cuda-gdb"})
        if (::access(path, X_OK) == 0) return path;
    if (!gdb.empty()) return gdb;
    throw config_error(
        "neither gdb nor cuda-gdb is in PATH: install one (apt-get install gdb), or name a "
        "debugger with --gdb PATH");
}

/// Throws if the kernel does not permit this process to attach to others of its user.
void require_ptrace() {
    const std::string scope = read_file("/proc/sys/kernel/yama/ptrace_scope").value_or("0");
    if (scope.empty() || scope[0] == '0' || ::geteuid() == 0) return;
    throw config_error(fmt::format(
        "the kernel permits debuggers to attach only to their own children "
        "(kernel.yama.ptrace_scope = {}): run this command as root, or permit it with `sudo sysctl "
        "kernel.yama.ptrace_scope=0`",
        scope[0]));
}

/// The suspension of a stage's deadlines: a connection to the supervisor.
class suspension {
public:
    /// Throws config_error if the supervisor refuses, shm_error if it does not answer.
    suspension(const run::record& r, std::string stage) : run_(r), stage_(std::move(stage)) { request(0); }

    [[nodiscard]] const run::debug_answer& answer() const noexcept { return answer_; }

    /// Waits for up to debug_poll_ns for the end of the connection. If the supervisor has ended, requests the
    /// suspension from its successor. Reports on stderr what happens.
    void watch(std::ostream& err) {
        if (socket_ && events_of(socket_.get(), POLLIN | POLLHUP, now_ns() + debug_poll_ns) == 0) return;
        if (socket_) {
            err << "note: the supervisor has ended; the deadlines of its successor are suspended as soon as "
                   "there is one\n";
            socket_.reset();
        } else if (!has_ended_) {
            ::usleep(debug_poll_ns / 1000);
        }
        if (has_ended_ || !still_running(run_, gone_since_ns_)) {
            if (!has_ended_) err << "note: the run has ended\n";
            has_ended_ = true;
            ::usleep(debug_poll_ns / 1000);
            return;
        }
        if (!is_alive(run_)) return;
        try {
            request(answer_.pid);
            err << fmt::format("note: pid {} has taken the run over; the deadlines are suspended there\n",
                               run_.supervisor.pid);
        } catch (const config_error& e) {
            err << "warning: " << e.what() << "; no deadline is suspended any more\n";
            has_ended_ = true;
        } catch (const error&) {  // the successor does not answer yet
            socket_.reset();
        }
    }

private:
    void request(i32 pid) {
        socket_ = shm::connect_to(run_.socket(), debug_patience_ns);
        if (!socket_)
            throw shm_error(fmt::format("no supervisor at {}: {}", run_.socket(), errno_text(errno)));
        shm::message m;
        const std::string text = write_message(run::debug_request{stage_, run_.run_id, pid}).dump();
        if (!shm::send_message(socket_.get(), text, {}, debug_patience_ns) ||
            shm::receive_message(socket_.get(), m, debug_patience_ns) != shm::receive_status::ok)
            throw shm_error(
                fmt::format("{}: the supervisor (pid {}) does not answer: check whether it is "
                            "stopped, or of another version",
                            run_.name, run_.supervisor.pid));
        const nlohmann::json reply = parse_json_or_discard(m.text, json_channel::message);
        require_well(reply, run_.name);
        run::debug_answer a;
        read_known_fields(reply, a);
        answer_ = a;
    }

    run::record run_;
    std::string stage_;
    shm::unique_fd socket_;
    run::debug_answer answer_;
    u64 gone_since_ns_ = 0;
    bool has_ended_ = false;
};

std::vector<std::string> command_line(const std::string& debugger, const debug_arguments& a, i32 pid) {
    std::vector<std::string> words{debugger};
    if (a.batch) words.emplace_back("-batch");
    for (const std::string& each : a.commands) words.insert(words.end(), {"-ex", each});
    words.insert(words.end(), {"-p", std::to_string(pid)});
    return words;
}

/// Starts the debugger as a child that ends with this process: if this process is killed, nothing suspends
/// the deadlines any more, and the stage must continue. In the terminal's process group, so that Ctrl-C
/// reaches it.
pid_t start_debugger(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const pid_t parent = ::getpid(), child = ::fork();
    if (child < 0) throw shm_error("starting the debugger: " + errno_text(errno));
    if (child > 0) return child;
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGQUIT, SIG_DFL);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::execv(argv[0], argv.data());
    std::cerr << fmt::format("error: {}: {}; name another debugger with --gdb PATH\n", words[0],
                             errno_text(errno));
    ::_exit(127);
}

int debug(const debug_arguments& a, const cli_environment& env) {
    const run::record r = choose_pipeline(a.pipeline, a.wait_s);
    if (!run::is_of_here(r))
        throw config_error(
            fmt::format("{} runs in another pid namespace (a container): run this command there", r.name));
    require_ptrace();
    (void)debugger_for(a, false);  // reports a missing debugger before anything is suspended
    suspension s(r, a.stage);
    const std::string debugger = debugger_for(a, s.answer().cuda);
    env.err << fmt::format("{} of {} (pid {}): {}; its deadlines are suspended until the debugger ends\n",
                           s.answer().stage, r.name, s.answer().pid, debugger);
    std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the debugger
    std::signal(SIGQUIT, SIG_IGN);
    const pid_t child = start_debugger(command_line(debugger, a, s.answer().pid));
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR)) break;
        s.watch(env.err);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

command_action add_debug_command(const command_parts& p) {
    const auto a = std::make_shared<debug_arguments>();
    add_client_options(p, *a);
    p.offers[p.app
                 .add_option("STAGE", a->stage,
                             "The stage: fragment, or fragment.1 for one of several instances")
                 ->required()] = running_stages;
    p.offers[p.app
                 .add_option(
                     "--gdb", a->gdb,
                     "The debugger [cuda-gdb for a stage on a GPU, if it is installed; otherwise gdb]")
                 ->type_name("PATH")] = offer_files({""});
    p.app
        .add_option("--ex", a->commands, "A command for the debugger after it has attached; may be repeated")
        ->type_name("COMMAND")
        ->expected(1)
        ->take_all();
    p.app.add_flag("--batch", a->batch, "End the debugger after the commands of --ex");
    p.app.footer(
        "\n"
        "The pipeline waits for the stage while the debugger stops it. No deadline counts for the stage "
        "until "
        "the debugger\n"
        "ends, or is killed; then all deadlines start again. `carousel replay` debugs a frame that was given "
        "up.\n"
        "\n"
        "Examples:\n"
        "  carousel debug fragment\n"
        "  carousel debug fragment --batch --ex 'thread apply all bt'");
    return [a](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return debug(*a, env);
    };
}

}  // namespace

extern const command debug_command{"debug", "Attach gdb or cuda-gdb to a running stage, without deadlines",
                                   add_debug_command};

}  // namespace carousel::supervisor
