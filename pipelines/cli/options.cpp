#include "cli/options.hpp"

#include <fmt/format.h>

#include "cli/complete.hpp"
#include "control/client.hpp"
#include "control/request_message.hpp"
#include "core/json.hpp"
#include "os/table.hpp"
#include "runs/client.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

/// Returns the exit code that the refusal contains; 1 if the refusal contains no valid exit code.
int code_of(const run::verdict& v) {
    const i64 code = v.code.value_or(0);
    return code > 0 && code < 126 ? static_cast<int>(code) : exit_code::stage_failed;
}

}  // namespace

void add_run_name(const command_parts& p, std::string& name) {
    CLI::Option* o = p.app
                         .add_option("-p,--name", name,
                                     "Name of the running pipeline, or id of the run, if several are running")
                         ->type_name("NAME");
    p.offers[o] = running_pipelines;
}

void add_client_options(const command_parts& p, client_arguments& a) {
    add_run_name(p, a.pipeline);
    p.app.add_option("--wait", a.wait, "Wait up to S seconds for the pipeline to start [0]")->type_name("S");
}

f64 seconds_or(const char* option, const std::string& text, f64 otherwise) {
    return text.empty() ? otherwise : seconds_from(option, text);
}

void read_wait(client_arguments& a) { a.wait_s = seconds_or("--wait", a.wait, a.wait_s); }

void add_json(const command_parts& p, const char* text) { p.app.add_flag("--json", p.common.json, text); }

void add_no_color(const command_parts& p, bool& no_color) {
    p.app.add_flag("--no-color", no_color, "No ANSI colours (also with NO_COLOR, TERM=dumb, or no terminal)");
}

void add_http_hosts(const command_parts& p, std::vector<std::string>& names) {
    p.app
        .add_option("--http-host", names,
                    "Another name of this machine in the address of the web UI; may be repeated")
        ->type_name("NAME")
        ->expected(1)
        ->take_all();
}

void add_pipeline_file(const command_parts& p, std::string& file) {
    p.offers[p.app.add_option("FILE", file, "Pipeline file (TOML)")->required()] = offer_files({".toml"});
}

void add_report(const command_parts& p, std::string& file, const char* text) {
    p.offers[p.app.add_option("--report", file, text)->type_name("FILE")->take_last()] = offer_files({""});
}

void add_device(const command_parts& p, pipeline_options& keys) {
    CLI::Option* o =
        p.app.add_option("--device", keys.device, "auto | cpu | cuda:N, for stages without their own device");
    p.offers[o->take_last()] = offer({"auto", "cpu", "cuda:0"});
}

void add_fps(const command_parts& p, pipeline_options& keys) {
    p.app.add_option("--fps", keys.fps, "Frames per second [0: as fast as possible]")
        ->type_name("N")
        ->take_last();
}

void add_size(const command_parts& p, pipeline_options& keys) {
    CLI::Option* o =
        p.app.add_option("--size", keys.size, "Size of the pictures")->type_name("WxH")->take_last();
    p.offers[o] = offer({"640x480", "1280x720", "1920x1080", "3840x2160"});
}

void add_mesh(const command_parts& p, pipeline_options& keys, const char* text) {
    p.offers[p.app.add_option("--mesh", keys.mesh, text)->type_name("FILE")->take_last()] =
        offer_files({".obj", ".gltf", ".glb", ".ply"});
}

void add_set(const command_parts& p, pipeline_options& keys) {
    p.app.add_option("--set", keys.set, "Any key of the file; may be repeated")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->take_all();
}

void add_keys(const command_parts& p, pipeline_options& keys, bool with_name) {
    add_device(p, keys);
    p.app.add_option("--frames", keys.frames, "End after N frames [0: no limit]")
        ->type_name("N")
        ->take_last();
    add_fps(p, keys);
    add_size(p, keys);
    add_mesh(p, keys, "Mesh that the sources use: an .obj, .gltf, .glb or .ply file or a shape's name");
    CLI::Option* out = p.app.add_option("--out", keys.out,
                                        "Files for the pictures of the displays, e.g. 'frame_%05d.png' "
                                        "(.jpg, .rgba, .npy); '': none; may be repeated");
    p.offers[out->type_name("[STAGE=]PATTERN")->expected(1)->take_all()] = offer_files({""});
    p.app
        .add_option("--record", keys.record,
                    "Record the output ring of this stage; may be repeated, or a list with commas")
        ->type_name("STAGE")
        ->delimiter(',')
        ->expected(1)
        ->take_all();
    p.offers[p.app
                 .add_option("--record-to", keys.record_to,
                             "The recording, an .mcap file [NAME.mcap next to FILE]")
                 ->type_name("FILE")
                 ->take_last()] = offer_files({".mcap"});
    p.app
        .add_option("--keep", keys.keep,
                    "Keep the newest N pictures; 0: all [as in the file; with --frames: all]")
        ->type_name("N")
        ->take_last();
    p.app
        .add_option("--allow-dead-letters", keys.allow_dead_letters,
                    "Exit with 0 if at most N frames were given up; true: any number [0]")
        ->type_name("N")
        ->take_last();
    p.app.add_flag(
        "--insecure", keys.insecure,
        "Accept addresses of [hosts.NAME] that are not private, although frames are sent unencrypted");
    if (with_name) {
        CLI::Option* o =
            p.app.add_option("-p,--name", keys.name, "Name of the running pipeline [the file's]")
                ->type_name("NAME");
        p.offers[o->take_last()] = running_pipelines;
    }
    add_set(p, keys);
}

void require_well(const json& reply, const std::string& pipeline) {
    if (const run::verdict v = run::read_verdict(reply); !v.ok)
        throw error(code_of(v), v.message.value_or(fmt::format(
                                    "pipeline \"{}\" refused the request without a reason", pipeline)));
}

void add_request_options(const command_parts& p, stage_request_arguments& a, bool stage_required) {
    add_client_options(p, a);
    CLI::Option* o =
        p.app.add_option("STAGE", a.stages, "Stages: fragment, or fragment.1 for one of several instances");
    p.offers[o->required(stage_required)] = running_stages;
}

int send_to_stages(const stage_request_arguments& a, const run::request& request, const cli_environment& env,
                   const stage_check& check) {
    const run::record run = choose_pipeline(a.pipeline, a.wait_s);
    const std::string command = run::command_of(request);
    int code = exit_code::ok;
    if (check)
        for (const std::string& stage : a.stages) check(run, stage);
    for (const std::string& stage : a.stages) {
        const run::verdict v =
            run::read_verdict(run::client(run).ask(run::of_stage(request, stage), a.wait_s));
        if (v.ok) {
            env.out << printable(v.message.value_or(fmt::format("{} {}", command, stage))) << "\n";
            continue;
        }
        env.err << "error: "
                << v.message.value_or(
                       fmt::format("pipeline \"{}\" refused the request without a reason", run.name))
                << "\n";
        if (code == exit_code::ok) code = code_of(v);
    }
    return code;
}

command_action add_plain(const command_parts& p) { return add_plain(p, {}); }

command_action add_plain(const command_parts& p, const stage_check& check) {
    const std::string name = p.app.get_name();
    const auto a = std::make_shared<stage_request_arguments>();
    add_request_options(p, *a);
    p.app.footer(fmt::format("\nExample:\n  carousel {} fragment", name));
    const run::seat_order order = enum_named<run::seat_order>(name).value();
    return [a, order, check](const common_words&, const cli_environment& env) {
        read_wait(*a);
        return send_to_stages(*a, run::seat_request{order, ""}, env, check);
    };
}

}  // namespace carousel::supervisor
