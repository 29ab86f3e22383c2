#include "control/memory_message.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "device/described.hpp"

namespace carousel::run {
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
        throw shm_error(fmt::format("the supervisor's memory of {} bytes has {} pieces", h.bytes, h.pieces));
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

}  // namespace carousel::run
