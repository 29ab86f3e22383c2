#include "spec/recorder_stage.hpp"

#include <fmt/format.h>

#include "shm/control_block.hpp"
#include "spec/outputs.hpp"

namespace carousel::supervisor {

namespace {

/// Returns the host of all recorded rings: one process reads them all, locally.
std::string host_of_rings(const pipeline& p, const stage_spec& recorder) {
    const stage_spec* first = p.find(ring_name_of(recorder.inputs.front()).stage);
    for (const std::string& name : recorder.inputs) {
        const stage_spec* s = p.find(ring_name_of(name).stage);
        if (first == nullptr || s == nullptr || s->host == first->host) continue;
        refuse(recorder.at, fmt::format("record = true for {} and {}, which are on different hosts: one "
                                        "process writes a recording, and it only reads rings of its host",
                                        first->name, s->name));
    }
    return first != nullptr ? first->host : "";
}

}  // namespace

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
        refuse(s.at, fmt::format("record = true for {} rings; at most {}: one process writes a recording",
                                 s.inputs.size(), shm::max_inputs));
    if (const stage_spec* taken = p.find(recorder_name); taken != nullptr)
        refuse(taken->position_of("name"),
               fmt::format("a stage \"{}\", and record = true: the recording stage has that name",
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
    s.key_at = {{"out", p.key_at.count("record_to") != 0 ? p.key_at.at("record_to") : s.at}};
    if (p.key_at.count("record_compression") != 0)
        s.key_at["compression"] = p.key_at.at("record_compression");
    p.stages.push_back(std::move(s));
}

}  // namespace carousel::supervisor
