#pragma once

namespace carousel {

/// At the end of a program: `code`, unless that is 0 and something of what was written to stdout did not get
/// there (a full disk, a closed file); then it says so on stderr and returns exit_code::output. A pipe whose
/// reader has gone is no failure.
[[nodiscard]] int after_output(int code) noexcept;

}  // namespace carousel
