#pragma once
// Names that a stage's file in Python can't have.

#include <string_view>

namespace carousel::supervisor {

/// "a word of Python", "a module of Python": what `name` is already, so that `from NAME import NAME` would be
/// no Python, or `import NAME` in any module would find the stage. Null: a name that is free.
[[nodiscard]] const char* reserved_in_python(std::string_view name) noexcept;

}  // namespace carousel::supervisor
