#pragma once

#include <string>

namespace carousel {

/// Why memory or a thread was refused: the error's text and, where this process may have only so much address
/// space (`ulimit -v`), that limit, which is then the likelier reason than a full machine.
[[nodiscard]] std::string no_memory_text(int error_number);
/// Why a thread was refused, and the limit to raise: of address space, which its stack takes, where there is
/// one, else of processes.
[[nodiscard]] std::string no_thread_text(int error_number);

}  // namespace carousel
