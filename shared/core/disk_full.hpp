#pragma once
// A full disk is no fault of the frame that is to be written: whoever meets one throws disk_full_error, and
// the runner of a stage waits until there is room (stages/runner/disk_full_pause.hpp).

#include <cerrno>
#include <string>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"

namespace carousel {

/// A run that was asked to end waits so long for room. A stage tries to write no longer than that; its
/// supervisor ends it a second later, so that no signal falls into a write.
inline constexpr u64 full_disk_patience_ns = 3 * ns_per_s;

/// No room on the disk, or the user's quota is used up.
class disk_full_error : public output_error {
public:
    disk_full_error(std::string path, const std::string& message)
        : output_error(message), path_(std::move(path)) {}
    [[nodiscard]] const std::string& path() const noexcept { return path_; }  ///< what could not be written

private:
    std::string path_;
};

[[nodiscard]] inline bool is_disk_full(int error_number) noexcept {
    return error_number == ENOSPC || error_number == EDQUOT;
}

/// Throws disk_full_error or output_error, by the error number.
[[noreturn]] inline void throw_output_error(const std::string& path, int error_number,
                                            const std::string& message) {
    if (is_disk_full(error_number)) throw disk_full_error(path, message);
    throw output_error(message);
}

}  // namespace carousel
