#pragma once
// Reads the status words of rings in GPU memory, by a process of carousel-alloc that makes a context for it
// (about 0.2 s). For a rebuild that would otherwise lose frames. The process ends with this object.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "device/backend.hpp"
#include "os/spawn.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

class status_reader {
public:
    /// Starts the process. `folder`: folder of the carousel-alloc program. Throws error.
    explicit status_reader(const std::string& folder);
    ~status_reader();
    status_reader(const status_reader&) = delete;
    status_reader& operator=(const status_reader&) = delete;

    /// Returns the words of a ring's slots. `memory`: as memory_store describes it, with `fds`. Throws
    /// device_error with the reason.
    [[nodiscard]] std::vector<device::status_word> read(const nlohmann::json& memory,
                                                        const std::vector<int>& fds, u32 slots,
                                                        u64 slot_bytes);

private:
    spawned process_;
    shm::unique_fd socket_;
};

}  // namespace carousel::supervisor
