// The parser and the choice of the subcommand. CLI11 is seen here, in cli_parse*.cpp and nowhere else.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/cli.hpp"
#include "cli/complete.hpp"
#include "cli/parse.hpp"
#include "core/did_you_mean.hpp"
#include "core/errors.hpp"
#include "core/http_address.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* main_footer = R"(
Examples:
  carousel run pipelines/demo.toml                  frames flow; Ctrl-C ends it
  carousel run pipelines/demo.toml --frames 300 --size 640x480 --out 'frame_%05d.png'
  carousel ps                                       in another terminal: who runs, how fast
  carousel kill fragment                            it comes back; no frame is lost
  carousel up pipelines/demo.toml -d                in the background; `carousel down` ends it
  carousel logs -f fragment                         its lines, as they come
  carousel top                                      stages, rings and rates, live
  carousel graph pipelines/demo.toml | dot -Tsvg    a drawing (Graphviz), or --format mermaid
  source <(carousel completion bash)                Tab completes commands, stages, names
  carousel chaos pipelines/demo.toml                random faults, and what became of the frames
  carousel doctor                                   what this machine can do
  carousel new stage blur                           a project with a stage of your own
  carousel bench raster --peer opengl               how fast it renders here, beside OpenGL
  carousel bench pipeline pipelines/demo.toml       how fast the whole pipeline is

`carousel COMMAND --help` tells more.
Exit codes: 0 well; 1 a required stage failed, or a frame was lost, repeated or torn; 2 usage or pipeline file; 3 no device; 4 all frames
came, but some were given up and came without a picture; 70-75 see pipelines/README.md; 128+N signal N.)";

constexpr const char* up_footer = R"(
Examples:
  carousel up fragment                              `down fragment` is over
  carousel up pipelines/demo.toml -d --frames 1000  a pipeline in the background; without -d as `carousel run`

With -d it returns when all stages are ready, and the pipeline survives this terminal. Its lines: `carousel logs`, also after
its end (until the next run of that name, or `carousel clean`). Exit codes: 0 it runs; its own when it fails before that, with its last
lines; 1 when a stage isn't ready after 60 s (it goes on). Ctrl-C meanwhile ends the pipeline, too (130).)";

constexpr const char* run_footer = R"(
Examples:
  carousel run pipelines/demo.toml --device cpu --frames 200 --report r.json
  carousel run pipelines/mesh.toml --mesh bunny.obj --out ''
  carousel run pipelines/demo.toml --profile nsys --seconds 5
  carousel run pipelines/demo.toml --set geometry.triangles=1000 --set link.fragment.window=12 --set 'size=[640, 480]'

--set takes KEY (of [pipeline]), STAGE.KEY, parameters.KEY or link.STAGE.KEY; the value is written as in the file, quotes may be
left out. A relative path of a mesh or texture is taken from where you stand; in a pipeline file, from that file's folder.)";

void add_file(CLI::App* app, cli_arguments& a) { app->add_option("FILE", a.file, "Pipeline file (TOML)")->required(); }

void add_keys(CLI::App* app, cli_arguments& a, bool with_name = true) {
    app->add_option("--device", a.keys.device, "auto | cpu | cuda:N, for stages without a device of their own")->take_last();
    app->add_option("--frames", a.keys.frames, "End after N frames [0: when told to]")->type_name("N")->take_last();
    app->add_option("--fps", a.keys.fps, "Frames a second [0: as fast as it goes]")->type_name("N")->take_last();
    app->add_option("--size", a.keys.size, "Size of the pictures")->type_name("WxH")->take_last();
    app->add_option("--mesh", a.keys.mesh, "Mesh of the sources: an .obj, .gltf or .glb file or a shape's name")->type_name("FILE")->take_last();
    app->add_option("--out", a.keys.out, "Pictures of the displays that write some, e.g. 'frame_%05d.png'; '': none; may be repeated")
        ->type_name("[STAGE=]PATTERN")
        ->expected(1)
        ->take_all();
    app->add_option("--keep", a.keys.keep, "Leave the newest N pictures; 0: all [as in the file; with --frames: all]")->type_name("N")->take_last();
    app->add_option("--allow-dead-letters", a.keys.allow_dead_letters, "End with 0 although up to N frames were given up; true: any number [0]")
        ->type_name("N")
        ->take_last();
    if (with_name)
        app->add_option("-p,--name", a.keys.name, "Name of the running pipeline [the file's]")->type_name("NAME")->take_last();
    app->add_option("--set", a.keys.set, "Any key of the file; may be repeated")->type_name("KEY=VALUE")->expected(1)->take_all();
}

}  // namespace

