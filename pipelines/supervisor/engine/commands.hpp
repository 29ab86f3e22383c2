#pragma once
// The requests of clients (control/request_message.hpp): each is carried out, or refused with the reason.

#include <functional>
#include <string>

#include "control/request_message.hpp"
#include "core/json.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/engine/ps_rows.hpp"
#include "supervisor/engine/run_rebuild.hpp"
#include "supervisor/engine/trace_control.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

class commands {
public:
    commands(const ps_sources& ps, process_table& seats, live_parameters& parameters, block_custodian& block,
             run_phase& phase, run_rebuild& rebuild, trace_control& trace)
        : ps_(ps),
          seats_(&seats),
          parameters_(&parameters),
          block_(&block),
          phase_(&phase),
          rebuild_(&rebuild),
          trace_(&trace) {}

    /// Carries the request out, and returns the answer or the refusal as JSON.
    [[nodiscard]] nlohmann::json answer(const nlohmann::json& message);

private:
    [[nodiscard]] run::parameter_state carry_out(const run::parameters_request& r) const;
    [[nodiscard]] run::parameter_state carry_out(const run::set_request& r);
    [[nodiscard]] run::verdict carry_out(const run::end_request& r);
    [[nodiscard]] run::verdict carry_out(const run::rebuild_request& r);
    [[nodiscard]] run::verdict carry_out(const run::seat_request& r);
    [[nodiscard]] run::verdict carry_out(const run::kill_request& r);
    [[nodiscard]] run::verdict carry_out(const run::inject_request& r);
    [[nodiscard]] run::ps_answer carry_out(const run::ps_request& r) const;
    [[nodiscard]] run::trace_answer carry_out(const run::trace_request& r);
    [[nodiscard]] run::trace_file_answer carry_out(const run::trace_file_request& r);
    [[nodiscard]] run::verdict on_seats(const std::string& name,
                                        const std::function<std::string(process_table&, seat&)>& act);

    ps_sources ps_;
    process_table* seats_;
    live_parameters* parameters_;
    block_custodian* block_;
    run_phase* phase_;
    run_rebuild* rebuild_;
    trace_control* trace_;
};

}  // namespace carousel::supervisor
