#pragma once
// Texts for calls that were refused because of a resource limit. A text contains the error, the limit that
// may have caused it, the value of that limit, and how to raise it. The limit is read when the text is
// created; the text always begins with the text of the error number.

#include <string>

#include "core/errors.hpp"

namespace carousel {

namespace exit_code {
/// a stage could not start, because it got no thread, process, descriptor or memory. The stage is restarted,
/// and the attempt is not counted
inline constexpr int no_resources = 77;
}  // namespace exit_code

/// A process, a thread, a descriptor or memory was refused temporarily; a later attempt may succeed.
class out_of_resources : public shm_error {
public:
    using shm_error::shm_error;
};

/// Returns true if the error number means that this process, its control group or the machine has temporarily
/// run out of a resource.
[[nodiscard]] bool is_shortage(int error_number) noexcept;

/// Names the limit of this process's address space (`ulimit -v`) and the remedy; "" if there is none. Part of
/// errors.cpp, which is used alone, too.
[[nodiscard]] std::string address_space_text();
/// Returns the reason why memory was refused; names the limit of address space (`ulimit -v`), if there is
/// one.
[[nodiscard]] std::string no_memory_text(int error_number);
/// Returns the reason why a process or a thread was refused; names the limit of processes that has been
/// reached (pids.max of a control group, `ulimit -u`), or the limit of address space, which a thread's stack
/// needs.
[[nodiscard]] std::string no_thread_text(int error_number);
/// Returns the reason why a descriptor was not opened; names the limit of descriptors (`ulimit -n`).
[[nodiscard]] std::string no_file_text(int error_number);
/// Returns the reason why a file could not be written or resized, and what to do (make room, raise the quota
/// or `ulimit -f`); `otherwise` is the remedy for any other error.
[[nodiscard]] std::string no_room_text(int error_number, const std::string& otherwise);
/// Like no_room_text, for a file below /dev/shm.
[[nodiscard]] std::string no_shared_room_text(int error_number);

}  // namespace carousel
