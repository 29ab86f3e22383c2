#include "control/attach_message.hpp"

#include "core/errors.hpp"

namespace carousel::run {

using nlohmann::json;

json to_json(const attach_message& m) {
    json inputs = json::array();
    for (const attach_message::input& i : m.inputs)
        inputs.push_back({{"stage", i.stage}, {"format", i.format}});
    json sampled = json::array();
    for (const attach_message::sampled_input& i : m.sampled)
        sampled.push_back({{"stage", i.stage}, {"format", i.format}, {"described", i.described}});
    json outputs = json::array();
    for (const attach_message::output& o : m.outputs)
        outputs.push_back({{"name", o.name}, {"format", o.format}});
    json j{{"run_id", m.run_id},
           {"runtime_directory", m.runtime_directory},
           {"output_directory", m.output_directory},
           {"stage", m.stage},
           {"seat", m.incarnation.seat},
           {"entry", m.incarnation.entry},
           {"epoch", m.incarnation.epoch},
           {"standby", m.standby},
           {"width", m.width},
           {"height", m.height},
           {"supervisor_grace_s", m.supervisor_grace_s},
           {"settings", m.settings},
           {"graphs", m.graphs},
           {"asked_device", m.asked_device},
           {"folder", m.folder},
           {"inputs", std::move(inputs)},
           {"sampled", std::move(sampled)},
           {"outputs", std::move(outputs)},
           {"parameters", m.parameters},
           {"depth", m.depth},
           {"links", m.links},
           {"assets", m.assets},
           {"kept", m.kept}};
    j["device"] = {{"kind", m.device.kind == device::device_kind::cuda ? "cuda" : "cpu"},
                   {"uuid", m.device.uuid},
                   {"ordinal", m.device.ordinal}};
    if (m.control >= 0) j.update({{"control", m.control}, {"pid", m.pid}});
    return {{"attach", std::move(j)}};
}

attach_message read_attach(const json& answer) {
    if (answer.contains("refused")) throw config_error(answer.at("refused").get<std::string>());
    const json& j = answer.at("attach");
    attach_message m;
    m.run_id = j.at("run_id");
    m.runtime_directory = j.at("runtime_directory");
    m.output_directory = j.at("output_directory");
    m.stage = j.at("stage");
    m.incarnation = {j.at("seat"), j.at("entry"), j.at("epoch")};
    if (m.incarnation.seat >= shm::max_seats || m.incarnation.entry >= shm::max_incarnations)
        throw shm_error("the supervisor's answer names a seat out of range");
    m.standby = j.value("standby", false);
    m.width = j.at("width");
    m.height = j.at("height");
    m.supervisor_grace_s = j.value("supervisor_grace_s", m.supervisor_grace_s);
    m.settings = j.value("settings", json::object());
    m.graphs = j.value("graphs", false);
    m.asked_device = j.value("asked_device", m.asked_device);
    m.folder = j.value("folder", "");
    const json& d = j.at("device");
    m.device.kind = d.at("kind") == "cuda" ? device::device_kind::cuda : device::device_kind::cpu;
    m.device.uuid = d.value("uuid", "");
    m.device.ordinal = d.value("ordinal", 0);
    for (const json& i : j.at("inputs")) m.inputs.push_back({i.at("stage"), i.at("format")});
    for (const json& i : j.value("sampled", json::array()))
        m.sampled.push_back({i.at("stage"), i.at("format"), i.value("described", true)});
    for (const json& o : j.at("outputs")) m.outputs.push_back({o.at("name"), o.at("format")});
    if (m.outputs.size() > shm::max_outputs)
        throw shm_error("the supervisor's answer names more outputs than a stage can have");
    if (m.sampled.size() > shm::max_sampled_inputs)
        throw shm_error("the supervisor's answer names more sampled inputs than a stage can have");
    m.parameters = j.value("parameters", json());
    m.depth = j.value("depth", json());
    m.control = j.value("control", -1);
    m.pid = j.value("pid", 0);
    m.links = j.at("links");
    m.assets = j.value("assets", json::array());
    m.kept = j.value("kept", json::array());
    return m;
}

}  // namespace carousel::run
