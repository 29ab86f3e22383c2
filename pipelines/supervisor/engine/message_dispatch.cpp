#include "supervisor/engine/message_dispatch.hpp"

#include <fmt/format.h>

#include "control/answer_message.hpp"
#include "control/stage_message.hpp"
#include "core/clock_identity.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "supervisor/processes/handshake.hpp"
#include "supervisor/processes/process_events.hpp"

namespace carousel::supervisor {

using nlohmann::json;

void message_dispatch::on_close(const connection& c) {
    if (c.stage) supervisor::connection_closed(*seats_, c.fd.get());
    taps_->release(c);
}

std::string message_dispatch::accept_process(connection& c, const json& request, shm::message& m,
                                             bool& again) {
    try {
        if (request.contains("return")) return takeover_->accept_return(c, run::read_return(request), m);
        const bool open = phase_->is_open();
        const run::hello_message hello = run::read_hello(request);
        if (const i64 shift = clock_shift_ns(hello.clock, own_clock()); shift != 0)
            return fmt::format("{} cannot join the run: {}", hello.stage, clock_shift_text(shift));
        shm::peer_process peer = shm::peer_process_of(c.fd.get(), hello.start_time);
        std::string why = open && hello.port ? supervisor::accept_port(*seats_, c.fd.get(), std::move(peer),
                                                                       hello, m.fds, again)
                          : open ? supervisor::accept_stage(*seats_, c.fd.get(), std::move(peer), hello)
                                 : "the run is ending";
        c.stage = why.empty();
        return why;
    } catch (const error& e) {  // the error has a message for the stage
        return e.what();
    }
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

void message_dispatch::on_message(control_socket& from, connection& c, shm::message& m) {
    const int fd = c.fd.get();
    const json request = parse_json_or_discard(m.text, json_channel::message);
    const auto has_object = [&](const char* what) {
        return request.contains(what) && request[what].is_object();
    };
    if (!request.is_object()) {
        answer(fd, run::to_json(run::refused(exit_code::usage, "a message is one JSON object")));
    } else if (request.contains("command")) {
        if (!route_request(c, request)) answer(fd, commands_->answer(request));
    } else if (has_object("hello") || has_object("return")) {
        bool again = false;
        if (const std::string why = accept_process(c, request, m, again); !why.empty())
            answer(fd, run::refusal(why, again));
    } else if (has_object("owner")) {
        takeover_->accept_owner(c, run::read_owner(request), from);
    } else if (has_object("tap")) {
        try {
            taps_->lease(c, run::read_tap_request(request));
        } catch (const error& e) {
            answer(fd, run::refusal(e.what()));
        }
    } else if (request.contains("ready") && c.stage) {
        supervisor::stage_is_ready(*seats_, fd);
    } else if (request.contains("left") && c.stage) {
        supervisor::port_left(*seats_, fd);
    } else if (request.contains("back") && c.stage) {
        supervisor::stage_returned(*seats_, fd);
    }
}

}  // namespace carousel::supervisor
