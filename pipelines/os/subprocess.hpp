#pragma once
// Runs a short helper program to its end, with text as input and output, and with a time limit. Used for
// `--describe` and the probes of `doctor`; stages of a run are started elsewhere. The child gets its own
// process group and no fd of this process except the three pipes, and is killed with its group at the limit.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct subprocess_result {
    bool started = false;  ///< false: `error` has the reason
    std::string error;
    bool short_of_resources = false;  ///< no process, descriptor or memory was available for the program
    bool timed_out = false;
    int exit_code = -1;    ///< if it exited
    int signal = 0;        ///< the signal that ended the program, if any
    std::string output;    ///< stdout, up to 1 MiB
    std::string messages;  ///< the last 4 KiB of stderr
    [[nodiscard]] bool succeeded() const noexcept {
        return started && !timed_out && signal == 0 && exit_code == 0;
    }
    /// Describes how the program ended: "exit code 3", "signal 11 (SIGSEGV)", "no answer within 10 s".
    [[nodiscard]] std::string ending(u32 timeout_ms) const;
};

/// If no process, descriptor or memory is left, waits for up to the time limit or shortage_patience_ns.
/// argv[0] is the program's path, or a name to search in PATH.
[[nodiscard]] subprocess_result run_subprocess(const std::vector<std::string>& argv, const std::string& input,
                                               u32 timeout_ms);

/// Returns "SIGKILL" for 9; "signal 77" for a number without a name.
[[nodiscard]] std::string signal_name(int number);
/// Returns 9 for "9", "KILL", "sigkill"; 0 if `text` is not a signal.
[[nodiscard]] int signal_from(const std::string& text);

}  // namespace carousel::supervisor
