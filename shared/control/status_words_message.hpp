#pragma once
// What a supervisor asks of carousel-alloc about the status words of a ring, and the answers.
//   request:  {"memory": a description with its descriptors (memory_message.hpp), "slots": N, "slot_bytes":
//   N} answer:   {"words": the words of all slots, in hex} or {"error": "..."}

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::run {

struct status_request {
    device::memory_handle memory;  ///< its descriptors stay owned by the message
    u32 slots = 0;
    u64 slot_bytes = 0;
};
struct status_answer {
    std::vector<device::status_word> words;
    std::string error;  ///< empty: `words` are valid
};

[[nodiscard]] std::string status_request_text(const nlohmann::json& memory, u32 slots, u64 slot_bytes);
/// Throws shm_error or nlohmann::json::exception.
[[nodiscard]] status_request read_status_request(std::string_view text,
                                                 const std::vector<shm::unique_fd>& fds);
[[nodiscard]] std::string to_text(const status_answer& m);
/// An answer that cannot be read has an error.
[[nodiscard]] status_answer read_status_answer(std::string_view text);

}  // namespace carousel::run
