#include "stages/runner/describe.hpp"

#include <cstdio>
#include <iostream>
#include <iterator>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::stages {
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
             {"forwards_frames", d.forwards_frames},
             {"writable_inputs", d.writable_inputs},
             {"accepts_sampled_inputs", d.accepts_sampled_inputs}};
    check_outputs(d);
    for (std::size_t k = 0; k < d.outputs.size(); ++k) {
        output_description& o = d.outputs[k];
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

}  // namespace carousel::stages
