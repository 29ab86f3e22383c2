#include "supervisor/engine/message_dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "ring/recovery.hpp"
#include "spec/links.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/device_switch.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/engine/run_rebuild.hpp"
#include "supervisor/engine/takeover.hpp"
#include "supervisor/engine/trace_control.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/start.hpp"
#include "supervisor/processes/start_over.hpp"
#include "supervisor/stores/memory_store.hpp"

namespace carousel::supervisor {
using nlohmann::json;
namespace {

std::string rings_text(const stage_setup& st) {
    std::string text;
    for (u32 o = 0; o < st.outputs(); ++o) text += (o == 0 ? "" : ", ") + st.ring_name(o);
    return text;
}

/// Returns the ring with that name; for "", the ring that the last sink reads.
ring_place tapped_ring(const run_setup& s, const std::string& name) {
    if (name.empty()) {
        for (std::size_t k = s.stages.size(); k-- > 0;)
            if (s.stages[k].is_sink() && !s.stages[k].spec.input_indices.empty())
                return {s.stages[k].spec.input_indices.front(), s.stages[k].output_of_input(0)};
        throw config_error("this pipeline has no sink");
    }
    for (const ring_place at : s.rings()) {
        const stage_setup& st = s.stages[at.stage];
        const std::string& output = st.ring(at.output).output;
        if (st.ring_name(at.output) == name || (!output.empty() && st.spec.name + "." + output == name))
            return at;
    }
    const std::string stage = ring_name_of(name).stage;
    for (const stage_setup& st : s.stages)
        if (stage != name && st.spec.name == stage && st.has_output())
            throw config_error(
                fmt::format("no ring \"{}\" in {}; those of {}: {}", name, s.name, stage, rings_text(st)));
    throw config_error(fmt::format("no stage \"{}\" with an output in {}", name, s.name));
}

/// Returns the next free number for a viewer: one more than the highest number that a viewer has now.
u32 next_tap(const shm::control_block& c) {
    u32 next = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
            const ring::group_word w = ring::group_word::of(ring::load(c.link[k].group_state[g]));
            if (w.state == ring::group_state::latest && w.entry >= shm::max_incarnations)
                next = std::max(next, w.entry - shm::max_incarnations + 1);
        }
    }
    return next;
}

}  // namespace

void message_dispatch::on_close(const connection& c) {
    if (c.stage) supervisor::connection_closed(*seats_, c.fd.get());
    taps_->release(c);
    supervisor::end_debugging(*seats_, c.debug);
}

bool message_dispatch::route_request(connection& c, const json& request) {
    return extensions_->any([&](run_extension& e) {
        const request_route route = e.take_request(request);
        if (!route.taken) return false;
        c.request_id = route.id;
        if (!route.refusal.is_null()) answer(c.fd.get(), route.refusal);
        return true;
    });
}

// The only place where the types of messages are distinguished.
void message_dispatch::on_message(control_socket& from, connection& c, shm::message& m) {
    const json message = parse_json_or_discard(m.text, json_channel::message);
    if (!message.is_object()) {
        answer(c.fd.get(), run::to_json(run::refused(exit_code::usage, "a message must be one JSON object")));
    } else if (is_message_of<run::connection_message>(message)) {
        std::visit(
            [&](const auto& each) {
                receive(arrival{from, c, m}, each);
            },
            read_message<run::connection_message>(message));
    } else if (!route_request(c, message)) {
        answer(c.fd.get(), commands_->answer(message));
    }
}

void message_dispatch::receive(const arrival& a, const run::hello_message& hello) {
    const int fd = a.line.fd.get();
    run::verdict refusal;
    try {
        if (const i64 shift = clock_shift_ns(hello.clock, own_clock()); shift != 0)
            throw config_error(
                fmt::format("{} cannot join the run: {}", hello.stage, clock_shift_text(shift)));
        shm::peer_process peer = shm::peer_process_of(fd, hello.start_time);
        // a port's program outlives a rebuild, and tries again
        const bool later = hello.port && phase_->is(phase::rebuilding);
        if (!phase_->is_open() && !later) throw config_error("the run is ending");
        refusal.message = hello.port ? supervisor::accept_port(*seats_, fd, std::move(peer), hello,
                                                               a.message.fds, refusal.later)
                                     : supervisor::accept_stage(*seats_, fd, std::move(peer), hello);
        a.line.stage = refusal.message->empty();
    } catch (const error& e) {  // the text of the error is sent to the stage
        refusal.message = e.what();
    }
    if (!refusal.message->empty()) answer(fd, run::to_json(refusal));
}

void message_dispatch::receive(const arrival& a, const run::return_message& message) {
    std::string why;
    try {
        why = takeover_->accept_return(a.line, message, a.message);
    } catch (const error& e) {
        why = e.what();
    }
    if (!why.empty()) answer(a.line.fd.get(), run::to_json(run::refused(why)));
}

void message_dispatch::receive(const arrival& a, const run::owner_message& message) {
    takeover_->accept_owner(a.line, message, a.socket);
}

void message_dispatch::receive(const arrival& a, const run::tap_request& request) {
    try {
        taps_->lease(a.line, request);
    } catch (const error& e) {
        answer(a.line.fd.get(), run::to_json(run::refused(e.what())));
    }
}

void message_dispatch::receive(const arrival& a, const run::debug_request& request) {
    const int fd = a.line.fd.get();
    try {
        if (!request.run_id.empty() && request.run_id != std::string(seats_->c->run_id))
            throw config_error("another run has this name now");
        if (!phase_->is_open()) throw config_error("the run is ending");
        if (a.line.debug.is_held()) throw config_error("this connection has a stage to debug already");
        run::debug_answer reply =
            supervisor::begin_debugging(*seats_, request, shm::peer_of(fd).pid, a.line.debug);
        reply.run_id = seats_->c->run_id;
        (void)shm::send_message(fd, json(reply).dump());
    } catch (const error& e) {
        answer(fd, run::to_json(run::refused(e.code(), e.what())));
    }
}

