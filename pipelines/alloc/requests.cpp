#include "pipelines/alloc/requests.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel::alloc {
namespace {

request parse_one(const nlohmann::json& entry, std::size_t index) {
    const auto refuse = [&](std::string_view what) {
        throw config_error(
            fmt::format("request {}: {}; expected {{\"id\", \"bytes\", \"kind\", \"uuid\"}}", index, what));
    };
    if (!entry.is_object()) refuse("not an object");
    request r;
    r.id = entry.value("id", nlohmann::json());
    r.on.kind = device::device_kind::cuda;
    const auto bytes = entry.find("bytes");
    if (bytes == entry.end() || !bytes->is_number_unsigned() || bytes->get<u64>() == 0 ||
        bytes->get<u64>() > (u64{1} << 46)) {
        refuse("\"bytes\" must be a whole number from 1 to 2^46");
    }
    r.bytes = bytes->get<u64>();
    const auto kind = entry.find("kind");
    if (kind == entry.end() || (*kind != "vmm" && *kind != "ipc"))
        refuse("\"kind\" must be \"vmm\" or \"ipc\"");
    r.kind = *kind == "vmm" ? device::memory_kind::vmm : device::memory_kind::ipc;
    if (const auto uuid = entry.find("uuid"); uuid != entry.end()) {
        if (!uuid->is_string()) refuse("\"uuid\" must be a string");
        r.on.uuid = uuid->get<std::string>();
    }
    if (const auto ordinal = entry.find("ordinal"); ordinal != entry.end()) {
        if (!ordinal->is_number_integer()) refuse("\"ordinal\" must be a number");
        r.on.ordinal = ordinal->get<int>();
    }
    return r;
}

}  // namespace

std::vector<request> parse_requests(std::string_view text) {
    const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
    if (!list.is_array() || list.empty()) throw config_error("the requests are no JSON list of at least one");
    std::vector<request> all;
    for (const auto& entry : list) all.push_back(parse_one(entry, all.size()));
    return all;
}

std::string reply_for(const request& asked, const device::memory_handle& made) {
    nlohmann::json reply = {
        {"id", asked.id}, {"bytes", made.bytes}, {"kind", device::name_of(made.kind)}, {"uuid", made.uuid}};
    if (made.kind == device::memory_kind::ipc) {
        std::string hex;
        for (const std::byte b : made.ipc) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
        reply["ipc"] = hex;
    }
    return reply.dump();
}

std::string error_reply(const nlohmann::json& id, std::string_view why) {
    return nlohmann::json{{"id", id}, {"error", why}}.dump(-1, ' ', false,
                                                           nlohmann::json::error_handler_t::replace);
}

}  // namespace carousel::alloc
