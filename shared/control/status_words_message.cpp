#include "control/status_words_message.hpp"

#include <span>

#include "control/memory_message.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"

namespace carousel::run {
using nlohmann::json;

std::string status_request_text(const json& memory, u32 slots, u64 slot_bytes) {
    return json{{"memory", memory}, {"slots", slots}, {"slot_bytes", slot_bytes}}.dump();
}

status_request read_status_request(std::string_view text, const std::vector<shm::unique_fd>& fds) {
    const json j = parse_json(text, json_channel::message);
    return {read_memory(j.at("memory"), fds), j.at("slots").get<u32>(), j.at("slot_bytes").get<u64>()};
}

std::string to_text(const status_answer& m) {
    if (!m.error.empty())
        return json{{"error", m.error}}.dump(-1, ' ', false, json::error_handler_t::replace);
    return json{{"words", to_hex(std::as_bytes(std::span(m.words)))}}.dump();
}

status_answer read_status_answer(std::string_view text) {
    const json j = parse_json_or_discard(text, json_channel::message);
    if (!j.is_object()) return {{}, "its answer is not a JSON object"};
    if (j.contains("error")) return {{}, j.value("error", "?")};
    try {
        const auto hex = j.at("words").get<std::string>();
        status_answer m;
        m.words.resize(hex.size() / (2 * sizeof(device::status_word)));
        read_hex(hex, std::as_writable_bytes(std::span(m.words)));
        return m;
    } catch (const std::exception& e) {
        return {{}, e.what()};
    }
}

}  // namespace carousel::run