void message_dispatch::receive(const arrival& a, const run::ready_message&) {
    if (a.line.stage) supervisor::stage_is_ready(*seats_, a.line.fd.get());
}

void message_dispatch::receive(const arrival& a, const run::detached_message&) {
    if (a.line.stage) supervisor::standby_detached(*seats_, a.line.fd.get());
}

void message_dispatch::receive(const arrival& a, const run::left_message&) {
    if (a.line.stage) supervisor::port_left(*seats_, a.line.fd.get());
}

void message_dispatch::receive(const arrival& a, const run::back_message&) {
    if (a.line.stage) supervisor::stage_returned(*seats_, a.line.fd.get());
}

json commands::answer(const json& message) {
    try {
        // A client may send the id of the run that it watches. In the meantime another run may have taken the
        // name, and with the name the path of the socket. That other run must not carry out the client's
        // request.
        if (const std::string meant = message.value("run_id", ps_.run_id); meant != ps_.run_id)
            return run::to_json(run::refused(
                exit_code::usage,
                fmt::format(
                    "{}: the run of this name here ({}) is not the requested run ({}), so nothing was done",
                    ps_.setup.name, ps_.run_id, meant)));
        return std::visit([this](const auto& r) { return run::to_json(carry_out(r)); },
                          run::read_request(message));
    } catch (const run::refused_for_now& e) {
        return run::to_json(run::verdict{false, e.what(), e.code(), true});
    } catch (const error& e) {
        return run::to_json(run::refused(e.code(), e.what()));
    } catch (const json::exception& e) {  // the request has a value of the wrong type
        return run::to_json(run::refused(exit_code::usage, run::unreadable_request(e)));
    }
}

// The state is saved first: otherwise a supervisor that is killed after the answer would have reported counts
// that its successor does not find in the state file, and a counter of the metrics would decrease.
run::ps_answer commands::carry_out(const run::ps_request&) const {
    save_();
    return ps_answer_of(ps_);
}

run::trace_answer commands::carry_out(const run::trace_request& r) {
    return trace_->carry_out(r, phase_->name());
}

run::trace_file_answer commands::carry_out(const run::trace_file_request& r) { return trace_->carry_out(r); }

run::parameter_state commands::carry_out(const run::parameters_request&) const {
    return parameters_->answer();
}

// A frame carries the parameters that its source has read. If all sources are on other hosts, no frame would
// carry the values in this block.
run::parameter_state commands::carry_out(const run::set_request& r) {
    const bool from_elsewhere =
        std::all_of(ps_.setup.stages.begin(), ps_.setup.stages.end(),
                    [](const stage_setup& s) { return !s.spec.input_indices.empty() || s.receives(); });
    if (from_elsewhere)
        throw config_error(
            "set: all frames of this run come from another host and have that host's parameters; run "
            "`carousel set` on the host of their source");
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
    rebuild_->begin("requested");
    return run::carried_out(fmt::format("{} restarts", ps_.setup.name));
}

run::verdict commands::carry_out(const run::device_request& r) { return devices_->carry_out(r); }

run::verdict commands::carry_out(const run::seat_request& r) {
    // `cont` continues the paused instances of a stage; it is refused if no instance is paused.
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

// The extension of a run that can be reloaded takes these requests (reload.hpp).
run::verdict commands::carry_out(const run::reload_request&) const {
    return run::refused(exit_code::usage, fmt::format("{} can't be reloaded", ps_.setup.name));
}

run::verdict commands::carry_out(const run::continue_request&) const {
    return run::refused(exit_code::usage,
                        fmt::format("{} can't be continued by a successor", ps_.setup.name));
}

run::verdict commands::on_seats(const std::string& name,
                                const std::function<std::string(process_table&, seat&)>& act) {
    if (!phase_->is_open())
        return run::refused(exit_code::stage_failed, fmt::format("{} is {}", ps_.setup.name, phase_->name()));
    std::string message;
    for (seat* s : seats_->find(name)) message += (message.empty() ? "" : "\n") + act(*seats_, *s);
    return run::carried_out(message);
}

void tap_leases::adopt() { taps_ = next_tap(block_->block()); }

void tap_leases::release(const connection& c) {
    if (c.tap != shm::none) ring::dismiss_latest(block_->block(), c.tap);
}

void tap_leases::lease(connection& c, const run::tap_request& request) {
    const ring_place at = tapped_ring(*setup_, request.stage);
    const stage_setup& st = setup_->stages[at.stage];
    const u32 link = block_->published().stage[at.stage].output_link[at.output];
    if (c.tap == shm::none) {
        // This number identifies the viewer in a latest group. It is never equal to the entry of an
        // incarnation, and is not reused while a word may still contain it.
        c.tap = shm::max_incarnations + taps_++ % (0xFFFFU - shm::max_incarnations);
    }
    std::vector<int> fds;
    if (!memory_->complete())
        throw shm_error("the run is being taken over by a second supervisor: try again");
    run::tap_answer a;
    a.run_id = run_id_;
    a.link = link;
    a.stage = st.ring_name(at.output);
    a.entry = c.tap;
    a.format = st.ring(at.output).format;
    a.memory = memory_->describe(false, link, fds);
    a.device = st.device;
    (void)shm::send_message(c.fd.get(), nlohmann::json(a).dump(), fds);
}

}  // namespace carousel::supervisor
