#include "cli/commands.hpp"

#include "cli/record.hpp"

namespace carousel::supervisor {

std::span<const command* const> all_commands() noexcept {
    static constexpr const command* all[] = {
        &run_command,        &validate_command, &ps_command,      &trace_command,  &set_command,
        &kill_command,       &inject_command,   &stop_command,    &cont_command,   &restart_command,
        &down_command,       &up_command,       &logs_command,    &top_command,    &graph_command,
        &completion_command, &chaos_command,    &view_command,    &doctor_command, &clean_command,
        &bench_command,      &new_command,      &explain_command, &hold_command,   &lab_command,
        &replay_command,     &record_command,   &host_command,
    };
    return all;
}

}  // namespace carousel::supervisor
