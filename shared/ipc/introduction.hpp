#pragma once
// How a client and the holder of its space identify each other's process and clock, also between containers:
// the pids of another pid namespace have no meaning here, and the clock of another time namespace may be
// shifted.

#include <nlohmann/json_fwd.hpp>

#include "core/types.hpp"
#include "shm/process_id.hpp"

namespace carousel::ipc {

/// Returns the inode of this process's pid namespace; 0: unknown, because there is no /proc.
[[nodiscard]] u64 own_pid_namespace();

/// Returns what a client sends about itself in its first message.
[[nodiscard]] nlohmann::json introduction();

struct introduced {
    shm::process_id process;  ///< as seen from here; of another pid namespace: as the client has sent it
    u64 pid_namespace = 0;    ///< in which the pid is valid
    shm::unique_fd pidfd;
};

/// Returns the process at the other end of `socket`, which has sent `introduction`. Throws config_error with
/// the reason if its exit can't be detected, or if its clock differs from the clock of this process.
[[nodiscard]] introduced identify(int socket, const nlohmann::json& introduction);

}  // namespace carousel::ipc
