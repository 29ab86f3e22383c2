// `carousel device`: moves stages of a running pipeline from their GPU to the CPU, and back.

#include <fmt/format.h>

#include "cli/complete.hpp"
#include "cli/options.hpp"
#include "core/executable_path.hpp"
#include "os/table.hpp"
#include "runs/client.hpp"
#include "spec/programs.hpp"
#include "supervisor/plan/compatibility.hpp"
#include "supervisor/plan/device_choice.hpp"

namespace carousel::supervisor {
namespace {

struct device_arguments : client_arguments {
    std::string device, stage;
};

std::string shown_text(const run::ps_answer& ps) {
    table t({"STAGE", "DEVICE"});
    for (const run::ps_stage& s : ps.stages) t.add({s.name.value_or("?"), s.device.value_or("?")});
    std::string text = t.text();
    if (!ps.pipeline.fallback) return text + "no stage can leave its GPU (see the key `fallback`)\n";
    const run::ps_fallback& f = *ps.pipeline.fallback;
    if (f.stages.empty())
        return text + fmt::format("every stage is on its device; moves to the CPU: {}\n", f.fallbacks);
    return text + printable(run::describe(f)) + "\n";
}

/// The GPUs as the processes of the run see them. The supervisor itself never waits for a driver.
nlohmann::json probe_for_run(const run::record& run, const std::string& device) {
    const environment_override environment(run.supervisor);
    const machine_offer machine = probe_machine(executable_folder(), true);
    (void)choose_device(device, machine);  // throws if the GPU can't be used
    return to_json(machine);
}

int move_or_show(const device_arguments& a, const cli_environment& env) {
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    if (a.device.empty()) {
        env.out << shown_text(run::read_ps(run::client(run).ask(run::ps_request{}, a.wait_s)));
        return exit_code::ok;
    }
    run::device_request r{a.device, a.stage, nullptr};
    if (a.device != "cpu") r.probe = probe_for_run(run, a.device);
    const nlohmann::json reply = run::client(run).ask(r, a.wait_s);
    require_well(reply, run.name);
    env.out << printable(run::read_verdict(reply).message.value_or("")) << "\n";
    return exit_code::ok;
}

command_action add_device_command(const command_parts& p) {
    const auto a = std::make_shared<device_arguments>();
    add_client_options(p, *a);
    p.offers[p.app.add_option("DEVICE", a->device, "cpu, or the stages' GPU in the file: cuda:0")] =
        offer({"cpu", "cuda:0"});
    p.offers[p.app.add_option("--stage", a->stage, "Only this stage [all that can]")->type_name("STAGE")] =
        running_stages;
    p.app.footer(
        "\n"
        "Only stages with the key `fallback` can leave their GPU. No frame is lost or repeated.\n"
        "\n"
        "Examples:\n"
        "  carousel device              the devices in use, and why\n"
        "  carousel device cuda:0       returns to the GPU after a fallback\n"
        "  carousel device cpu --stage fragment");
    return [a](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return move_or_show(*a, env);
    };
}

}  // namespace

extern const command device_command{
    "device", "Move stages to the CPU, or back to their GPU; without DEVICE: show them", add_device_command};

}  // namespace carousel::supervisor
