#include "control/memory_message.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "device/described.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::run {
using nlohmann::json;
namespace {

struct memory_description {
    device::memory_kind kind = device::memory_kind::memfd;
    u64 bytes = 0;
    std::string uuid, ipc;
    int fd = -1;
    u32 pieces = 0;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(memory_description, (), (kind, bytes, uuid, ipc, fd, pieces))

u32 digit_of(char c) {
    if (c >= '0' && c <= '9') return static_cast<u32>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<u32>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return static_cast<u32>(c - 'A') + 10;
    throw shm_error(
        fmt::format("the supervisor's memory has a handle with '{}' in it, which is not a hex digit", c));
}

alloc_request read_one(const json& entry, std::size_t index) {
    const auto refuse = [&](std::string_view what) {
        throw config_error(
            fmt::format("request {}: {}; expected {{\"id\", \"bytes\", \"kind\", \"uuid\"}}", index, what));
    };
    if (!entry.is_object()) refuse("not an object");
    alloc_request r;
    r.id = entry.value("id", json());
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
    if (const auto pieces = entry.find("pieces"); pieces != entry.end()) {
        const bool fits = pieces->is_number_unsigned() && pieces->get<u64>() <= shm::max_fds &&
                          r.kind == device::memory_kind::vmm;
        if (!fits || (*pieces != 0 && r.bytes % pieces->get<u64>() != 0))
            refuse(fmt::format(
                "for vmm memory, \"pieces\" must be a whole number from 0 to {} that divides \"bytes\"",
                shm::max_fds));
        r.pieces = pieces->get<u32>();
    }
    if (const auto ordinal = entry.find("ordinal"); ordinal != entry.end()) {
        if (!ordinal->is_number_integer()) refuse("\"ordinal\" must be a number");
        r.on.ordinal = ordinal->get<int>();
    }
    return r;
}

}  // namespace

std::string to_hex(std::span<const std::byte> bytes) {
    std::string hex;
    for (const std::byte b : bytes) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
    return hex;
}

void read_hex(std::string_view hex, std::span<std::byte> to) {
    for (std::size_t k = 0; k + 1 < hex.size() && k / 2 < to.size(); k += 2)
        to[k / 2] = static_cast<std::byte>(digit_of(hex[k]) << 4U | digit_of(hex[k + 1]));
}

nlohmann::json memory_message(device::memory_kind kind, u64 bytes, const std::string& uuid,
                              const std::string& ipc_hex, int fd, u32 pieces) {
    return memory_description{kind, bytes, uuid, ipc_hex, fd, pieces};
}

device::memory_handle read_memory(const nlohmann::json& j, const std::vector<shm::unique_fd>& fds) {
    require_fields(j, {"kind", "bytes"});
    const auto m = j.get<memory_description>();
    device::memory_handle h;
    h.kind = m.kind;
    h.bytes = m.bytes;
    h.uuid = m.uuid;
    h.pieces = m.pieces;
    if (h.pieces > shm::max_fds || (h.pieces > 0 && h.bytes % h.pieces != 0))
        throw shm_error(
            fmt::format("the supervisor's memory of {} bytes can't have {} pieces", h.bytes, h.pieces));
    const int at = m.fd;
    const u32 own_fds = h.kind == device::memory_kind::vmm ? h.pieces : 0;
    if (at >= 0 && static_cast<std::size_t>(at) + std::max(1U, own_fds) > fds.size())
        throw shm_error("the supervisor's answer names an fd that it did not send");
    if (at >= 0 && own_fds == 0) h.fd = fds[static_cast<std::size_t>(at)].get();
    for (u32 k = 0; at >= 0 && k < own_fds; ++k)
        h.piece_fds.push_back(fds[static_cast<std::size_t>(at) + k].get());
    read_hex(m.ipc, h.ipc);
    return h;
}

std::string to_text(const std::vector<alloc_request>& list) {
    json asked = json::array();
    for (const alloc_request& r : list) {
        asked.push_back({{"id", r.id},
                         {"bytes", r.bytes},
                         {"kind", device::name_of(r.kind)},
                         {"uuid", r.on.uuid},
                         {"ordinal", r.on.ordinal}});
        if (r.pieces > 0) asked.back()["pieces"] = r.pieces;
    }
    return asked.dump();
}

std::string to_text(const alloc_answer& m) {
    return json(m).dump(-1, ' ', false, json::error_handler_t::replace);
}

alloc_answer answer_for(const alloc_request& asked, const device::memory_handle& made) {
    return {asked.id,  {},        made.bytes,
            made.kind, made.uuid, made.kind == device::memory_kind::ipc ? to_hex(made.ipc) : ""};
}

std::vector<alloc_request> read_alloc_requests(std::string_view text) {
    const json list = parse_json_or_discard(text, json_channel::message);
    if (!list.is_array() || list.empty())
        throw config_error("the requests are not a JSON list with at least one element");
    std::vector<alloc_request> all;
    for (const auto& entry : list) all.push_back(read_one(entry, all.size()));
    return all;
}

std::optional<alloc_answer> read_alloc_answer(std::string_view text) {
    const json j = parse_json_or_discard(text, json_channel::message);
    if (!j.is_object()) return {};
    try {
        if (!j.contains("error")) require_fields(j, {"bytes", "kind"});
        return j.get<alloc_answer>();
    } catch (const json::exception&) {
        return {};  // a key is missing or has another type, or the kind is unknown
    }
}

}  // namespace carousel::run
