#pragma once
// How the supervisor tells a process of a block of memory: {"kind": "vmm" | "ipc" | "memfd", "bytes": N,
// "uuid": "...", "fd": which of the descriptors that came along, or -1, "ipc": 64 bytes in hex, or ""}.
// Written by the supervisor, read by stages and taps.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::run {

[[nodiscard]] nlohmann::json memory_message(device::memory_kind kind, u64 bytes, const std::string& uuid,
                                            const std::string& ipc_hex, int fd);
/// The descriptor stays the caller's, in `fds`. Throws shm_error (a kind that this program doesn't know, a
/// descriptor that did not come, hex that is none) or nlohmann::json::exception (a key is missing, or of
/// another type).
[[nodiscard]] device::memory_handle read_memory(const nlohmann::json& j,
                                                const std::vector<shm::unique_fd>& fds);

}  // namespace carousel::run
