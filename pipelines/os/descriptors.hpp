#pragma once
// File descriptors, when there are none left. That is the supervisor's own trouble: no stage is blamed for a
// start that fails so, no connection is lost for it, and what the run has to write at its end has its place
// kept. One thread.

#include <string>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

/// Something could not be opened or started because this process, or the machine, has no more of it; later it
/// may have some again.
class out_of_resources : public shm_error {
public:
    explicit out_of_resources(const std::string& message) : shm_error(message) {}
};
/// Is that what the error number says?
[[nodiscard]] bool is_shortage(int error_number) noexcept;
/// "Too many open files (the limit is 30): ...": what is short and what to do.
[[nodiscard]] std::string shortage_text(int error_number);
/// Throws out_of_resources or shm_error with that text in front.
[[noreturn]] void throw_system_error(const std::string& tried, int error_number);
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
    void give_up() noexcept { kept_.clear(); }
    void fill() noexcept;

private:
    std::vector<shm::unique_fd> kept_;
};

}  // namespace carousel::supervisor
