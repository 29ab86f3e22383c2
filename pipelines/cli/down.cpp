// `carousel down`: ends stages, or the whole pipeline.

#include <fmt/format.h>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "runs/client.hpp"
#include "runs/spaces.hpp"

namespace carousel::supervisor {
namespace {

struct down_arguments : stage_request_arguments {
    std::string timeout;
};

int take_down(const down_arguments& a, const cli_environment& env) {
    const f64 timeout_s = seconds_or("--timeout", a.timeout, 30);
    if (!a.stages.empty()) return send_to_stages(a, run::seat_request{run::seat_order::down, ""}, env);
    if (!a.pipeline.empty())
        if (const auto ended = end_space(a.pipeline, timeout_s)) {
            env.out << *ended << "\n";
            return exit_code::ok;
        }
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    end_pipeline(run, timeout_s);
    env.out << fmt::format("pipeline \"{}\" has ended\n", run.name);
    return exit_code::ok;
}

command_action add_down_command(const command_parts& p) {
    const auto a = std::make_shared<down_arguments>();
    add_request_options(p, *a, false);
    p.offers[p.app.get_option("--name")] = pipelines_and_spaces;
    p.app.add_option("--timeout", a->timeout, "Wait up to S seconds for the pipeline's end [30]")
        ->type_name("S");
    p.app.footer(
        "\n"
        "Examples:\n"
        "  carousel down fragment\n"
        "  carousel down -p lab     (a space: like Ctrl-C in `carousel hold lab`)");
    return [a](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return take_down(*a, env);
    };
}

}  // namespace

extern const command down_command{
    "down",
    "End stages, which stay down until `up`; without a stage: end the pipeline or the space, like Ctrl-C",
    add_down_command};

}  // namespace carousel::supervisor
