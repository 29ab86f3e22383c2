#include "bench/pipeline_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "core/errors.hpp"
#include "core/user_input.hpp"

namespace carousel::bench {
namespace {

constexpr u32 most_rounds = 1000;

constexpr const char* pipeline_footer = R"(
Examples:
  carousel bench pipeline pipelines/demo.toml
  carousel bench pipeline pipelines/demo.toml --against ../before/build/release --sizes 1280x720,1920x1080 --rounds 10
  carousel bench pipeline pipelines/knots.toml --device cuda:0 --modes process,mps --json r.json
  carousel bench pipeline pipelines/demo.toml --modes none,process,free --depths auto,3,14/16 --lone --plot demo.svg

Each run is a separate `carousel run`, without pictures (--out ''). It is measured after the first frames and --warm-up for
--seconds or --frames; start and end are not measured. One round runs every mode and size (and build) once, and the order
rotates from round to round, so that other load on the machine affects all alike. Figures are medians of the rounds, with minimum and maximum in brackets.
  frames/s    delivered by every sink           p50, p99  source's claim to sink's commit, of the slowest sink
  CPU/frame   all stages and the supervisor     memory    of all processes, shared memory once; GPU: as nvidia-smi counts it, all GPUs
Next to each figure is its bound: only the same stages' work on that device, in one queue or several concurrently, measured in each round
(for stages that Carousel ships, all on one device; otherwise the output says that it is missing). --lone also measures single frames in the pipeline.
--modes none runs the shipped stages as threads of one process and one context, without ring, ledger or recovery:
the reference for isolation. The other modes then show their rate relative to it.
--against BUILD (a build folder, or a prefix of `cmake --install`) measures A = BUILD and B = this build in turn. The difference is
B's over A's: each round gives one ratio; mean and 95 % interval by Student's t over their logarithms.
A frame that is lost, repeated, torn or given up, or a process that dies, ends the measurement: its figures are not valid.
Exit codes: 0 measured, with any verdict; 1 a run failed or harmed a frame; 2 usage or pipeline file; 3 no such device; 75 a file can't
be written; 130 Ctrl-C.)";

/// `is`: a description of the number, e.g. "time; seconds".
f64 number_of(const char* option, const std::string& text, const char* is, f64 least) {
    constexpr f64 most = 86400;
    f64 value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most))
        throw config_error(
            fmt::format("{}: \"{}\" is no {} from {} to {} are", option, text, is, least, most));
    return value;
}

f64 seconds_of(const char* option, const std::string& text, f64 least) {
    return number_of(option, text, "time; seconds", least);
}

void read_modes(const std::string& text, pipeline_bench_options& o) {
    o.modes_requested = !text.empty();
    for (const std::string& mode : split_commas(text.empty() ? "process,mps" : text)) {
        if (mode != "none" && mode != "process" && mode != "free" && mode != "mps")
            throw config_error(fmt::format("--modes: \"{}\" is none of none, process, free, mps{}", mode,
                                           did_you_mean_clause(mode, {"none", "process", "free", "mps"})));
        o.modes.push_back(mode);
    }
}

/// Parses "auto", "14" (in_flight and window), "14/16".
std::optional<forced_depth> depth_from(const std::string& text) {
    if (text == "auto") return std::nullopt;
    forced_depth d;
    const char* const end = text.data() + text.size();
    auto [at, failed] = std::from_chars(text.data(), end, d.in_flight);
    d.window = d.in_flight;
    bool good = failed == std::errc{};
    if (good && at != end && *at == '/') {
        const auto [rest, wrong] = std::from_chars(at + 1, end, d.window);
        at = rest, good = wrong == std::errc{};
    }
    if (!good || at != end || d.in_flight < 1 || d.in_flight > 16 || d.window < 1 || d.window > 48)
        throw config_error(
            fmt::format("--depths: \"{}\" is not a depth; expected \"auto\", frames in flight from 1 to 16, "
                        "or these and a window from 1 to 48 as in 14/16",
                        text));
    return d;
}

}  // namespace