CLI::App* add_client(CLI::App& app, cli_arguments& a, timing_texts& t, const std::string& name, const std::string& text) {
    CLI::App* sub = app.add_subcommand(name, text);
    sub->add_option("-p,--name", a.pipeline, "The running pipeline, where there are several")->type_name("NAME");
    sub->add_option("--wait", t.wait, "Wait S seconds for it to come [0]")->type_name("S");
    return sub;
}

namespace {

/// What `run FILE` and `up FILE` take beside the keys.
void add_start(CLI::App* run, cli_arguments& a, timing_texts& t) {
    run->add_flag("-d,--detach", a.detach, "In the background: returns when all stages are ready");
    run->add_flag("--in-background", a.in_background)->group("");  // what -d starts
    run->add_option("--report", a.report, "Write the run's report (JSON) to FILE")->type_name("FILE")->take_last();
    run->add_flag("--keep-logs", a.keep_logs, "`carousel logs` can read the lines after the end, too [with -d]");
    run->add_flag("--no-color", a.no_color, "No ANSI colours (also: NO_COLOR, or no terminal)");
    run->add_flag("--dry-run", a.dry_run, "Check everything, say what would run and what memory it takes; start nothing");
    run->add_flag("--fresh", a.fresh, "End a run of this name that has lost its supervisor, instead of taking it over");
    run->add_option("--seconds", t.seconds, "End, as by Ctrl-C, after S seconds [0: never]")->type_name("S");
    run->add_option("--http", a.http, "Serve the run as a web page, e.g. 127.0.0.1:8080 or 8080")->type_name("ADDR:PORT")->take_last();
}

void add_run(CLI::App& app, cli_arguments& a, timing_texts& t) {
    CLI::App* run = app.add_subcommand("run", "Run a pipeline until its end, Ctrl-C or `carousel down`");
    add_file(run, a);
    add_keys(run, a);
    add_start(run, a, t);
    run->add_option("--wait", t.wait, "Wait S seconds for a running pipeline of the same name to end [0]")->type_name("S");
    run->add_option("--profile", a.profile, "nsys: all stages on one timeline, in NAME.nsys-rep | ncu:STAGE: its kernels, in NAME-STAGE.ncu-rep")
        ->type_name("TOOL")
        ->take_last();
    run->footer(run_footer);
    CLI::App* validate =
        app.add_subcommand("validate", "Check a pipeline file, its stages' settings and their wiring; start nothing");
    add_file(validate, a);
    add_keys(validate, a);
    validate->add_flag("--json", a.json, "Print JSON");
    validate->footer("\nExample:\n  carousel validate pipelines/demo.toml --size 640x480");
}

void add_clients(CLI::App& app, cli_arguments& a, timing_texts& t) {
    CLI::App* ps = add_client(app, a, t, "ps", "Show the stages of a running pipeline");
    ps->add_flag("--json", a.json, "Print JSON");
    ps->footer("\nExamples:\n  carousel ps\n  carousel ps -p demo --json");
    CLI::App* trace = add_client(app, a, t, "trace", "Record every frame through every stage, for ui.perfetto.dev");
    trace->add_option("FILE", a.file, "Trace to write (JSON)")->required();
    trace->add_option("--seconds", t.seconds, "Record for S seconds [5, without --frames]")->type_name("S");
    trace->add_option("--frames", a.trace_frames, "End after N frames")->type_name("N");
    trace->footer("\nExample:\n  carousel trace demo.json --seconds 3");
    CLI::App* set = add_client(app, a, t, "set", "Change parameters of a running pipeline; without KEY=VALUE: show them");
    set->add_option("KEY=VALUE", a.assignments, "E.g. exposure=1.5, shading=normals, 'eye=[0, 1, 3]'");
    set->add_flag("--reset", a.reset, "All as at the start");
    set->add_flag("--json", a.json, "Print JSON");
    set->footer("\nA change counts from one frame on, which is printed; frames in work keep what they have.\n"
                "\nExamples:\n  carousel set\n  carousel set exposure=1.5 wireframe=true -p demo\n  carousel set --reset");
    const std::pair<const char*, const char*> told[] = {
        {"kill", "Send stages a signal [KILL]; they come back by their restart policy"},
        {"inject", "Make stages fail by themselves, with their next frame: hang, gpu-fault, exit or abort"},
        {"stop", "Hold stages (SIGSTOP, no deadline): the pipeline waits until `cont`"},
        {"cont", "Let held stages go on"},
        {"restart", "End stages and start them anew (a rebuilt program takes over); no frame is lost"},
        {"down", "End stages until `up`; without a stage: end the pipeline, as Ctrl-C does"},
    };
    for (const auto& [name, text] : told) {
        CLI::App* sub = add_client(app, a, t, name, text);
        const bool may_be_none = std::string(name) == "down";
        sub->add_option("STAGE", a.stages, "Stages: fragment, or fragment.1 for one of several instances")
            ->required(!may_be_none);
        if (may_be_none) sub->add_option("--timeout", t.timeout, "Wait S seconds for the pipeline's end [30]")->type_name("S");
        if (std::string(name) == "kill")
            sub->add_option("-s,--signal", a.signal, "Signal by name or number [KILL]")->type_name("SIGNAL");
        if (std::string(name) == "inject")
            sub->add_option("-f,--fault", a.fault, "hang (found at frame_timeout_ms) | gpu-fault | exit | abort [hang]")->type_name("FAULT");
        sub->footer(fmt::format("\nExample:\n  carousel {} fragment{}", name,
                                std::string(name) == "kill"     ? " --signal ABRT"
                                : std::string(name) == "inject" ? " --fault gpu-fault"
                                                                : ""));
    }
}

void add_up(CLI::App& app, cli_arguments& a, timing_texts& t) {
    CLI::App* up = add_client(app, a, t, "up", "Start stages that are down or have failed; with a pipeline file: start a pipeline");
    up->add_option("STAGE", a.stages, "Stages of a running pipeline; or one pipeline file: a word that ends in .toml, or a file that is there")
        ->required();
    add_keys(up, a, false);
    add_start(up, a, t);
    up->footer(up_footer);
}

void add_chaos(CLI::App& app, cli_arguments& a, timing_texts& t) {
    CLI::App* chaos = app.add_subcommand("chaos", "Run a pipeline under random faults, and prove that no frame was harmed");
    add_file(chaos, a);
    chaos->add_option("--device", a.keys.device, "auto | cpu | cuda:N, for stages without a device of their own")->take_last();
    chaos->add_option("--size", a.keys.size, "Size of the pictures")->type_name("WxH")->take_last();
    chaos->add_option("--mesh", a.keys.mesh, "Mesh of the sources")->type_name("FILE")->take_last();
    chaos->add_option("--fps", a.keys.fps, "Frames a second [0: as fast as it goes]")->type_name("N")->take_last();
    chaos->add_option("--set", a.keys.set, "Any key of the file; may be repeated")->type_name("KEY=VALUE")->expected(1)->take_all();
    chaos->add_option("--seed", a.chaos_seed, "Of the plan: which fault, whom, when [the clock]")->type_name("N")->check(CLI::PositiveNumber);
    chaos->add_option("--duration", t.seconds, "End after S seconds [30, without --count]")->type_name("S");
    chaos->add_option("--count", a.chaos_count, "End after N faults")->type_name("N");
    chaos->add_option("--rate", a.chaos_rate, "Faults a second; 0: the next as soon as all stages run again [2]")->type_name("R");
    chaos->add_option("--faults", a.chaos_faults, "Some of kill,term,stop,all,abort,exit,hang,gpu-fault,supervisor [all that can be had]")
        ->type_name("LIST");
    chaos->add_option("--report", a.report, "Write the report (JSON) to FILE")->type_name("FILE")->take_last();
    chaos->add_option("--log", a.chaos_log, "Write what was done when to FILE, a line of JSON each")->type_name("FILE")->take_last();
    chaos->add_flag("--no-compare", a.no_compare, "No undisturbed run of as many frames afterwards, and no comparison of image_hash");
    chaos->add_flag("--json", a.json, "Print the report as JSON");
    chaos->footer(R"(
Examples:
  carousel chaos pipelines/demo.toml --duration 60
  carousel chaos pipelines/demo.toml --device cuda:0 --count 500 --rate 5 --report chaos.json
  carousel chaos pipelines/demo.toml --faults kill,supervisor --seed 7 --log faults.jsonl

Faults: kill, term, stop: signals from outside; all: SIGKILL to every stage at once; abort, exit, hang, gpu-fault: a stage does it
by itself in the middle of a frame; supervisor: SIGKILL, and the same command takes the run over. The same seed gives the same
faults in the same order; when they fall depends on the machine. Exit code 0: lost = repeated = torn = dead letters = 0, the image_hash
of an undisturbed run (where no sink gives hashes: as many frames), no process died that was not hit, every run taken over, nothing left behind; 1: not so; 130: interrupted.)");
}

void add_view(CLI::App& app, cli_arguments& a) {
    CLI::App* view = app.add_subcommand("view", "Serve a running pipeline as a web page until Ctrl-C; waits for one where none runs");
    view->add_option("-p,--name", a.pipeline, "The running pipeline, where there are several")->type_name("NAME");
    view->add_option("--http", a.http, "Where to serve, e.g. 8081 or 0.0.0.0:8080 [127.0.0.1:8080]")->type_name("ADDR:PORT")->take_last();
    view->footer("\nExample:\n  carousel view -p demo --http 8081      then open the address that it prints");
}

void add_tools(CLI::App& app, cli_arguments& a) {
    CLI::App* doctor = app.add_subcommand("doctor", "Examine this machine: what Carousel needs, what was found, what to do");
    doctor->add_flag("--json", a.json, "Print JSON");
    doctor->add_flag("--no-color", a.no_color, "No ANSI colours");
    doctor->footer("\nExit code 3 when Carousel can't run here at all.");
    CLI::App* clean =
        app.add_subcommand("clean", "Remove what dead runs left (shared memory, sockets); living ones are never touched");
    clean->add_flag("--dry-run", a.dry_run, "Only say what would be removed");
    clean->add_flag("--json", a.json, "Print JSON");
    bench::add_bench_commands(*app.add_subcommand("bench", "Time the renderer's kernels, or whole runs of a pipeline"), a.bench);
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
    return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* o : app.get_options([](const CLI::Option*) { return true; }))
        for (const std::string& name : o->get_lnames()) names.push_back(fmt::format("--{}", name));
    return names;
}

