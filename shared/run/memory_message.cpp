#include "run/memory_message.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/errors.hpp"

namespace carousel::run {
namespace {

using device::memory_kind;

u32 digit_of(char c) {
    if (c >= '0' && c <= '9') return static_cast<u32>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<u32>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return static_cast<u32>(c - 'A') + 10;
    throw shm_error(
        fmt::format("the supervisor's memory has a handle with '{}' in it, which is no hex digit", c));
}

}  // namespace

memory_kind memory_kind_named(std::string_view name) {
    for (const memory_kind kind : {memory_kind::vmm, memory_kind::ipc, memory_kind::memfd})
        if (name == name_of(kind)) return kind;
    throw shm_error(
        fmt::format("the supervisor's memory is of the kind \"{}\", which this program doesn't know: are "
                    "both of one version?",
                    name));
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string hex;
    for (const std::byte b : bytes) hex += fmt::format("{:02x}", static_cast<unsigned>(b));
    return hex;
}

void read_hex(std::string_view hex, std::span<std::byte> to) {
    for (std::size_t k = 0; k + 1 < hex.size() && k / 2 < to.size(); k += 2)
        to[k / 2] = static_cast<std::byte>(digit_of(hex[k]) << 4U | digit_of(hex[k + 1]));
}

nlohmann::json memory_message(memory_kind kind, u64 bytes, const std::string& uuid,
                              const std::string& ipc_hex, int fd) {
    return {{"kind", name_of(kind)}, {"bytes", bytes}, {"uuid", uuid}, {"ipc", ipc_hex}, {"fd", fd}};
}

device::memory_handle read_memory(const nlohmann::json& j, const std::vector<shm::unique_fd>& fds) {
    device::memory_handle h;
    h.kind = memory_kind_named(j.at("kind").get<std::string>());
    h.bytes = j.at("bytes");
    h.uuid = j.value("uuid", "");
    const int at = j.value("fd", -1);
    if (at >= static_cast<int>(fds.size()))
        throw shm_error("the supervisor's answer names an fd that it did not send");
    if (at >= 0) h.fd = fds[static_cast<std::size_t>(at)].get();
    read_hex(j.value("ipc", ""), h.ipc);
    return h;
}

}  // namespace carousel::run
