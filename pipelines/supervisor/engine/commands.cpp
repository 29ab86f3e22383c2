#include "supervisor/engine/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/errors.hpp"
#include "supervisor/processes/seat_commands.hpp"

namespace carousel::supervisor {

using nlohmann::json;

json commands::answer(const json& message) {
    try {
        // A client may name the run that it watches, because another run may meanwhile have taken the name,
        // and with it the path of the socket; the client's request must not reach that run.
        if (const std::string meant = message.value("run_id", ps_.run_id); meant != ps_.run_id)
            return run::to_json(run::refused(
                exit_code::usage,
                fmt::format("{} names another run here ({}) than the requested run ({}): nothing was done",
                            ps_.setup.name, ps_.run_id, meant)));
        return std::visit([this](const auto& r) { return run::to_json(carry_out(r)); },
                          run::read_request(message));
    } catch (const run::refused_for_now& e) {
        return run::to_json(run::verdict{false, e.what(), e.code(), true});
    } catch (const error& e) {
        return run::to_json(run::refused(e.code(), e.what()));
    } catch (const json::exception& e) {  // a value in the request has the wrong type
        return run::to_json(run::refused(exit_code::usage, run::unreadable_request(e)));
    }
}

run::ps_answer commands::carry_out(const run::ps_request&) const { return ps_answer_of(ps_); }

run::trace_answer commands::carry_out(const run::trace_request& r) {
    return trace_->carry_out(r, phase_->name());
}

run::trace_file_answer commands::carry_out(const run::trace_file_request& r) { return trace_->carry_out(r); }

run::parameter_state commands::carry_out(const run::parameters_request&) const {
    return parameters_->answer();
}

// A frame carries the parameters that its source has read; in a run whose sources are all on other hosts, the
// values in this block would reach no frame.
run::parameter_state commands::carry_out(const run::set_request& r) {
    const bool from_elsewhere =
        std::all_of(ps_.setup.stages.begin(), ps_.setup.stages.end(),
                    [](const stage_setup& s) { return !s.spec.input_indices.empty() || s.receives(); });
    if (from_elsewhere)
        throw config_error(
            "set: all frames of this run come from another host and have its parameters: run `carousel set` "
            "on the host of their source");
    return parameters_->set(r, block_->block(), block_->published());
}

run::verdict commands::carry_out(const run::end_request& r) {
    if (r.as_interrupt)
        phase_->interrupt(SIGINT);
    else
        phase_->end_on_request("a request to end the run", 0, "`carousel down`: delivering frames in flight");
    return run::carried_out(fmt::format("{} ends", ps_.setup.name));
}

run::verdict commands::carry_out(const run::rebuild_request&) {
    if (phase_->is_over())
        return run::refused(exit_code::stage_failed, fmt::format("{} is {}", ps_.setup.name, phase_->name()));
    if (const stage_setup* port = port_of(ps_.setup))
        return run::refused(
            exit_code::usage,
            fmt::format("{} has the port {}, whose frames can't be reproduced: the run can't restart",
                        ps_.setup.name, port->spec.name));
    rebuild_->begin("requested");
    return run::carried_out(fmt::format("{} restarts", ps_.setup.name));
}

run::verdict commands::carry_out(const run::seat_request& r) {
    // Among a stage's instances, `cont` continues those that are paused; it is refused if none is.
    const std::vector<seat*> meant = seats_->find(r.stage);
    const bool some_are_paused =
        std::any_of(meant.begin(), meant.end(), [](const seat* s) { return is_paused(*s); });
    const auto act = [&](process_table& t, seat& s) {
        switch (r.order) {
            case run::seat_order::stop:
                return stop_seat(t, s);
            case run::seat_order::cont:
                return some_are_paused && !is_paused(s) ? fmt::format("{} is not paused", s.label)
                                                        : continue_seat(t, s);
            case run::seat_order::restart:
                return restart_seat(t, s);
            case run::seat_order::down:
                return take_seat_down(t, s);
            case run::seat_order::up:
                break;
        }
        return bring_seat_up(t, s);
    };
    return on_seats(r.stage, act);
}

run::verdict commands::carry_out(const run::kill_request& r) {
    return on_seats(r.stage, [&r](process_table& t, seat& s) { return kill_seat(t, s, r.signal); });
}

run::verdict commands::carry_out(const run::inject_request& r) {
    return on_seats(r.stage, [&r](process_table& t, seat& s) { return inject_fault(t, s, r.fault); });
}

run::verdict commands::on_seats(const std::string& name,
                                const std::function<std::string(process_table&, seat&)>& act) {
    if (!phase_->is_open())
        return run::refused(exit_code::stage_failed, fmt::format("{} is {}", ps_.setup.name, phase_->name()));
    std::string message;
    for (seat* s : seats_->find(name)) message += (message.empty() ? "" : "\n") + act(*seats_, *s);
    return run::carried_out(message);
}

}  // namespace carousel::supervisor
