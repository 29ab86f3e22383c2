#include "supervisor/engine/message_dispatch.hpp"

#include <fmt/format.h>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/start.hpp"

namespace carousel::supervisor {

using nlohmann::json;

void message_dispatch::on_close(const connection& c) {
    if (c.stage) supervisor::connection_closed(*seats_, c.fd.get());
    taps_->release(c);
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
        answer(c.fd.get(), run::to_json(run::refused(exit_code::usage, "a message is one JSON object")));
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
        if (!phase_->is_open()) throw config_error("the run is ending");
        refusal.message = hello.port ? supervisor::accept_port(*seats_, fd, std::move(peer), hello,
                                                               a.message.fds, refusal.later)
                                     : supervisor::accept_stage(*seats_, fd, std::move(peer), hello);
        a.line.stage = refusal.message->empty();
    } catch (const error& e) {  // the error has a message for the stage
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

void message_dispatch::receive(const arrival& a, const run::ready_message&) {
    if (a.line.stage) supervisor::stage_is_ready(*seats_, a.line.fd.get());
}

void message_dispatch::receive(const arrival& a, const run::left_message&) {
    if (a.line.stage) supervisor::port_left(*seats_, a.line.fd.get());
}

void message_dispatch::receive(const arrival& a, const run::back_message&) {
    if (a.line.stage) supervisor::stage_returned(*seats_, a.line.fd.get());
}

}  // namespace carousel::supervisor
