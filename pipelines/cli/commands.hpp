#pragma once
// The commands of `carousel`, in the order of its help.

#include <span>

namespace carousel::supervisor {

struct command;

extern const command run_command, validate_command, ps_command, trace_command, set_command, kill_command,
    inject_command, stop_command, cont_command, restart_command, down_command, up_command, logs_command,
    top_command, graph_command, completion_command, chaos_command, view_command, doctor_command,
    clean_command, bench_command, new_command, explain_command, hold_command, lab_command, replay_command,
    host_command;

[[nodiscard]] std::span<const command* const> all_commands() noexcept;

}  // namespace carousel::supervisor