void add_pipeline_bench_options(CLI::App& app, pipeline_bench_texts& t) {
    app.add_option("FILE", t.file, "Pipeline file (TOML)")->required();
    app.add_option("--against", t.against, "Also measure this other build, in turn")
        ->type_name("BUILD")
        ->take_last();
    app.add_option("--rounds", t.rounds, "Runs of each mode, size and build [5]")
        ->type_name("N")
        ->take_last();
    app.add_option("--seconds", t.seconds, "Measured in each run [5]")->type_name("S")->take_last();
    app.add_option("--frames", t.frames, "Measured frames of each run, instead of --seconds")
        ->type_name("N")
        ->take_last();
    app.add_option("--warm-up", t.warm_up, "Warm-up of each run, after the first frames [1]")
        ->type_name("S")
        ->take_last();
    app.add_option("--modes", t.modes,
                   "none (one process, no isolation), process (a GPU context each), free (the same without "
                   "turns), mps [process,mps; mps if available]")
        ->type_name("MODE[,MODE]")
        ->take_last();
    app.add_option("--sizes,--size", t.sizes, "Sizes of the pictures [the file's]")
        ->type_name("WxH[,WxH...]")
        ->take_last();
    app.add_option("--depths", t.depths,
                   "Frames in flight of every stage and windows of all rings [the file's]")
        ->type_name("auto|N[/W][,...]")
        ->take_last();
    app.add_option("--lone", t.lone, "Also measure single frames: runs of FPS frames/s [from the bound]")
        ->type_name("[FPS]")
        ->expected(0, 1);
    app.add_option("--device", t.device,
                   "auto | cpu | cuda:N, for stages without their own device [the file's]")
        ->type_name("DEVICE")
        ->take_last();
    app.add_option("--set", t.set, "Any key of the file; may be repeated")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->take_all();
    app.add_option("--out", t.out, "Pictures of the displays [none]")->type_name("PATTERN")->take_last();
    app.add_flag("--quick", t.quick, "3 rounds of 1 s after a warm-up of 0.3 s, for a first impression");
    app.add_option("--json", t.json, "Write the figures of every run as JSON to FILE [stdout]")
        ->type_name("[FILE]")
        ->expected(0, 1);
    app.add_option("--plot", t.plot, "Draw the figures as SVG into FILE")->type_name("FILE.svg")->take_last();
    app.footer(pipeline_footer);
    app.callback([&app, &t] {
        t.wants_json = app.count("--json") > 0;
        t.wants_lone = app.count("--lone") > 0;
    });
}

pipeline_bench_options read_options(const pipeline_bench_texts& t) {
    pipeline_bench_options o;
    o.file = t.file, o.against = t.against, o.frames = t.frames;
    if (t.quick) o.rounds = 3, o.seconds = 1, o.warm_up_s = 0.3;
    if (t.rounds > most_rounds)
        throw config_error(fmt::format("--rounds: {} is not a number from 1 to {}", t.rounds, most_rounds));
    if (t.rounds > 0) o.rounds = t.rounds;
    if (!t.seconds.empty() && t.frames > 0) throw config_error("--seconds and --frames exclude each other");
    if (!t.seconds.empty()) o.seconds = seconds_of("--seconds", t.seconds, 0.1);
    if (!t.warm_up.empty()) o.warm_up_s = seconds_of("--warm-up", t.warm_up, 0);
    read_modes(t.modes, o);
    if (!t.sizes.empty())
        for (const std::string& size : split_commas(t.sizes))
            o.sizes.push_back(picture_size_from("--sizes", size));
    if (!t.depths.empty()) o.depths.clear();
    for (const std::string& depth : split_commas(t.depths))
        if (!t.depths.empty()) o.depths.push_back(depth_from(depth));
    o.lone = t.wants_lone;
    if (!t.lone.empty()) o.lone_fps = number_of("--lone", t.lone, "pace; frames/s", 0.1);
    if (!t.plot.empty() && !t.plot.ends_with(".svg"))
        throw config_error(fmt::format("--plot: \"{}\" must end in .svg", t.plot));
    o.plot = t.plot;
    for (const std::string& each : t.set) o.words.insert(o.words.end(), {"--set", each});
    if (!t.device.empty()) o.words.insert(o.words.end(), {"--device", t.device});
    o.out = t.out;
    if (t.wants_json) o.json = t.json.empty() ? "-" : t.json;
    return o;
}

}  // namespace carousel::bench
