// Options of the subcommands that look at a pipeline and change nothing.

#include "cli/parse.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* logs_footer = R"(
Examples:
  carousel logs -f                        all stages, as the lines come; ends with the run
  carousel logs -n 50 fragment vertex     the last 50 lines of two stages
  carousel logs --since 5m --timestamps -p demo

Lines of the supervisor itself are under `carousel`. Each process keeps the last 4 to 8 MiB of its lines in the run's folder; restarts
don't end them. They go with the run, unless it ran in the background (-d) or with --keep-logs: then they stay until the next run of
that name, or `carousel clean`. Exit codes: 0, also at the end of the run with -f; 2 no such run, or none with lines; 130 Ctrl-C.)";

constexpr const char* top_footer = R"(
Examples:
  carousel top
  carousel top -p demo --interval 0.5
  carousel top --image                    with the newest picture, where the terminal has room for it
  carousel top --once                     one look, as text; also where the output is no terminal

Keys: q or Esc ends it, space redraws at once. Slots of a ring: . free, w being written, R ready, r being read, d done, ! quarantined
(of a dead process that may still write). Exit codes: 0, also when the pipeline ends; 2 no such pipeline; 128+N signal N (Ctrl-C: 130).)";

constexpr const char* graph_footer = R"(
Examples:
  carousel graph pipelines/demo.toml | dot -Tsvg -o demo.svg
  carousel graph pipelines/demo.toml --format mermaid
  carousel graph -p demo --live           of a running pipeline, with states, frames/s and lag

Exit codes: 0; 2 a bad file or no such pipeline.)";

constexpr const char* completion_footer = R"(
Examples:
  source <(carousel completion bash)                                    in ~/.bashrc
  source <(carousel completion zsh)                                     in ~/.zshrc, behind compinit
  carousel completion fish > ~/.config/fish/completions/carousel.fish

Tab then completes commands, options, pipeline files, names of running pipelines and their stages.)";

}  // namespace

void add_watching(CLI::App& app, cli_arguments& a, timing_texts& t) {
    CLI::App* logs = add_client(app, a, t, "logs", "Show what stages and supervisor have said");
    logs->add_option("STAGE", a.stages, "Stages: fragment, fragment.1, or carousel for the supervisor [all]");
    logs->add_flag("-f,--follow", a.follow, "Go on as lines come, until the run ends");
    logs->add_option("-n,--lines", a.lines, "Only the last N lines (before those of -f) [all]")->type_name("N")->take_last();
    logs->add_option("--since", a.since, "Only lines since then: 10s, 5m, 2h, 1d ago, or 2026-01-31T12:00:00Z")
        ->type_name("TIME")
        ->take_last();
    logs->add_flag("-t,--timestamps", a.timestamps, "With the time of each line (UTC)");
    logs->add_flag("--no-color", a.no_color, "No ANSI colours (also: NO_COLOR, or no terminal)");
    logs->add_flag("--json", a.json, "Print JSON, one object a line");
    logs->footer(logs_footer);
    CLI::App* top = add_client(app, a, t, "top", "Show stages, rings and rates of a running pipeline, live");
    top->add_option("--interval", t.interval, "Look every S seconds [1]")->type_name("S");
    top->add_flag("--image", a.image, "With the newest picture, in half blocks of 24 bit colours");
    top->add_flag("--once", a.once, "Print one look and end");
    top->add_flag("--no-color", a.no_color, "No ANSI colours (also: NO_COLOR, or no terminal)");
    top->footer(top_footer);
    CLI::App* graph = app.add_subcommand("graph", "Draw a pipeline as text for Graphviz or Mermaid");
    graph->add_option("FILE", a.file, "Pipeline file (TOML); or -p for one that runs");
    graph->add_option("-p,--name", a.pipeline, "A running pipeline")->type_name("NAME");
    graph->add_option("--format", a.format, "dot | mermaid [dot]")->check(CLI::IsMember({"dot", "mermaid"}))->take_last();
    graph->add_flag("--live", a.live, "With states, frames/s and lag (of a running pipeline)");
    graph->footer(graph_footer);
    CLI::App* completion = app.add_subcommand("completion", "Print what a shell needs to complete carousel's words");
    completion->add_option("SHELL", a.shell, "bash | zsh | fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    completion->footer(completion_footer);
}

}  // namespace carousel::supervisor
