#pragma once
// Descriptions of blocks of memory in messages, and the requests to carousel-alloc, which allocates such
// blocks.

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"
#include "device/described.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::run {

// Description of a block of memory that the supervisor sends to a process: {"kind": "vmm" | "ipc" | "memfd",
// "bytes": N, "uuid": "...", "fd": index among the descriptors of the message, or -1, "ipc": 64 bytes in hex,
// or "", "pieces": N, or absent}. For vmm memory in pieces, "fd" is the first of N consecutive descriptors.
// Written by the supervisor, read by stages and taps.

[[nodiscard]] nlohmann::json memory_message(device::memory_kind kind, u64 bytes, const std::string& uuid,
                                            const std::string& ipc_hex, int fd, u32 pieces = 0);
/// The descriptor stays owned by `fds`. Throws shm_error (a descriptor that was not sent,
/// pieces of different sizes, invalid hex) or nlohmann::json::exception (a key is missing or has another
/// type, an unknown kind).
[[nodiscard]] device::memory_handle read_memory(const nlohmann::json& j,
                                                const std::vector<shm::unique_fd>& fds);

/// Bytes in hex, two digits each.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// Writes bytes to `to` until `to` is full or the digits end. Throws shm_error: invalid hex.
void read_hex(std::string_view hex, std::span<std::byte> to);

// Requests to carousel-alloc and its answers, as JSON. This file writes and reads both.
//   request:   [{"id": any, "bytes": n, "kind": "vmm" | "ipc", "uuid": "32 hex digits", "ordinal": n,
//              "pieces": n}, ...]; without a uuid: the GPU with this ordinal [0]; "pieces": vmm only, the
//              number of allocations, of bytes / pieces each [0: one allocation]
//   answer:    one message per block, in order: {"id", "bytes" (as allocated), "kind", "uuid", "ipc" (hex;
//              kind ipc only)}, for vmm with its fd or the fds of its pieces; or {"id", "error"}, which is
//              the last message.

struct alloc_request {
    nlohmann::json id;  ///< copied into the answer
    device::memory_kind kind = device::memory_kind::vmm;
    u64 bytes = 0;
    device::device_id on;
    u32 pieces = 0;
};
struct alloc_answer {
    nlohmann::json id;
    std::optional<std::string> error;  ///< allocation failed; the other fields have no meaning
    u64 bytes = 0;
    device::memory_kind kind = device::memory_kind::vmm;
    std::string uuid;
    std::string ipc;  ///< bytes of the handle, in hex
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(alloc_answer, (), (id, error, bytes, kind, uuid, ipc))

[[nodiscard]] std::string to_text(const std::vector<alloc_request>& list);
[[nodiscard]] std::string to_text(const alloc_answer& m);
[[nodiscard]] alloc_answer answer_for(const alloc_request& asked, const device::memory_handle& made);

/// Throws config_error with the index of the invalid request and the reason.
[[nodiscard]] std::vector<alloc_request> read_alloc_requests(std::string_view text);
/// Empty if the text is not such an answer.
[[nodiscard]] std::optional<alloc_answer> read_alloc_answer(std::string_view text);

}  // namespace carousel::run
