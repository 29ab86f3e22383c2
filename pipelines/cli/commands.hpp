#pragma once
// The commands of `carousel`, in the order of its help: the core's, then the extras'. CMake makes the table
// (pipelines/CMakeLists.txt).

#include <span>

namespace carousel::supervisor {

struct command;

[[nodiscard]] std::span<const command* const> all_commands() noexcept;
/// Names of the commands that this build lacks (CAROUSEL_EXTRAS=OFF).
[[nodiscard]] std::span<const char* const> absent_commands() noexcept;

}  // namespace carousel::supervisor