/// The command that was chosen: "bench raster" is one below "bench".
const CLI::App& chosen_in(const CLI::App& app, std::string& words) {
    words += (words.empty() ? "" : " ") + app.get_name();
    const auto below = app.get_subcommands();
    return below.empty() ? app : chosen_in(*below.front(), words);
}

/// The sentence for a command line that could not be read.
std::string usage_sentence(const CLI::App& app, const CLI::ParseError& e) {
    std::string command;
    const CLI::App& where = chosen_in(app, command);
    std::string text = fmt::format("{}: {}", command, e.what());
    if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
        const std::vector<std::string> rest = where.remaining(true);
        const std::string first = rest.empty() ? "" : rest.front().substr(0, rest.front().find('='));
        text = first.starts_with('-')
                   ? fmt::format("{}: unknown option \"{}\"{}", command, first, did_you_mean_clause(first, option_names(where)))
                   : fmt::format("{}: \"{}\" is one argument too many", command, first);
    }
    return fmt::format("{} (see `{} --help`)", text, command);
}

void build(CLI::App& app, cli_arguments& a, timing_texts& t) {
    app.set_version_flag("--version", "carousel " CAROUSEL_VERSION);
    app.require_subcommand(1);
    app.footer(main_footer);
    add_run(app, a, t);
    add_clients(app, a, t);
    add_up(app, a, t);
    add_watching(app, a, t);
    add_chaos(app, a, t);
    add_view(app, a);
    add_tools(app, a);
    add_new(app, a);
}

