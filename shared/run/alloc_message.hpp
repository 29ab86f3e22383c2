#pragma once
// What carousel-alloc is asked for, and what it answers, as JSON. Written and read here.
//   asked:     [{"id": any, "bytes": n, "kind": "vmm" | "ipc", "uuid": "32 hex digits", "ordinal": n,
//              "pieces": n}, ...] (without a uuid: the GPU with this ordinal [0]; pieces: so many allocations
//              of bytes / pieces each, vmm only [0: one])
//   answered:  one message a block, in order: {"id", "bytes" (as allocated), "kind", "uuid", "ipc" (hex, ipc
//              only)} with the fd beside it for vmm, or with those of its pieces; or {"id", "error"}, after
//              which nothing more comes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "device/backend.hpp"

namespace carousel::run {

struct alloc_request {
    nlohmann::json id;  ///< comes back with the answer
    device::memory_kind kind = device::memory_kind::vmm;
    u64 bytes = 0;
    device::device_id on;
    u32 pieces = 0;
};
struct alloc_answer {
    nlohmann::json id;
    std::optional<std::string> error;  ///< nothing was made; what follows has no meaning
    u64 bytes = 0;
    device::memory_kind kind = device::memory_kind::vmm;
    std::string uuid;
    std::string ipc;  ///< a handle's bytes in hex
};

[[nodiscard]] std::string to_text(const std::vector<alloc_request>& list);
[[nodiscard]] std::string to_text(const alloc_answer& m);
[[nodiscard]] alloc_answer answer_for(const alloc_request& asked, const device::memory_handle& made);

/// Throws config_error with the place and what is wrong there.
[[nodiscard]] std::vector<alloc_request> read_alloc_requests(std::string_view text);
/// Nothing: this is no such answer.
[[nodiscard]] std::optional<alloc_answer> read_alloc_answer(std::string_view text);

}  // namespace carousel::run
