#pragma once
// When a stage that has ended is started again.

#include "core/types.hpp"

namespace carousel::supervisor {

/// Restart policy of a stage in the pipeline file.
enum class restart_policy : u8 { always, on_failure, no };
/// As the file spells it.
[[nodiscard]] const char* name_of(restart_policy p) noexcept;

}  // namespace carousel::supervisor
