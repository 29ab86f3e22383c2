// `carousel up`: starts a pipeline file, or stages.

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/clients.hpp"
#include "cli/completers.hpp"
#include "cli/start.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* up_footer = R"(
Examples:
  carousel up fragment                              undoes `down fragment`
  carousel up pipelines/demo.toml -d --frames 1000  a pipeline in the background; without -d like `carousel run`

With -d it returns when all stages are ready, and the pipeline continues after this terminal is closed. `carousel logs` shows its logs, also after
its end (until the next run of that name, or `carousel clean`). Exit codes: 0 started; otherwise the run's exit code, with its last
lines; 1 if a stage is not ready after 60 s (the pipeline continues). Ctrl-C meanwhile also ends the pipeline (130).)";

struct up_arguments {
    stage_request_arguments stages;
    start_arguments start;
};

/// "demo.toml" counts as a file even if it does not exist; other words count if such a file exists.
bool is_file_word(const std::string& word) {
    std::error_code failed;
    return word.ends_with(".toml") || std::filesystem::is_regular_file(word, failed);
}

/// The first option on the command line of `up` that needs a pipeline file; "" if there is none.
std::string start_option(const start_arguments& a) {
    const pipeline_options& k = a.keys;
    const std::pair<bool, const char*> given[] = {
        {k.device.has_value(), "--device"}, {k.frames.has_value(), "--frames"},
        {k.fps.has_value(), "--fps"},       {k.size.has_value(), "--size"},
        {k.mesh.has_value(), "--mesh"},     {!k.out.empty(), "--out"},
        {k.keep.has_value(), "--keep"},     {!k.set.empty(), "--set"},
        {!k.record.empty(), "--record"},    {k.record_to.has_value(), "--record-to"},
        {!a.report.empty(), "--report"},    {k.allow_dead_letters.has_value(), "--allow-dead-letters"},
        {a.dry_run, "--dry-run"},           {a.detach, "--detach"},
        {a.keep_logs, "--keep-logs"},       {a.seconds_s > 0, "--seconds"},
        {!a.first.empty(), "--first"},      {k.insecure, "--insecure"},
        {!a.http.empty(), "--http"},        {!a.http_hosts.empty(), "--http-host"}};
    for (const auto& [is, name] : given)
        if (is) return name;
    return "";
}

int bring_up(const up_arguments& a, const cli_environment& env) {
    for (const std::string& word : a.stages.stages) {
        if (!is_file_word(word)) continue;
        if (a.stages.stages.size() > 1)
            throw config_error(
                fmt::format("up: {} is a pipeline file and must be the only argument: `up FILE` starts a "
                            "pipeline, `up STAGE...` starts stages of a running pipeline",
                            word));
        start_arguments start = a.start;
        start.file = word;
        if (!a.stages.pipeline.empty()) start.keys.name = a.stages.pipeline;
        return run_or_show(start, env, read_with_overrides(start.file, start.keys));
    }
    if (const std::string option = start_option(a.start); !option.empty())
        throw config_error(
            fmt::format("up: {} needs a pipeline file, but {} is not one: expected a name that ends in "
                        ".toml, or an existing file",
                        option, a.stages.stages.front()));
    return send_to_stages(a.stages, run::seat_request{run::seat_order::up, ""}, env);
}

std::vector<std::string> stages_and_files(const completion_request& request) {
    std::vector<std::string> all = running_stages(request);
    for (std::string& file : offer_files({".toml"})(request)) all.push_back(std::move(file));
    return all;
}

command_action add_up_command(const command_parts& p) {
    const auto a = std::make_shared<up_arguments>();
    add_client_options(p, a->stages);
    CLI::Option* o = p.app.add_option(
        "STAGE", a->stages.stages,
        "Stages of a running pipeline; or one pipeline file: a name that ends in .toml, or an existing file");
    p.offers[o->required()] = stages_and_files;
    add_keys(p, a->start.keys, false);
    add_start_options(p, a->start);
    p.app.footer(up_footer);
    return [a](const common_words& c, const cli_environment& env) {
        a->start.wait = a->stages.wait;
        a->start.words = c.words;
        read_wait(a->stages);
        read_times(a->start);
        return bring_up(*a, env);
    };
}

}  // namespace

extern const command up_command{
    "up", "Start stages that are down or have failed; with a pipeline file: start a pipeline",
    add_up_command};

}  // namespace carousel::supervisor
