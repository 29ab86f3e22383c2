// `carousel run` and `carousel validate`: everything is read and checked before anything is started.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ring/frame_format.hpp"
#include "supervisor/cli.hpp"
#include "supervisor/table.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

std::string format_text(const json& format) {
    if (format.is_null()) return "-";
    try {
        return ring::frame_format::from_json(format.dump()).describe();
    } catch (const error&) {
        return format.value("type", "?");
    }
}

std::string name_with_count(const stage_spec& s) {
    return s.instances > 1 ? fmt::format("{} x {}", s.name, s.instances) : s.name;
}

std::string plan_text(const pipeline& p, const std::vector<stage_description>& all) {
    table t({"STAGE", "READS", "DEVICE", ">IN FLIGHT", ">SLOT", "PROGRAM", "WRITES"});
    for (std::size_t k = 0; k < all.size(); ++k) {
        const stage_spec& s = p.stages[k];
        t.add({name_with_count(s), s.inputs.empty() ? "-" : fmt::format("{}", fmt::join(s.inputs, ", ")), s.device,
               std::to_string(s.in_flight), all[k].slot_bytes == 0 ? "-" : human_bytes(all[k].slot_bytes), all[k].program,
               format_text(all[k].format)});
    }
    return fmt::format("{}: pipeline \"{}\", {} stages, {} x {}: fine\n{}", p.file, p.name, p.stages.size(), p.width, p.height,
                       t.text());
}

json stage_json(const pipeline& p, const stage_spec& s, const stage_description& d) {
    json makes = json::array();
    for (const asset_spec& a : d.makes) makes.push_back({{"name", a.name}, {"bytes", a.bytes}});
    json j = {{"name", s.name},
              {"program", d.program},
              {"inputs", s.inputs},
              {"device", s.device},
              {"in_flight", s.in_flight},
              {"instances", s.instances},
              {"restart", name_of(s.restart)},
              {"group", name_of(s.group)},
              {"optional", s.optional},
              {"settings", s.settings},
              {"format", d.format},
              {"slot_bytes", d.slot_bytes},
              {"makes", makes},
              {"uses", d.uses},
              {"commits_on_host", d.commits_on_host}};
    const auto link = p.links.find(s.name);
    if (link == p.links.end()) return j;
    j["link"] = {{"window", nullptr}, {"memory", name_of(link->second.memory)}};
    if (link->second.window) j["link"]["window"] = *link->second.window;
    return j;
}

json plan_json(const pipeline& p, const std::vector<stage_description>& all) {
    json stages = json::array();
    for (std::size_t k = 0; k < all.size(); ++k) stages.push_back(stage_json(p, p.stages[k], all[k]));
    return {{"ok", true},
            {"pipeline",
             {{"name", p.name},
              {"file", p.file},
              {"device", p.device},
              {"size", {p.width, p.height}},
              {"fps", p.fps},
              {"frames", p.frames},
              {"frame_timeout_ms", p.frame_timeout_ms},
              {"isolation", p.isolation}}},
            {"stages", stages}};
}

}  // namespace

int cli_validate(const cli_arguments& a, const cli_environment& env) {
    const pipeline p = read_pipeline(a.file, overrides_from(a.keys));
    const std::vector<stage_description> all = describe_stages(p);
    env.out << (a.json ? plan_json(p, all).dump(2, ' ', false, json::error_handler_t::replace) + "\n" : plan_text(p, all));
    return exit_code::ok;
}

int cli_run(const cli_arguments& a, const cli_environment& env) {
    const pipeline p = read_pipeline(a.file, overrides_from(a.keys));
    run_options o;
    o.stages = describe_stages(p);
    o.report_file = a.report;
    o.color = wants_color(env.err_is_terminal, a.no_color);
    o.seconds = a.seconds;
    o.wait_s = a.wait_s;
    o.command_line = a.words;
    if (!a.dry_run) return env.run(p, o);
    env.out << plan_text(p, o.stages);
    return exit_code::ok;
}

}  // namespace carousel::supervisor
