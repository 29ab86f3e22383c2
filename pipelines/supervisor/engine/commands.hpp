#pragma once
// The requests of clients (control/request_message.hpp): each is carried out, or refused with the reason.

#include <functional>
#include <string>

#include "control/answer_message.hpp"
#include "control/parameter_message.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "control/trace_message.hpp"
#include "core/json.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

/// What a request reads of the run and changes in it.
class run_control {
public:
    virtual ~run_control() = default;
    /// False: the run is being rebuilt, or ends; no seat takes an order.
    [[nodiscard]] virtual bool is_open() const noexcept = 0;
    [[nodiscard]] virtual bool is_over() const noexcept = 0;
    [[nodiscard]] virtual std::string state_name() const = 0;
    virtual void interrupt(int signal) = 0;
    virtual void end_on_request(const std::string& by, int signal, const std::string& why) = 0;
    virtual void rebuild(const std::string& why) = 0;
    [[nodiscard]] virtual shm::control_block& block() = 0;
    /// The block as it was published.
    [[nodiscard]] virtual shm::control_block& published() = 0;
    [[nodiscard]] virtual run::ps_answer carry_out(const run::ps_request& r) const = 0;
    [[nodiscard]] virtual run::trace_answer carry_out(const run::trace_request& r) = 0;
    [[nodiscard]] virtual run::trace_file_answer carry_out(const run::trace_file_request& r) = 0;
};

class commands {
public:
    commands(const run_setup& setup, std::string run_id, process_table& seats, live_parameters& parameters,
             run_control& run)
        : setup_(&setup), run_id_(std::move(run_id)), seats_(&seats), parameters_(&parameters), run_(&run) {}

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
    [[nodiscard]] run::ps_answer carry_out(const run::ps_request& r) const { return run_->carry_out(r); }
    [[nodiscard]] run::trace_answer carry_out(const run::trace_request& r) { return run_->carry_out(r); }
    [[nodiscard]] run::trace_file_answer carry_out(const run::trace_file_request& r) {
        return run_->carry_out(r);
    }
    [[nodiscard]] run::verdict on_seats(const std::string& name,
                                        const std::function<std::string(process_table&, seat&)>& act);

    const run_setup* setup_;
    std::string run_id_;
    process_table* seats_;
    live_parameters* parameters_;
    run_control* run_;
};

/// The first port of the pipeline, whose frames cannot be made again; null: it has none.
[[nodiscard]] const stage_setup* port_of(const run_setup& s) noexcept;

}  // namespace carousel::supervisor
