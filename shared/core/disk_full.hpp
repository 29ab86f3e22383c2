#pragma once
// A full disk is not a fault of the frame being written: code that meets one throws disk_full_error, and the
// runner of a stage waits until there is room (stages/runner/disk_full_pause.hpp).

#include <cerrno>
#include <string>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"

namespace carousel {

/// Time for which a run waits for room after its end has been requested. A stage stops retrying its writes
/// after that time; its supervisor ends the stage one second later, so that no signal interrupts a write.
inline constexpr u64 full_disk_patience_ns = 3 * ns_per_s;

/// No space on the disk, or the user's quota is exhausted.
class disk_full_error : public output_error {
public:
    disk_full_error(std::string path, const std::string& message)
        : output_error(message), path_(std::move(path)) {}
    [[nodiscard]] const std::string& path() const noexcept {
        return path_;
    }  ///< the path that could not be written

private:
    std::string path_;
};

[[nodiscard]] inline bool is_disk_full(int error_number) noexcept {
    return error_number == ENOSPC || error_number == EDQUOT;
}

/// Throws disk_full_error or output_error, depending on the error number.
[[noreturn]] inline void throw_output_error(const std::string& path, int error_number,
                                            const std::string& message) {
    if (is_disk_full(error_number)) throw disk_full_error(path, message);
    throw output_error(message);
}

}  // namespace carousel
