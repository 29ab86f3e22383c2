#pragma once
// The GPU memory of a space, seen from processes without CUDA: a descriptor that is handed on, and programs
// that make it and mend its words for the holder, which never touches a driver.
//
// All GPU memory of a space is one allocation, zeroed when it is made: a zeroed queue is an empty one. Where
// what lies in it says the directory (space_block.hpp); what is freed never comes into use again.

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"

namespace carousel::ipc {

struct gpu_memory {
    shm::unique_fd fd;
    u64 bytes = 0;
    std::string uuid;  ///< of the GPU, 32 hex digits
};

/// A mender that has been started: it begins when it hears what it has to do, answers {"mended": true}, and
/// ends. It ends when its socket does, too.
struct gpu_repairer {
    shm::process_id process;
    shm::unique_fd pidfd, socket;
};

/// Who works on a GPU for a holder.
class gpu_helper {
public:
    virtual ~gpu_helper() = default;
    /// Throws device_error: no such GPU, too little memory, built without CUDA.
    [[nodiscard]] virtual gpu_memory make(u64 bytes) = 0;
    /// Throws error: it can't be started.
    [[nodiscard]] virtual gpu_repairer start_repairer() = 0;
    /// Of a mender whose pidfd says that it has ended.
    virtual void reap(const gpu_repairer& m) = 0;
};

/// What a mender is told, beside two descriptors: the space's memory, then the GPU's.
struct repair_order {
    std::vector<u32> epochs;
};
[[nodiscard]] std::string to_text(const repair_order& o);
[[nodiscard]] std::optional<repair_order> repair_order_from(const std::string& text);
inline constexpr const char* repaired_text = R"({"repaired":true})";

}  // namespace carousel::ipc
