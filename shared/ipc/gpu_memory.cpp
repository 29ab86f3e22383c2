#include "ipc/gpu_memory.hpp"

#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::ipc {

using nlohmann::json;

std::string to_text(const mend_order& o) { return json{{"mend", o.epochs}}.dump(); }

std::optional<mend_order> mend_order_from(const std::string& text) {
    const json said = parse_json_or_discard(text, json_channel::message);
    if (!said.is_object() || !said.contains("mend") || !said["mend"].is_array()) return std::nullopt;
    mend_order o;
    for (const json& e : said["mend"]) {
        if (!e.is_number_unsigned()) return std::nullopt;
        o.epochs.push_back(e.get<u32>());
    }
    return o;
}

}  // namespace carousel::ipc
