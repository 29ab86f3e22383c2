#pragma once
// Description of a block of memory that the supervisor sends to a process: {"kind": "vmm" | "ipc" | "memfd",
// "bytes": N, "uuid": "...", "fd": index among the descriptors of the message, or -1, "ipc": 64 bytes in hex,
// or "", "pieces": N, or absent}. For vmm memory in pieces, "fd" is the first of N consecutive descriptors.
// Written by the supervisor, read by stages and taps.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::run {

[[nodiscard]] nlohmann::json memory_message(device::memory_kind kind, u64 bytes, const std::string& uuid,
                                            const std::string& ipc_hex, int fd, u32 pieces = 0);
/// The descriptor stays owned by `fds`. Throws shm_error (a descriptor that was not sent,
/// pieces of different sizes, invalid hex) or nlohmann::json::exception (a key is missing or has another
/// type, an unknown kind).
[[nodiscard]] device::memory_handle read_memory(const nlohmann::json& j,
                                                const std::vector<shm::unique_fd>& fds);

/// Bytes in hex, two digits each.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// Fills `to` as far as there are digits. Throws shm_error: invalid hex.
void read_hex(std::string_view hex, std::span<std::byte> to);

}  // namespace carousel::run
