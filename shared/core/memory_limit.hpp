#pragma once

#include <string>

namespace carousel {

/// Why memory or a thread was refused: the error's text and, where this process may have only so much address
/// space (`ulimit -v`), that limit, which is then the likelier reason than a full machine.
[[nodiscard]] std::string no_memory_text(int error_number);

}  // namespace carousel
