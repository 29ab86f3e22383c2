#include "spec/special_stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/json_text.hpp"
#include "core/user_input.hpp"
#include "frame/frame_format.hpp"
#include "shm/control_block.hpp"
#include "spec/links.hpp"
#include "spec/pipeline_keys.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

constexpr const char* output_hint = "its planes, e.g. output = { color = \"u8[720,1280,4]\" }";

/// Keys that determine how a stage's processes are started, restarted or abandoned.
constexpr const char* of_programs[] = {"in_flight", "instances", "standby", "restart",   "max_attempts",
                                       "optional",  "group",     "prefix",  "isolation", "python"};

/// True for a single picture of the form that carousel-display accepts.
bool is_picture(const ring::frame_format& f) {
    const ring::plane& p = f.planes.front();
    return f.planes.size() == 1 && p.name == "color" && p.type == ring::element::u8_ && p.shape.size() == 3 &&
           p.shape[2] == 4;
}

ring::frame_format output_of(const stage_spec& s) {
    const auto output = s.settings.find("output");
    if (output == s.settings.end())
        refuse(s.at,
               fmt::format("port \"{}\" is read by others, but its output is not described; expected {}",
                           s.name, output_hint));
    if (!output->is_object() || output->empty())
        refuse(s.position_of("output"), fmt::format("port \"{}\": output: expected {}", s.name, output_hint));
    ring::frame_format f;
    try {
        for (const auto& [name, text] : output->items()) {
            if (!text.is_string())
                refuse(s.position_of("output"),
                       fmt::format("port \"{}\": output: expected {}", s.name, output_hint));
            f.planes.push_back(ring::plane_from_text(name, text.get<std::string>()));
        }
        const json type = s.settings.value("type", json());
        if (!type.is_null() && (!type.is_string() || type.get<std::string>().empty()))
            refuse(s.position_of("type"), fmt::format("port \"{}\": type: expected a text", s.name));
        f.type = type.is_string() ? type.get<std::string>()
                 : is_picture(f)  ? "carousel.image.rgba8"
                                  : "port." + s.name;
        (void)f.lay_out();
    } catch (const config_error& e) {
        const std::string what = e.what();
        if (what.find("port \"") != std::string::npos) throw;
        refuse(s.position_of("output"), fmt::format("port \"{}\": {}", s.name, what));
    }
    return f;
}

/// Returns the host on which all recorded rings are. They must be on one host, because one process reads them
/// all, and reads only rings of its host.
std::string host_of_rings(const pipeline& p, const stage_spec& recorder) {
    const stage_spec* first = p.find(ring_name_of(recorder.inputs.front()).stage);
    for (const std::string& name : recorder.inputs) {
        const stage_spec* s = p.find(ring_name_of(name).stage);
        if (first == nullptr || s == nullptr || s->host == first->host) continue;
        refuse(recorder.at,
               fmt::format("record = true is set for {} and {}, which are on different hosts, but one "
                           "process writes the recording, and it only reads rings of its own host",
                           first->name, s->name));
    }
    return first != nullptr ? first->host : "";
}

}  // namespace

