// `carousel wait`: returns when a pipeline has reached a state, for scripts.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "control/client.hpp"
#include "core/clock.hpp"
#include "runs/client.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::supervisor {
namespace {

constexpr u32 poll_us = 20'000;
constexpr f64 reply_timeout_s = 2;

struct wait_arguments {
    std::string pipeline, timeout;
    u64 frames = 0;
    bool end = false;
};

/// Returns the number of frames that have passed all sinks that get frames in order.
u64 delivered(const shm::control_block& c) {
    const telemetry::snapshot snap = telemetry::read_snapshot(c);
    u64 lowest = ~u64{0};
    for (const telemetry::stage_view& s : snap.stages)
        if (s.is_sink() && (s.flags & shm::stage_flag::latest) == 0)
            for (const u32 link : s.inputs)
                if (link < snap.links.size()) lowest = std::min(lowest, snap.links[link].tail);
    return lowest == ~u64{0} ? 0 : lowest;
}

/// Returns a clause that states what the pipeline has not reached yet; "" if it has reached the requested
/// state.
std::string missing(const wait_arguments& a, const run::observer& run) {
    if (a.end) return "has not ended";
    if (a.frames > 0) {
        const u64 now = delivered(run.block());
        return now >= a.frames ? "" : fmt::format("has delivered {} of {} frames", now, a.frames);
    }
    try {
        const auto reply = run::client(run.run()).ask(run::ps_request{}, 0, reply_timeout_s);
        const run::ps_pipeline p = run::read_ps(reply).pipeline;
        return p.state == "running" ? "" : "is " + p.state_text.value_or(p.state.value_or("silent"));
    } catch (const shm_error& e) {
        return fmt::format("does not answer ({})", e.what());
    }
}

/// Waits for the control block, because a run has a record before it has a control block.
run::observer observe(const wait_arguments& a, f64 timeout_s, u64 until) {
    const run::record run = choose_pipeline(a.pipeline, timeout_s);
    for (;;) try {
            return run::observer(run);
        } catch (const shm_error&) {
            if (now_ns() >= until) throw;
            ::usleep(poll_us);
        }
}

int wait_for(const wait_arguments& a, const cli_environment& env) {
    const f64 timeout_s = seconds_or("--timeout", a.timeout, 60);
    const u64 until = now_ns() + static_cast<u64>(std::clamp(timeout_s, 0.0, 1e9) * 1e9);
    run::observer run = observe(a, timeout_s, until);
    for (;;) {
        const bool over = run.poll().liveness.state == run::liveness::over;
        const std::string lacks = over && !a.end && a.frames == 0 ? "no longer runs" : missing(a, run);
        if (lacks.empty()) return exit_code::ok;
        if (over) {
            const std::optional<int> code = telemetry::end_of(run.block());
            if (a.end && code) {
                env.out << fmt::format("pipeline \"{}\" has ended: exit code {}\n", run.run().name, *code);
                return *code;
            }
            throw error(exit_code::stage_failed,
                        fmt::format("pipeline \"{}\" {}", run.run().name,
                                    a.end ? "has ended without a record of its exit code"
                                          : "has ended, and " + lacks));
        }
        if (now_ns() >= until)
            throw error(exit_code::stage_failed,
                        fmt::format("after {:.3g} s pipeline \"{}\" {}", timeout_s, run.run().name, lacks));
        ::usleep(poll_us);
    }
}

command_action add_wait_command(const command_parts& p) {
    const auto a = std::make_shared<wait_arguments>();
    add_run_name(p, a->pipeline);
    CLI::Option* const frames =
        p.app.add_option("--frames", a->frames, "Wait until all sinks have N frames")->type_name("N");
    p.app.add_flag("--end", a->end, "Wait until the run has ended; exits with the run's exit code")
        ->excludes(frames);
    p.app.add_option("--timeout", a->timeout, "Wait up to S seconds [60]")->type_name("S");
    p.app.footer(
        "\n"
        "Without an option, it waits until every stage has a process.\n"
        "In every case, it first waits for the pipeline to start.\n"
        "\n"
        "Examples:\n"
        "  carousel wait -p demo && carousel kill fragment\n"
        "  carousel wait -p demo --frames 1000 --timeout 30\n"
        "  carousel wait -p demo --end --timeout 3600\n"
        "\n"
        "Exit codes: 0 reached; 1 not reached in time, or the run ended before; 2 no such pipeline, or\n"
        "usage; with --end that of the run.");
    return [a](const common_words&, const cli_environment& env) { return wait_for(*a, env); };
}

}  // namespace

extern const command wait_command{"wait", "Wait until a pipeline runs, has delivered N frames, or has ended",
                                  add_wait_command};

}  // namespace carousel::supervisor
