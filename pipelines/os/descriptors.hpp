#pragma once
// Handles shortages of descriptors, processes, threads and memory (core/resource_limit.hpp) in the
// supervisor. A start that fails because of a shortage does not count against its stage, no connection is
// lost, and descriptors are reserved for what the run writes at its end. One thread.

#include <functional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/resource_limit.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// Maximum time that a start waits because of a shortage of processes, descriptors or memory.
inline constexpr u64 shortage_patience_ns = 8 * ns_per_s;

/// Throws out_of_resources if the error number means a shortage, and shm_error for any other error number.
/// The message is "TRIED: TEXT".
[[noreturn]] void throw_system_error(const std::string& tried, int error_number, const std::string& text);
/// Calls `attempt` repeatedly, every 0.1 s, as long as it returns an error number that means a shortage, for
/// up to `patience_ns`. Returns the last error number (0: success). This function blocks, so it is used only
/// while no run is in progress.
int retry_shortage(const std::function<int()>& attempt, u64 patience_ns = shortage_patience_ns);
/// Raises the soft limit towards the hard limit, up to the most that a pipeline can need.
void raise_file_limit() noexcept;

/// Opens /dev/null, close-on-exec, for O_RDONLY, O_WRONLY or O_RDWR. Throws out_of_resources or shm_error
/// whose message names /dev/null, so that it is not mistaken for an error of the program that is being
/// started.
[[nodiscard]] shm::unique_fd open_null(int flags);

/// Descriptors in reserve: they are released before the supervisor writes data that must not be lost.
class descriptor_reserve {
public:
    descriptor_reserve() { fill(); }
    /// Closes the reserved descriptors; fill() reserves them again.
    void release() noexcept { kept_.clear(); }
    void fill() noexcept;

private:
    std::vector<shm::unique_fd> kept_;
};

}  // namespace carousel::supervisor