/// Fills `a`. Throws CLI::ParseError, config_error.
void parse(CLI::App& app, cli_arguments& a, timing_texts& t, const std::vector<std::string>& words) {
    const std::vector<std::string> commands = command_names(app);
    if (words.empty()) throw config_error("no command given\n" + app.help());
    const std::string& first = words.front();
    if (first.starts_with('-') && first != "--help" && first != "-h" && first != "--version")
        throw config_error(
            fmt::format("\"{0}\" comes behind a command, e.g. `carousel run FILE {0}`; see `carousel --help`", first));
    if (!first.starts_with('-') && std::find(commands.begin(), commands.end(), first) == commands.end())
        throw config_error(fmt::format("unknown command \"{}\"; the commands are {}{}", first, fmt::join(commands, ", "),
                                       did_you_mean_clause(first, commands)));
    if (first == "bench" && words.size() > 1) bench::require_bench_command(words[1]);
    if (first == "new" && words.size() > 1) require_new_kind(words[1]);
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
    a.command = app.get_subcommands().front()->get_name();
    if (a.command == "bench") (void)bench::check_bench_command(*app.get_subcommands().front(), a.bench);
    if (a.command == "view" && a.http.empty()) a.http = http_address().text();
    if (!t.wait.empty()) a.wait_s = seconds_from("--wait", t.wait);
    if (!t.seconds.empty()) a.seconds = seconds_from("--seconds", t.seconds);
    if (!t.interval.empty()) a.interval_s = seconds_from("--interval", t.interval);
    if (!t.timeout.empty()) a.timeout_s = seconds_from("--timeout", t.timeout);
}

