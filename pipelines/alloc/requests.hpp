#pragma once
// What carousel-alloc is asked for, and what it answers, as JSON.
//   asked:     [{"id": any, "bytes": n, "kind": "vmm" | "ipc", "uuid": "32 hex digits", "ordinal": n}, ...]
//              (without a uuid: the GPU with this ordinal [0])
//   answered:  one message a block, in order: {"id", "bytes" (as allocated), "kind", "uuid", "ipc" (hex, ipc
//              only)} with the fd beside it for vmm; or {"id", "error"}, after which nothing more comes.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"

namespace carousel::alloc {

struct request {
    nlohmann::json id;
    device::memory_kind kind = device::memory_kind::vmm;
    u64 bytes = 0;
    device::device_id on;
};

/// Throws config_error with the place and what is wrong there.
[[nodiscard]] std::vector<request> parse_requests(std::string_view text);
[[nodiscard]] std::string reply_for(const request& asked, const device::memory_handle& made);
[[nodiscard]] std::string error_reply(const nlohmann::json& id, std::string_view why);

}  // namespace carousel::alloc
