// The program of a stage.

#include <fmt/format.h>
#include <unistd.h>
#include <carousel/stage.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "run/directory.hpp"
#include "stages/runner/dead_letters.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/heartbeat.hpp"
#include "stages/runner/runtime.hpp"
#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {

// `carousel-NAME --describe`: reads {"stage", "width", "height", "settings", "inputs": [{"stage", "format"}]}
// from stdin and prints the outputs that the stage would write, so that wiring, formats and settings are
// checked before anything starts. Opens no device. Prints {"format": {...} or null, "slot_bytes": N, "makes":
// [{"name", "bytes"}], "uses": [...], "commits_on_host": bool, "ends": bool} and further keys,
// or {"error": {"message", "key"}} with exit code 2.

namespace {
using nlohmann::json;

json describe_to_json(stage& s, const json& asked) {
    const settings own = settings::from_json(asked.value("settings", json::object()).dump());
    configuration c{.stage = asked.at("stage"),
                    .width = asked.at("width"),
                    .height = asked.at("height"),
                    .settings = &own,
                    .inputs = {},
                    .fps = asked.value("fps", 0.0),
                    .device = asked.value("device", "auto"),
                    .folder = asked.value("folder", "")};
    for (const json& i : asked.at("inputs"))
        c.inputs.push_back({i.at("stage"), ring::frame_format::from_json(i.at("format").dump())});
    for (const json& i : asked.value("sampled", json::array()))
        c.sampled.push_back({i.at("stage"), i.at("format").is_null()
                                                ? frame_format{}
                                                : ring::frame_format::from_json(i.at("format").dump())});
    description d = s.configure(c);
    own.refuse_unread();
    check_reads(d, c);
    if (d.parameters) d.parameters.check();
    json out{{"format", nullptr},
             {"slot_bytes", 0},
             {"more_outputs", json::array()},
             {"makes", json::array()},
             {"uses", d.uses},
             {"commits_on_host", s.commits_on_host()},
             {"ends", d.ends},
             {"state", !d.state.empty()},
             {"forwards_frames", d.forwards_frames},
             {"writable_inputs", d.writable_inputs},
             {"bit_equal", d.bit_equal},
             {"accepts_sampled_inputs", d.accepts_sampled_inputs}};
    check_outputs(d);
    std::vector<output_description> outputs = all_outputs(d);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
        output_description& o = outputs[k];
        const u64 bytes = o.lay_out();
        const json of{{"output", o.name},
                      {"format", parse_json(o.to_json(), json_channel::document)},
                      {"slot_bytes", bytes}};
        if (k == 0)
            out.update(of);
        else
            out["more_outputs"].push_back(of);
    }
    out["runs_on"] = name_of(d.device);
    out["parameters"] = d.parameters ? d.parameters.to_json() : json();
    for (const asset_description& a : d.makes) out["makes"].push_back({{"name", a.name}, {"bytes", a.bytes}});
    return out;
}

int answer_error(const std::string& message, const std::string& key) {
    std::cout << json{{"error", {{"message", message}, {"key", key}}}}.dump() << std::endl;
    return exit_code::usage;
}
}  // namespace

int describe(stage& s) {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    try {
        std::cout << describe_to_json(s, parse_json(text, json_channel::document)).dump() << std::endl;
        return exit_code::ok;
    } catch (const settings_error& e) {
        return answer_error(e.what(), e.key());
    } catch (const json::exception& e) {
        return answer_error(std::string("--describe reads a JSON object from stdin: ") + e.what(), "");
    } catch (const std::exception& e) {
        return answer_error(e.what(), "");
    }
}

