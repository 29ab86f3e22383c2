// `carousel trace`: records every frame through every stage for some seconds, as a file for ui.perfetto.dev.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <cerrno>
#include <csignal>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"
#include "os/event_loop.hpp"
#include "os/table.hpp"
#include "runs/client.hpp"
#include "telemetry/trace_file.hpp"
#include "trace/remote_traces.hpp"
#include "trace/tracer.hpp"

namespace carousel::supervisor {
namespace {

struct trace_arguments : client_arguments {
    std::string file, seconds;
    u64 frames = 0;     ///< the trace ends after this number of frames; 0: it ends after the given time
    bool here = false;  ///< if the pipeline has several hosts, traces only this host
    bool with_parent = false;  ///< set if started by a supervisor: the trace ends when that supervisor ends
    std::string coordinator_trace;    ///< file with the trace of the coordinator, which is joined with the
                                      ///< traces in `joined`; "": a new trace is recorded
    std::vector<std::string> joined;  ///< HOST=FILE
};

std::string trace_text(const std::string& path) {
    const auto text = read_file(path);
    if (!text) throw config_error(fmt::format("{} can't be read: {}", path, errno_text(errno)));
    return *text;
}

int join_files(const trace_arguments& a, const cli_environment& env) {
    if (a.coordinator_trace.empty() || a.joined.empty())
        throw config_error("--coordinator FILE and --join HOST=FILE must be used together");
    std::vector<telemetry::named_trace> others;
    for (const std::string& each : a.joined) {
        const std::size_t equals = each.find('=');
        if (equals == std::string::npos || equals == 0)
            throw config_error(fmt::format("--join {}: expected HOST=FILE", each));
        others.push_back({each.substr(0, equals), trace_text(each.substr(equals + 1))});
    }
    output_file file(a.file);
    const std::string text = telemetry::join_traces(trace_text(a.coordinator_trace), others);
    file.write(text);
    env.out << fmt::format("{} ({}): open it at ui.perfetto.dev\n", printable(a.file),
                           human_bytes(text.size()));
    return exit_code::ok;
}

int trace(const trace_arguments& a, const cli_environment& env) {
    const f64 seconds = seconds_or("--seconds", a.seconds, 0);
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    std::optional<interrupts> early;
    if (a.with_parent) {
        std::signal(SIGXFSZ, SIG_DFL);  // trace_files limits the file's size, and reports if this signal ends
                                        // the process
        early.emplace();                // created early, because a supervisor may end this process before the
                                        // first poll
        // Without this call, this process could outlive the supervisor by an hour.
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
    output_file file(a.file);
    remote_traces others(run);
    if (!a.here) others.begin(a.wait_s);
    tracer t(run, a.wait_s);
    t.record(seconds > 0 || a.frames > 0 ? seconds : 5, a.frames);
    telemetry::trace_summary s;
    std::string text = t.text(s);
    std::vector<std::string> warnings;
    try {
        if (const auto parts = others.collect(t.clocks()); !parts.empty())
            text = telemetry::join_traces(text, parts, &warnings);
    } catch (const std::exception& e) {  // the trace then contains only this host's part
        warnings.push_back(fmt::format("the traces of the other hosts are missing: {}", e.what()));
    }
    file.write(text);
    for (const auto& [host, why] : others.problems())
        warnings.push_back(fmt::format("the trace of host {} is missing: {}", host, why));
    for (const std::string& w : warnings) env.err << "warning: " << printable(w) << "\n";
    for (const std::string& each : t.updates()) env.err << "note: " << printable(each) << "\n";
    if (!t.ending().empty()) env.err << "note: " << t.ending() << "\n";
    if (t.overwritten() > 0 || s.missing > 0)
        env.err << fmt::format(
            "warning: {} stamps were overwritten before they were read and {} bars are missing: {}\n",
            t.overwritten(), s.missing,
            t.updates().empty() ? "this machine is too busy"
                                : "stages record no stamps while a run restarts or has no supervisor");
    env.out << fmt::format(
        "{}: {} frames{} in {:.2f} s, {} deaths, {} attempts discarded; {} ({}): open it at "
        "ui.perfetto.dev\n",
        run.name, s.frames, s.frames > 0 ? fmt::format(" ({} to {})", s.first, s.last) : "", t.seconds(),
        s.deaths, s.lost_attempts, printable(a.file), human_bytes(text.size()));
    return exit_code::ok;
}

command_action add_trace_command(const command_parts& p) {
    const auto a = std::make_shared<trace_arguments>();
    add_client_options(p, *a);
    p.app.add_option("FILE", a->file, "Trace to write (JSON)")->required();
    p.app.add_option("--seconds", a->seconds, "Record for S seconds [5 if --frames is not given]")
        ->type_name("S");
    p.app.add_option("--frames", a->frames, "End after N frames")->type_name("N");
    // A supervisor that starts this program sets this flag (see trace_files).
    p.app.add_flag("--with-parent", a->with_parent)->group("");
    p.app.add_flag("--here", a->here, "Record only this host's stages (of a pipeline on several hosts)");
    p.offers[p.app
                 .add_option("--coordinator", a->coordinator_trace,
                             "Record nothing; join FILE, the coordinator's trace, with the traces of --join")
                 ->type_name("FILE")] = offer_files({".json"});
    p.app
        .add_option("--join", a->joined,
                    "The trace that another host recorded in the same seconds; its times are converted to "
                    "the coordinator's clock")
        ->type_name("HOST=FILE")
        ->expected(1)
        ->take_all();
    p.app.footer(R"(
Examples:
  carousel trace demo.json --seconds 3
  carousel trace all.json --coordinator demo.json --join b=b.json

A pipeline on several hosts is traced on all of them. Their stages are named HOST/STAGE, and all times are those of this
host's clock. The second example joins traces that were recorded with --here on each host in the same seconds.)");
    return [a](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return a->coordinator_trace.empty() && a->joined.empty() ? trace(*a, env) : join_files(*a, env);
    };
}

}  // namespace

extern const command trace_command{"trace", "Record every frame through every stage, for ui.perfetto.dev",
                                   add_trace_command};

}  // namespace carousel::supervisor
