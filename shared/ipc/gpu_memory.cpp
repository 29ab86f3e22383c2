#include "ipc/gpu_memory.hpp"

#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::ipc {

using nlohmann::json;

std::string to_text(const repair_order& o) { return json{{"repair", o.epochs}}.dump(); }

std::optional<repair_order> repair_order_from(const std::string& text) {
    const json parsed = parse_json_or_discard(text, json_channel::message);
    if (!parsed.is_object() || !parsed.contains("repair") || !parsed["repair"].is_array())
        return std::nullopt;
    repair_order o;
    for (const json& e : parsed["repair"]) {
        if (!e.is_number() || !json_fits<u32>(e)) return std::nullopt;
        o.epochs.push_back(e.get<u32>());
    }
    return o;
}

}  // namespace carousel::ipc