namespace {

struct arguments {
    bool describe = false, help = false;
    std::string pipeline, stage, replay;
    double wait_s = 0;
};

constexpr const char* help_text =
    "A stage of a Carousel pipeline. The supervisor starts it (`carousel run FILE`); by hand:\n"
    "  --describe            read {stage, width, height, settings, inputs} from stdin, print the description "
    "of its output\n"
    "  -p NAME --stage NAME  take the seat of a stage that is down (`carousel down STAGE`) in a running "
    "pipeline\n"
    "  --replay FOLDER       run on the frame of a dead letter only (used by `carousel replay`)\n"
    "  --wait S              wait up to S seconds for the pipeline's supervisor [0]\n";

arguments parse(int argc, char** argv) {
    arguments a;
    for (int k = 1; k < argc; ++k) {
        const std::string arg = argv[k];
        const auto value = [&]() -> std::string {
            if (k + 1 >= argc) throw config_error(fmt::format("{} needs a value\n{}", arg, help_text));
            return argv[++k];
        };
        if (arg == "--describe")
            a.describe = true;
        else if (arg == "--help" || arg == "-h")
            a.help = true;
        else if (arg == "-p")
            a.pipeline = value();
        else if (arg == "--stage")
            a.stage = value();
        else if (arg == "--replay")
            a.replay = value();
        else if (arg == "--wait")
            a.wait_s = std::strtod(value().c_str(), nullptr);
        else
            throw config_error(fmt::format("unknown option {}\n{}", arg, help_text));
    }
    return a;
}

attach_request request_from(const arguments& a) {
    attach_request r;
    r.wait_s = a.wait_s;
    if (const char* text = std::getenv("CAROUSEL_ATTACH"); text != nullptr && a.pipeline.empty()) {
        // the text is "DIR SEAT ENTRY EPOCH"; only the directory may contain spaces
        const std::string all = text;
        std::size_t at = all.size();
        for (int k = 0; k < 3 && at != std::string::npos && at > 0; ++k) at = all.rfind(' ', at - 1);
        if (at == std::string::npos || at == 0)
            throw config_error(fmt::format("CAROUSEL_ATTACH=\"{}\" is not \"DIR SEAT ENTRY EPOCH\"", all));
        r.directory = all.substr(0, at);
        std::istringstream numbers(all.substr(at));
        numbers >> r.incarnation.seat >> r.incarnation.entry >> r.incarnation.epoch;
        return r;
    }
    if (a.pipeline.empty() || a.stage.empty())
        throw config_error(
            fmt::format("this program is a stage, which a supervisor starts. Start a pipeline with `carousel "
                        "run FILE`.\n{}",
                        help_text));
    r.directory = run::runs_folder() + "/" + a.pipeline;
    r.stage = a.stage;
    return r;
}

/// The name in the pipeline file; "" for a program that was started by hand without a name.
std::string stage_name(const arguments& a) {
    const char* variable = std::getenv("CAROUSEL_STAGE");
    return !a.stage.empty() || variable == nullptr ? a.stage : variable;
}

/// A process that has nothing of the run any more except its connection.
struct detached_process {
    std::string stage, directory;
    shm::unique_fd socket;
};

// The supervisor makes the new block when it has this process's report, so nothing that the process has done
// before may reach the block or the rings afterwards. The supervisor kills the process if the report is late.
// Without a supervisor the heartbeat ends it, and once that has been stopped, the report or the wait for the
// answer fails.
detached_process detach(std::optional<runtime>& r, std::unique_ptr<stage>& s, std::optional<heartbeat>& heart,
                        runtime_sources& from) {
    crash_here(crash_point::start_over_requested);
    s.reset();
    r->queue().drain();
    heart.reset();
    detached_process d{r->attached().stage, r->attached().runtime_directory, r->supervisor().release()};
    from.opened = r->shared_context();
    remove_exit_note();
    close_fault_record();
    r.reset();
    detach_from_run();
    // If the device has failed, its memory may still be mapped, and this throws.
    from.opened->make_queue()->drain();
    crash_here(crash_point::detached);
    return d;
}

/// Returns at the end of the run, or when this standby has detached itself to start over.
std::optional<detached_process> run(attachment to, std::unique_ptr<stage> made, runtime_sources& from) {
    std::optional<runtime> runs(std::in_place, std::move(to), *made, from);
    runtime& r = *runs;
    // Destroyed before the runtime, because its threads and its buffers use it until then.
    std::unique_ptr<stage> owned = std::move(made);
    stage& s = *owned;
    std::optional<heartbeat> heart;
    std::optional<detached_process> detached;
    with_exit_note([&] {
        // The heartbeat is started before the slow steps, so that a stage that is loading a mesh is not taken
        // for a stopped one. Throws if the heartbeat's thread cannot be started.
        heart.emplace(r);
        if (!r.is_standby())
            r.load_assets(s);  // a standby need not load the assets, because the holder of its seat has
                               // loaded them
        s.prepare(r);
        r.queue().drain();
        if ((r.stage_block().flags & shm::stage_flag::latest) != 0) {
            r.go_live();
            run_latest(r, s);
        } else {
            std::optional<stage_runner> runner(std::in_place, r, s);
            if (!r.is_standby()) {
                r.go_live();
            } else if (!runner->stand_by()) {
                runner.reset();
                detached = detach(runs, owned, heart, from);
                return;
            }
            runner->run();
        }
    });
    if (detached) return detached;
    crash_here(crash_point::run_over);
    heart->wait_for_supervisor();
    expect_exit();
    crash_here(crash_point::leaving);
    owned.reset();  // with a heartbeat: a link may wait for its peer here
    return {};
}

/// A standby starts over at most once, because it is a seat's working process from then on.
void run(std::unique_ptr<stage> (*make)(), std::unique_ptr<stage> made, const arguments& a) {
    runtime_sources from;
    from.hooks = test_hooks::of_environment();
    std::optional<detached_process> again = run(attach(request_from(a)), std::move(made), from);
    if (!again) return;
    report_detached(again->socket.get(), again->stage);  // before the stage's own code, which may be slow
    made = make();
    attachment to = attach_again(std::move(again->socket), again->stage, again->directory);
    (void)run(std::move(to), std::move(made), from);
}

int run_program(int argc, char** argv, std::unique_ptr<stage> (*make)()) {
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    int code = exit_code::ok;
    with_exit_note([&] {
        prepare_process_limits();
        const arguments a = parse(argc, argv);
        if (a.help) {
            fmt::print("{}", help_text);
            return;
        }
        if (!a.describe && a.replay.empty()) arm_crash_points(stage_name(a));
        crash_here(crash_point::process_started);
        std::unique_ptr<stage> s = make();
        if (a.describe) {
            code = describe(*s);
        } else if (!a.replay.empty()) {
            code = replay_dead_letter(*s, a.replay);
        } else {
            run(make, std::move(s), a);
        }
    });
    return after_output(code);
}

}  // namespace

}  // namespace carousel::stages

int carousel::stage_main(int argc, char** argv, std::unique_ptr<stage> (*make)()) {
    return stages::run_program(argc, argv, make);
}