int dispatch(const cli_arguments& a, const cli_environment& env) {
    if (a.command == "run") return cli_run(a, env);
    if (a.command == "validate") return cli_validate(a, env);
    if (a.command == "up") return cli_up(a, env);
    if (a.command == "chaos") return cli_chaos(a, env);
    if (a.command == "logs") return cli_logs(a, env);
    if (a.command == "graph") return cli_graph(a, env);
    if (a.command == "top") return cli_top(a, env);
    if (a.command == "completion") return cli_completion(a, env);
    if (a.command == "ps") return cli_ps(a, env);
    if (a.command == "set") return cli_set(a, env);
    if (a.command == "trace") return cli_trace(a, env);
    if (a.command == "view") return cli_view(a, env);
    if (a.command == "doctor") return cli_doctor(a, env);
    if (a.command == "clean") return cli_clean(a, env);
    if (a.command == "bench") return cli_bench(a, env);
    if (a.command == "new") return cli_new(a, env);
    return cli_tell(a, env);
}

int complain(const cli_environment& env, bool json, int code, const std::string& message) {
    if (json)
        env.out << nlohmann::json{{"ok", false}, {"message", message}, {"code", code}}.dump(
                       2, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
    else
        env.err << "error: " << message << "\n";
    return code;
}

}  // namespace

bool wants_color(bool terminal, bool no_color) noexcept {
    const char* never = std::getenv("NO_COLOR");
    return terminal && !no_color && (never == nullptr || *never == 0);
}

int cli_main(const std::vector<std::string>& words, const cli_environment& env) noexcept {
    cli_arguments a;
    try {
        a.words = words;
        timing_texts t;
        CLI::App app("Carousel: crash-isolated, GPU-resident streaming pipelines", "carousel");
        build(app, a, t);
        if (!words.empty() && words.front() == complete_command) {  // asked by the shell: never an error
            for (const std::string& each : completions(app, {words.begin() + 1, words.end()})) env.out << each << "\n";
            return exit_code::ok;
        }
        try {
            parse(app, a, t, words);
        } catch (const CLI::CallForHelp&) {
            std::string command;
            env.out << chosen_in(app, command).help();
            return exit_code::ok;
        } catch (const CLI::CallForVersion& e) {
            env.out << e.what() << "\n";
            return exit_code::ok;
        } catch (const CLI::ParseError& e) {
            return complain(env, a.json, exit_code::usage, usage_sentence(app, e));
        }
        return dispatch(a, env);
    } catch (const error& e) {
        return complain(env, a.json, e.code(), e.what());
    } catch (const std::exception& e) {
        return complain(env, a.json, exit_code::stage_failed, fmt::format("{}: this is a bug in Carousel", e.what()));
    }
}

}  // namespace carousel::supervisor
