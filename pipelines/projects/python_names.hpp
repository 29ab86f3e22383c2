#pragma once
// Names that a stage's Python file cannot have.

#include <string_view>

namespace carousel::supervisor {

/// Returns "a word of Python" or "a module of Python" if `name` is taken: `from NAME import NAME` would be
/// invalid Python, or `import NAME` in any module would find the stage. Returns null if the name is free.
[[nodiscard]] const char* reserved_in_python(std::string_view name) noexcept;

}  // namespace carousel::supervisor
