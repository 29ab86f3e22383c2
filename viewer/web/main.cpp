// carousel-web: shows a running pipeline as a web dashboard. Started by `carousel view`, or by the supervisor
// of `carousel run --http`. The web UI reads only the newest frame, never blocks the pipeline, and may be
// killed at any time.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/process.hpp"
#include "core/secret.hpp"
#include "run/directory.hpp"
#include "viewer/watch/command_line.hpp"
#include "viewer/web/metric_table.hpp"
#include "viewer/web/server.hpp"
#include "viewer/web/status.hpp"

namespace {

using namespace carousel;
namespace web = carousel::viewer::web;

struct options {
    std::string name, http = "127.0.0.1:8080";
    std::string run_id;             ///< id of the run that the dashboard shows; "": any run of that name
    std::string asked;              ///< the address that was given to `carousel run --http`
    pid_t started_by = 0;           ///< pid of the supervisor that started this program
    bool metrics = false;           ///< prints the metrics once instead of serving
    bool metric_reference = false;  ///< prints the table of metrics in Markdown
    web::server_options served;
};

void print_line(const std::string& text) {
    std::fprintf(stdout, "%s\n", text.c_str());
    std::fflush(stdout);
}

void print_address(const http_address& a, const std::string& token) {
    print_line(fmt::format("web UI: {}", run::dashboard_url(a, token)));
    if (!a.is_loopback())
        print_line(
            fmt::format("web UI: {} can be reached from other machines: every client sees pictures and "
                        "figures; actions need the token",
                        a.text()));
}

/// Prints the state of the run each time it changes.
class state_printer {
public:
    explicit state_printer(web::watcher& w) : watcher_(w) {}
    void print_changes() {
        const auto [phase, run, notice] =
            watcher_.with_view([](const web::view& v) { return std::tuple(v.phase, v.run, v.notice); });
        std::string text;
        if (phase == web::run_phase::running && (phase != phase_ || run.run_id != run_id_))
            text = fmt::format("watching {} (pid {})", run.name, run.supervisor.pid);
        if (phase == web::run_phase::ended && phase != phase_)
            text = notice + " on the web UI (Ctrl-C ends it)";
        if (phase == web::run_phase::waiting && !notice.empty() && notice != notice_) text = notice;
        phase_ = phase;
        run_id_ = run.run_id;
        notice_ = notice;
        if (!text.empty()) print_line(text);
    }

private:
    web::watcher& watcher_;
    web::run_phase phase_ = web::run_phase::waiting;
    std::string run_id_, notice_;
};

/// Writes a record for the next supervisor of the run. Without it, that supervisor would start another
/// dashboard.
void leave_record(const options& o, const http_address& address) {
    try {
        run::write_dashboard_record(run::run_folder(o.name), {shm::this_process(), o.run_id, o.asked,
                                                              o.served.hosts, address, o.served.token});
    } catch (const error& e) {
        print_line(fmt::format("web UI: {}; another supervisor of this run will not find it", e.what()));
    }
}

/// The run's supervisor ends the dashboard. If that supervisor was killed, the dashboard continues, like the
/// stages, and ends when the run ends.
bool still_needed(web::watcher& watcher, pid_t started_by) {
    if (::getppid() == started_by) return true;
    return watcher.with_view([](const web::view& v) { return v.phase == web::run_phase::running; });
}

void serve(options& o) {
    o.served.address = parse_http_address(o.http);
    for (const std::string& host : o.served.hosts) check_http_host(host);
    // A supervisor that restarts the dashboard passes the same token, so that open browser pages stay valid.
    const char* given = std::getenv("CAROUSEL_WEB_TOKEN");
    o.served.token = given != nullptr && *given != '\0' ? given : new_token();
    const bool of_run = !o.run_id.empty();
    web::watcher watcher(o.name, !of_run);
    web::server server(o.served, watcher);
    if (of_run) leave_record(o, server.address());
    print_address(server.address(), o.served.token);
    state_printer printer(watcher);
    server.run([&] {
        if (of_run) return still_needed(watcher, o.started_by);
        printer.print_changes();
        return true;
    });
}

void print_metrics(const options& o) {
    // The supervisor's counters and the ledgers follow the control block's figures by about a second.
    constexpr u64 patience_ns = 5 * ns_per_s, completion_ns = 3 * ns_per_s;
    constexpr u32 poll_us = 20'000;
    web::watcher watcher(o.name, false);
    const u64 began = now_ns();
    for (const u64 until = began + patience_ns;; ::usleep(poll_us)) {
        const auto [text, notice] = watcher.with_view([&](const web::view& v) {
            const bool complete = (v.last_known || !v.led) && v.files.confirmed;
            const bool printed =
                v.phase == web::run_phase::running && (complete || now_ns() > began + completion_ns);
            return std::pair(printed ? web::metrics_text(v, now_ns()) : "", v.notice);
        });
        if (!text.empty()) {
            std::fputs(text.c_str(), stdout);
            return;
        }
        if (now_ns() > until) throw config_error("no metrics: " + notice);
    }
}

}  // namespace

int main(int argc, char** argv) {
    viewer::stay_outside_mps();
    options o;
    CLI::App app{
        "A web UI of a running Carousel pipeline: live picture, stages, rings, plots, events, and buttons "
        "that kill, stop or restart a stage.\n"
        "Also /snapshot.png, /stream.mjpg, /status.json, /metrics, /healthz and /readyz. It reads only the "
        "newest frame and never blocks the pipeline."};
    app.name("carousel-web");
    std::string stage, compare;
    app.add_option("-p,--name", o.name, "name of the pipeline (default: the only running pipeline)");
    app.add_option("--http", o.http,
                   "where to serve: ADDRESS:PORT or a port; port 0: any (default: 127.0.0.1:8080)");
    app.add_option("--stage", stage,
                   "pictures to show, STAGE or STAGE/PLANE (default: the input of the last sink)");
    app.add_option("--compare", compare,
                   "on the right, show the same frame in another ring: STAGE or STAGE/PLANE");
    app.add_option("--fps", o.served.fps, "most pictures per second in the stream (default: 25)")
        ->check(CLI::Range(0.1, 240.0));
    app.add_option("--quality", o.served.quality, "quality of its JPEG pictures (default: 80)")
        ->check(CLI::Range(1, 100));
    app.add_option("--http-host", o.served.hosts,
                   "another name of this machine in the address; may be repeated")
        ->expected(1)
        ->take_all();
    app.add_flag("--metrics", o.metrics, "print the metrics for Prometheus once, and exit");
    app.add_flag("--metric-reference", o.metric_reference, "print the table of metrics in Markdown")
        ->group("");
    app.add_flag("--read-only", o.served.read_only,
                 "send no command to the pipeline; the buttons and parameters are disabled");
    app.add_option("--with-run", o.run_id, "the run with which this process ends")->group("");
    app.add_option("--started-by", o.started_by, "pid of that run's supervisor")->group("");
    app.add_option("--asked-at", o.asked, "--http of the supervisor, for its successor")->group("");
    std::signal(SIGPIPE, SIG_IGN);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return viewer::usage_exit_code(app, e);
    }
    if (o.metric_reference) {
        std::fputs(web::metric_reference().c_str(), stdout);
        return exit_code::ok;
    }
    o.served.request.what.first = viewer::plane_from_text(stage);
    if (!compare.empty()) o.served.request.what.compare = viewer::plane_from_text(compare);
    try {
        o.metrics ? print_metrics(o) : serve(o);
        return exit_code::ok;
    } catch (const error& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return e.code();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", unexpected_text(e).c_str());
        return exit_code::stage_failed;
    }
}
