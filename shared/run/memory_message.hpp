#pragma once
// How the supervisor tells a process of a block of memory: {"kind": "vmm" | "ipc" | "memfd", "bytes": N,
// "uuid": "...", "fd": which of the descriptors that came along, or -1, "ipc": 64 bytes in hex, or "",
// "pieces": N or not there}. Of vmm memory in pieces "fd" is the first of as many descriptors. Written by the
// supervisor, read by stages and taps.

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
/// The descriptor stays the caller's, in `fds`. Throws shm_error (a kind that this program doesn't know, a
/// descriptor that did not come, pieces of different sizes, hex that is none) or nlohmann::json::exception (a
/// key is missing, or of another type).
[[nodiscard]] device::memory_handle read_memory(const nlohmann::json& j,
                                                const std::vector<shm::unique_fd>& fds);

/// Bytes of a handle as they stand in a message, two digits each.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// As many as there are digits for, and room. Throws shm_error: hex that is none.
void read_hex(std::string_view hex, std::span<std::byte> to);

/// Throws shm_error: a kind that this program doesn't know.
[[nodiscard]] device::memory_kind memory_kind_named(std::string_view name);

}  // namespace carousel::run
