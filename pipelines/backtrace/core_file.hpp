#pragma once
// Where the kernel puts the core file of a process: /proc/sys/kernel/core_pattern, see core(5).

#include <string>

#include "core/types.hpp"

namespace carousel::backtrace {

struct core_facts {
    std::string pattern;    ///< of /proc/sys/kernel/core_pattern
    bool uses_pid = false;  ///< core_uses_pid: ".PID" is appended to a pattern without %p
    u64 limit = 0;          ///< `ulimit -c`, in bytes
    i32 pid = 0, thread = 0, signal = 0;
    u32 uid = 0, gid = 0;
    std::string thread_name, program, host;
    std::string folder;  ///< working directory of the process, which the supervisor's children share
};

/// Reads what this process shares with the dead one: the pattern, the limit and the working directory.
[[nodiscard]] core_facts facts_of_this_process();

/// One line: the path of the core file, the program that the kernel passed it to and how to open it, or why
/// there is none.
[[nodiscard]] std::string core_text(const core_facts& f);

}  // namespace carousel::backtrace
