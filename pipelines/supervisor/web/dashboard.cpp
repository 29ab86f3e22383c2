#include "supervisor/web/dashboard.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "core/address.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/secret.hpp"
#include "os/subprocess.hpp"
#include "shm/process_id.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 pause_ns = ns_per_s;
constexpr int patience_ms = 1000;
constexpr u32 dashboard_color = 7;

bool wait_for_exit(int pidfd, int timeout_ms) noexcept {
    return events_of(pidfd, POLLIN, now_ns() + static_cast<u64>(timeout_ms) * ns_per_ms) != 0;
}

// The exit status of a web UI that an earlier supervisor started is not known, because that web UI is not a
// child of this process.
std::string ending_of(const exit_status& s) {
    if (!s.known) return "not a child of this supervisor: its exit code is unknown";
    return s.signal != 0 ? fmt::format("signal {} ({})", s.signal, signal_name(s.signal))
                         : fmt::format("exit code {}", s.exit_code);
}

}  // namespace

std::string dashboard_program() {
    return program_of_ours("carousel-web", executable_folder(),
                           "the web UI needs libjpeg-turbo (apt-get install libturbojpeg0-dev)");
}

dashboard::dashboard(event_loop& loop, console& out, dashboard_plan plan, std::size_t width)
    : loop_(loop),
      plan_(std::move(plan)),
      token_(new_token()),
      log_(out, "web", width, dashboard_color, plan_.folder + "/logs/web.jsonl") {}

dashboard::~dashboard() {
    if (!process_.pidfd) return;
    loop_.forget(process_.pidfd.get());
    if (pipe_.fd() >= 0) loop_.forget(pipe_.fd());
    (void)shm::signal_pidfd(process_.pidfd.get(), SIGTERM);
    if (!wait_for_exit(process_.pidfd.get(), patience_ms)) {
        (void)shm::signal_pidfd(process_.pidfd.get(), SIGKILL);
        (void)wait_for_exit(process_.pidfd.get(), patience_ms);
    }
    (void)reap(process_.pidfd.get());
    pipe_.close(log_, process_.pid);
}

void dashboard::start() noexcept {
    try {
        const std::optional<run::dashboard_record> found = run::read_dashboard_record(plan_.folder);
        if (found && found->run_id == plan_.run_id) {
            token_ = found->token;
            if (plan_.address.empty() || plan_.address == found->asked) last_address_ = found->address.text();
            if (keep_running(*found)) return;
        }
        if (plan_.address.empty()) return;
        spawn_dashboard();
    } catch (const std::exception& e) {
        log_.line(0, fmt::format("the web UI can't be started: {}", e.what()));
    }
}

// Keeping the process also keeps the connections of open browser pages and scrapers.
bool dashboard::keep_running(const run::dashboard_record& found) {
    const bool as_planned =
        plan_.address.empty() || (plan_.address == found.asked && plan_.hosts == found.hosts);
    if (!as_planned) {
        run::end_dashboard(found.process);
        return false;
    }
    if (plan_.address.empty()) {
        plan_.address = found.asked;
        plan_.hosts = found.hosts;
    }
    process_ = {found.process.pid, found.process.start_time, shm::unique_fd(shm::open_pidfd(found.process))};
    if (!process_.pidfd) return false;
    early_ends_.note_start(now_ns());
    log_.line(process_.pid, fmt::format("web UI: {} (its process outlived the previous supervisor)",
                                        run::dashboard_url(found.address, token_)));
    watch();
    return true;
}

void dashboard::spawn_dashboard() {
    due_ns_ = 0;
    shm::unique_fd write_end;
    pipe_ = log_pipe::make(write_end);
    tried_last_ = !last_address_.empty() && parse_http_address(plan_.address).port == 0;
    spawn_request r;
    r.argv = {dashboard_program(),
              "--http",
              tried_last_ ? last_address_ : plan_.address,
              "-p",
              plan_.name,
              "--with-run",
              plan_.run_id,
              "--started-by",
              std::to_string(::getpid()),
              "--asked-at",
              plan_.address};
    for (const std::string& host : plan_.hosts) r.argv.insert(r.argv.end(), {"--http-host", host});
    // The token is passed in the environment, because other users of this machine can read command lines. A
    // successor gets the same token, so open browser pages stay valid.
    r.environment = {"CAROUSEL_WEB_TOKEN=" + token_};
    r.output = write_end.get();
    process_ = spawn(r);
    early_ends_.note_start(now_ns());
    watch();
    loop_.watch(pipe_.fd(), EPOLLIN, [this](u32) {
        if (!pipe_.drain(log_, process_.pid)) loop_.forget(pipe_.fd());
    });
}

void dashboard::watch() {
    loop_.watch(process_.pidfd.get(), EPOLLIN, [this](u32) { ended(); });
}

void dashboard::ended() {
    loop_.forget(process_.pidfd.get());
    if (pipe_.fd() >= 0) loop_.forget(pipe_.fd());
    const exit_status how = reap(process_.pidfd.get());
    pipe_.close(log_, process_.pid);
    const i32 pid = process_.pid;
    process_ = {};
    if (const auto served = run::read_dashboard_record(plan_.folder);
        served && served->run_id == plan_.run_id)
        last_address_ = served->address.text();
    const bool refused = how.known && how.signal == 0 && how.exit_code == exit_code::usage;
    if (refused && tried_last_) {  // another program has taken the port, so any other port is used
        last_address_.clear();
        due_ns_ = now_ns();
    } else if (refused) {  // the web UI has logged the reason, and a second start would fail for the same
                           // reason
        log_.line(pid, "there is no web UI; the pipeline continues");
    } else if (!early_ends_.note_end(now_ns())) {
        log_.line(pid,
                  fmt::format("the web UI has ended ({}), for the {}th time in a row within a minute of its "
                              "start, and is not started again; the pipeline continues, and `carousel view "
                              "-p {} --http` starts another web UI",
                              ending_of(how), early_ends::most, plan_.name));
    } else {
        log_.line(pid, fmt::format("the web UI has ended ({}); it is restarted, and the pipeline continues",
                                   ending_of(how)));
        due_ns_ = now_ns() + pause_ns;
    }
}

void dashboard::tick(u64 now) noexcept {
    if (due_ns_ == 0 || now < due_ns_) return;
    try {
        spawn_dashboard();
    } catch (const std::exception& e) {
        log_.line(0, fmt::format("the web UI can't be started: {}", e.what()));
    }
}

void web_extension::attach(run_access& run) {
    const run_setup& s = run.setup();
    if (address_.empty() && !(run.was_taken_over() && run::read_dashboard_record(s.directory))) return;
    dashboard_ = std::make_unique<dashboard>(
        run.loop(), run.out(), dashboard_plan{address_, hosts_, s.name, run.run_id(), s.directory},
        run.label_width());
}

void web_extension::begin() {
    if (dashboard_) dashboard_->start();
}

void web_extension::tick(u64 now) {
    if (dashboard_) dashboard_->tick(now);
}

}  // namespace carousel::supervisor