void check_port(stage_spec& s) {
    for (const char* key : of_programs)
        if (s.key_at.count(key) != 0)
            refuse(s.position_of(key),
                   fmt::format("port \"{}\": {} is only for stages whose programs the run starts; remove it",
                               s.name, key));
    if (!s.devices.empty())
        refuse(s.position_of("device"),
               fmt::format("port \"{}\": a port is one process, so it can have only one device", s.name));
    if (s.settings.contains("outputs"))
        refuse(s.position_of("outputs"),
               fmt::format("port \"{}\": outputs: a port can have only one output, whose planes may be any "
                           "({}); a stage that reads the port can have several outputs",
                           s.name, output_hint));
    for (const auto& [key, value] : s.settings.items()) {
        std::vector<std::string> known = stage_keys();
        known.insert(known.end(), {"output", "type", "ends", "vacant"});
        if (std::find(known.begin(), known.end(), key) == known.end())
            refuse(s.position_of(key), fmt::format("port \"{}\": unknown key \"{}\"{}", s.name, key,
                                                   did_you_mean_clause(key, known)));
    }
    if (const auto v = s.settings.find("vacant"); v != s.settings.end()) {
        if (*v != "wait" && *v != "skip")
            refuse(s.position_of("vacant"),
                   fmt::format("port \"{}\": vacant = {}: expected \"wait\" (while no program has the port, "
                               "the pipeline waits for one) or \"skip\" (frames skip the port)",
                               s.name, v->dump()));
        if (*v == "skip" && s.inputs.empty())
            refuse(s.position_of("vacant"),
                   fmt::format("port \"{}\": vacant = \"skip\" is only for a port that reads, but this port "
                               "writes, so there are no frames without a program",
                               s.name));
    }
    if (const auto e = s.settings.find("ends"); e != s.settings.end()) {
        if (!e->is_boolean())
            refuse(s.position_of("ends"),
                   fmt::format("port \"{}\": ends = {}: expected true or false", s.name, e->dump()));
        if (!s.inputs.empty())
            refuse(s.position_of("ends"),
                   fmt::format("port \"{}\" reads \"{}\", but only a port that writes can end the stream",
                               s.name, s.inputs.front()));
    }
    if (!s.inputs.empty() && s.has_output)
        refuse(s.position_of("inputs"), fmt::format("port \"{}\" reads and is read by others, but a port is "
                                                    "either a source or a sink; use two ports",
                                                    s.name));
    if (!s.inputs.empty() && s.settings.contains("output"))
        refuse(s.position_of("output"),
               fmt::format("port \"{}\" reads \"{}\", so it can't have an output", s.name, s.inputs.front()));
    s.in_flight = 1;
    s.isolation = isolation_kind::process;
}

bool stage_spec::skips() const {
    const auto v = settings.find("vacant");
    return is_port() && v != settings.end() && *v == "skip";
}

stage_description describe_port(const stage_spec& s) {
    stage_description d;
    d.stage = s.name;
    d.program = port_program;
    d.commits_on_host = true;  // no other process can see when the program's work has ended
    if (!s.inputs.empty()) return d;
    d.ends = s.settings.value("ends", false);
    ring::frame_format f = output_of(s);
    d.slot_bytes = f.lay_out();
    d.format = parse_json(f.to_json(), json_channel::document);
    return d;
}

void add_recorder(pipeline& p) {
    stage_spec s;
    for (const auto& [name, link] : p.links) {
        if (!link.record) continue;
        const auto key = link.key_at.find("record");
        if (s.inputs.empty()) s.at = key != link.key_at.end() ? key->second : link.at;
        s.inputs.push_back(name);
    }
    if (s.inputs.empty()) return;
    if (s.inputs.size() > shm::max_inputs)
        refuse(s.at, fmt::format("record = true is set for {} rings, but the limit is {}, because one "
                                 "process writes the recording",
                                 s.inputs.size(), shm::max_inputs));
    if (const stage_spec* taken = p.find(recorder_name); taken != nullptr)
        refuse(
            taken->position_of("name"),
            fmt::format("stage \"{}\" has the name of the stage that record = true adds; choose another name",
                        recorder_name));
    s.host = host_of_rings(p, s);
    s.name = recorder_name;
    s.run = "carousel-record";
    s.device = p.device;
    s.isolation = p.isolation;
    s.frame_timeout_ms = p.frame_timeout_ms;
    const std::string to = p.record_to.empty() ? p.name + ".mcap" : p.record_to;
    s.settings = {{"out", to}};
    if (!p.compression.empty()) s.settings["compression"] = p.compression;
    if (p.record_images) s.settings["images"] = true;
    s.key_at = {{"out", p.key_at.count("record_to") != 0 ? p.key_at.at("record_to") : s.at}};
    if (p.key_at.count("record_compression") != 0)
        s.key_at["compression"] = p.key_at.at("record_compression");
    if (p.key_at.count("record_images") != 0) s.key_at["images"] = p.key_at.at("record_images");
    p.stages.push_back(std::move(s));
}

}  // namespace carousel::supervisor
