#pragma once

namespace carousel {

/// To be called at the end of a program. Returns `code`, unless that is 0 and some output to stdout was lost
/// (a full disk, a closed file); then reports the error on stderr and returns exit_code::output. A pipe
/// without a reader is not a failure.
[[nodiscard]] int after_output(int code) noexcept;

}  // namespace carousel
