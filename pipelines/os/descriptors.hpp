#pragma once
// Shortages of descriptors, processes, threads and memory (core/resource_limit.hpp) in the supervisor. No
// stage is blamed for a start that fails by one, no connection is lost by one, and descriptors are kept in
// reserve for what the run writes at its end. One thread.

#include <functional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/resource_limit.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// A start waits up to this long while processes, descriptors or memory are short.
inline constexpr u64 shortage_patience_ns = 8 * ns_per_s;

/// Throws out_of_resources where the error number is a shortage, otherwise shm_error: "TRIED: TEXT".
[[noreturn]] void throw_system_error(const std::string& tried, int error_number, const std::string& text);
/// Calls `attempt` again every 0.1 s while the error number that it returns is a shortage, for up to
/// `patience_ns`. Returns the last one (0: success). Blocks: for use while no run is under way.
int retry_shortage(const std::function<int()>& attempt, u64 patience_ns = shortage_patience_ns);
/// The soft limit up to the hard one, as far as a pipeline can ever need it.
void raise_file_limit() noexcept;

/// Opens /dev/null, close-on-exec, for O_RDONLY, O_WRONLY or O_RDWR. Throws out_of_resources or shm_error,
/// which names /dev/null: an error of it must not be taken for one of the program that is started with it.
[[nodiscard]] shm::unique_fd open_null(int flags);

/// Descriptors kept back, to be given up when something has to be written that must not be lost.
class descriptor_reserve {
public:
    descriptor_reserve() { fill(); }
    /// Gives them up; fill() takes them again.
    void release() noexcept { kept_.clear(); }
    void fill() noexcept;

private:
    std::vector<shm::unique_fd> kept_;
};

}  // namespace carousel::supervisor
