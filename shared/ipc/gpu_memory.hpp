#pragma once
// The GPU memory of a space, as processes without CUDA use it: a descriptor that is passed between processes,
// and helper programs for the holder, because the holder itself never calls the driver. These programs
// allocate the memory and repair its words.
//
// All GPU memory of a space is one allocation. This memory is zeroed when it is created, because a zeroed
// queue is an empty queue. The directory (space_block.hpp) has the offsets; freed memory is never reused.

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
    std::string uuid;  ///< uuid of the GPU, 32 hex digits
};

/// A repair process that has been started. The process begins its work when it receives its instructions,
/// then replies {"repaired": true}, and exits. The process also exits when its socket is closed.
struct gpu_repairer {
    shm::process_id process;
    shm::unique_fd pidfd, socket;
};

/// On behalf of a holder, runs programs that use a GPU.
class gpu_helper {
public:
    virtual ~gpu_helper() = default;
    /// Throws device_error if there is no such GPU, if it has too little free memory, or if this build has no
    /// CUDA.
    [[nodiscard]] virtual gpu_memory make(u64 bytes) = 0;
    /// Throws error if the process can't be started.
    [[nodiscard]] virtual gpu_repairer start_repairer() = 0;
    /// Reaps a repair process after its pidfd has reported its exit.
    virtual void reap(const gpu_repairer& m) = 0;
};

/// The instructions for a repair process. The instructions are sent with two descriptors: first that of the
/// space's memory, then that of its GPU memory.
struct repair_order {
    std::vector<u32> epochs;
};
[[nodiscard]] std::string to_text(const repair_order& o);
[[nodiscard]] std::optional<repair_order> repair_order_from(const std::string& text);
inline constexpr const char* repaired_text = R"({"repaired":true})";

}  // namespace carousel::ipc
