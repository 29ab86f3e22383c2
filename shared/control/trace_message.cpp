#include "control/trace_message.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "shm/control_block.hpp"

namespace carousel::run {
namespace {

using nlohmann::json;

json note_json(const trace_note& n) {
    return {{"time_ns", n.time_ns}, {"kind", n.kind}, {"seat", n.seat},
            {"epoch", n.epoch},     {"pid", n.pid},   {"text", n.text}};
}

trace_note note_from(const json& j) {
    trace_note n;
    n.time_ns = j.value("time_ns", u64{0});
    n.kind = j.value("kind", "");
    n.seat = j.value("seat", shm::none);
    n.epoch = j.value("epoch", 0U);
    n.pid = j.value("pid", 0);
    n.text = j.value("text", "");
    return n;
}

}  // namespace

json to_json(const trace_answer& a) {
    json notes = json::array();
    for (const trace_note& n : a.notes) notes.push_back(note_json(n));
    return {{"ok", true},       {"run_id", a.run_id},        {"created_ns", a.created_ns},
            {"state", a.state}, {"notes", std::move(notes)}, {"next", a.next},
            {"last", a.last}};
}

json to_json(const trace_file_answer& a) {
    json j{{"ok", true}, {"id", a.id}};
    if (a.records) j["records"] = true;
    if (a.bytes != 0) j["bytes"] = a.bytes, j["text"] = a.text;
    return j;
}

trace_file_answer read_trace_file(const json& answer) {
    try {
        return {answer.at("id").get<u64>(), answer.value("records", false), answer.value("bytes", u64{0}),
                answer.value("text", "")};
    } catch (const json::exception& e) {
        throw config_error(
            fmt::format("its answer can't be read ({}): check whether its version differs", e.what()));
    }
}

trace_answer read_trace(const json& answer) {
    try {
        trace_answer a;
        a.run_id = answer.at("run_id");
        for (const json& n : answer.at("notes")) a.notes.push_back(note_from(n));
        a.created_ns = answer.value("created_ns", u64{0});
        a.state = answer.value("state", "");
        a.next = answer.value("next", u64{0});
        a.last = answer.value("last", u64{0});
        return a;
    } catch (const json::exception& e) {
        throw config_error(
            fmt::format("its answer can't be read ({}): check whether its version differs", e.what()));
    }
}

}  // namespace carousel::run
