#pragma once
// The GPU memory of a space, seen from processes without CUDA: a descriptor that is passed between processes,
// and helper programs that allocate the memory and repair its words for the holder, which itself never calls
// a driver.
//
// All GPU memory of a space is one allocation, zeroed when it is created, because a zeroed queue is an empty
// queue. The directory (space_block.hpp) has the offsets; freed memory is never reused.

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

/// A started repair process: it begins when it receives its instructions, replies {"repaired": true}, and
/// exits. A repair process also exits when its socket is closed.
struct gpu_repairer {
    shm::process_id process;
    shm::unique_fd pidfd, socket;
};

/// Runs programs that use a GPU for a holder.
class gpu_helper {
public:
    virtual ~gpu_helper() = default;
    /// Throws device_error if there is no such GPU, if memory is short, or in a build without CUDA.
    [[nodiscard]] virtual gpu_memory make(u64 bytes) = 0;
    /// Throws error if the process can't be started.
    [[nodiscard]] virtual gpu_repairer start_repairer() = 0;
    /// Reaps a repair process whose pidfd has signalled its exit.
    virtual void reap(const gpu_repairer& m) = 0;
};

/// The instructions for a repair process, sent with two descriptors: the space's memory, then the GPU's.
struct repair_order {
    std::vector<u32> epochs;
};
[[nodiscard]] std::string to_text(const repair_order& o);
[[nodiscard]] std::optional<repair_order> repair_order_from(const std::string& text);
inline constexpr const char* repaired_text = R"({"repaired":true})";

}  // namespace carousel::ipc
