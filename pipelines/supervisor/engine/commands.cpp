// engine: the control socket. Stages send {"hello"} and stay connected, viewers {"tap"}; clients send one
// {"command"} and get one reply.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock.hpp"
#include "core/clock_identity.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "run/answer_message.hpp"
#include "run/stage_message.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/processes/handshake.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/watch.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t max_connections = 300;
constexpr u64 max_logged_refusals = 10;
constexpr u64 accept_pause_ns = 250 * ns_per_ms, idle_client_ns = 2 * ns_per_s, shortage_over_ns = ns_per_s;

void answer(int fd, const json& reply) {
    // A client that does not read its reply loses it; the supervisor never waits for a client.
    (void)shm::send_message(fd, reply.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

void engine::accept_all() {
    for (;;) {
        shm::unique_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd && is_shortage(errno) && errno != EAGAIN) return pause_accepting(errno);
        if (!fd) return;
        if (shm::peer_of(fd.get()).uid != ::getuid() || connections_.size() >= max_connections) continue;
        const int number = fd.get();
        connections_[number].fd = std::move(fd);
        connections_[number].since_ns = now_ns();
        loop_.watch(number, EPOLLIN | EPOLLRDHUP, [this, number](u32) { read_connection(number); });
    }
}

void engine::watch_listener() {
    loop_.watch(listener_.get(), EPOLLIN, [this](u32) { accept_all(); });
}

// No descriptor is left to accept a connection. Clients wait in the queue; the listener is not watched
// meanwhile, since it would wake this process continuously. Idle clients lose their connection in favour of
// stages.
void engine::pause_accepting(int why) {
    const u64 now = now_ns();
    if (short_since_ns_ == 0) short_since_ns_ = now;
    shortage_ = "cannot accept a connecting process: " + no_file_text(why);
    if (!shortage_logged_) {  // a shortage that began with a postponed start has not been logged in this form
        shortage_logged_ = true;
        seats_->log_line(fmt::format("cannot accept a connecting process yet: {}", no_file_text(why)));
    }
    loop_.forget(listener_.get());
    accept_again_ns_ = now + accept_pause_ns;
    std::vector<int> idle;
    for (const auto& [fd, c] : connections_)
        if (!c.stage && c.tap == shm::none && now - c.since_ns > idle_client_ns) idle.push_back(fd);
    for (const int fd : idle) drop(fd);
}

// A stage that waits to be accepted is not late. If no process can be accepted for shortage_patience_ns, the
// run ends and reports the cause.
void engine::watch_shortage(u64 now) {
    if (accept_again_ns_ != 0 && now >= accept_again_ns_) {
        accept_again_ns_ = 0;
        watch_listener();
        return accept_all();
    }
    for (const auto& s : seats_->seats) {
        if (!s->start_short) continue;
        if (short_since_ns_ == 0) short_since_ns_ = now;
        shortage_ = s->shortage;
    }
    if (short_since_ns_ == 0) return;
    // After a predecessor that got no thread, a process proves nothing until it has run for a while.
    const auto waits = [&](const auto& s) {
        if (s->start_short || !s->now) return s->start_short;
        if (s->machine.state() == seat_state::starting) return s->now->connection < 0 || !s->shortage.empty();
        return !s->shortage.empty() && now < s->machine.since_ns() + shortage_over_ns;
    };
    if (std::none_of(seats_->seats.begin(), seats_->seats.end(), waits)) {
        if (accept_again_ns_ == 0 && now - short_since_ns_ > shortage_over_ns) {
            short_since_ns_ = 0;
            shortage_logged_ = false;
            for (const auto& s : seats_->seats) s->shortage.clear();
        }
        return;
    }
    if (now - short_since_ns_ < shortage_patience_ns || seats_->failure || phase_ == phase::ending) return;
    seats_->fail(
        "carousel",
        fmt::format("no stage could start within {} s: {}", shortage_patience_ns / ns_per_s, shortage_),
        exit_code::shared_memory);
}

void engine::read_connection(int fd) {
    for (;;) {
        const auto at = connections_.find(fd);
        if (at == connections_.end()) return;
        shm::message m;
        const shm::receive_status got = shm::receive_message(fd, m);
        if (got == shm::receive_status::would_block) return;
        if (got != shm::receive_status::ok) {
            drop(fd);
            return;
        }
        // The only guard for every kind of message: a broken or malicious peer loses its connection and
        // nothing else.
        try {
            on_message(at->second, m);
        } catch (const std::exception& e) {
            refuse_message(fd, e.what());
            return;
        }
    }
}

void engine::refuse_message(int fd, const std::string& why) {
    if (connections_.count(fd) == 0) return;
    answer(fd, run::refusal("invalid message: " + why));
    if (++refused_messages_ <= max_logged_refusals)
        seats_->log_line(fmt::format(
            "invalid message from pid {} ({}): its connection is closed{}", shm::peer_of(fd).pid, why,
            refused_messages_ == max_logged_refusals ? "; further invalid messages are not logged" : ""));
    drop(fd);
}

void engine::drop(int fd) {
    const auto at = connections_.find(fd);
    if (at == connections_.end()) return;
    loop_.forget(fd);
    const connection gone = std::move(at->second);
    connections_.erase(at);
    if (gone.stage) supervisor::connection_closed(*seats_, fd);
    if (gone.tap != shm::none) ring::dismiss_latest(segment_->block(), gone.tap);
}

std::string engine::accept_process(connection& c, const json& request, shm::message& m, bool& again) {
    try {
        if (request.contains("return")) return handle_return(c, run::read_return(request), m);
        const bool open = phase_ == phase::running || phase_ == phase::draining;
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
    } catch (const error& e) {  // ours: a message for the stage
        return e.what();
    }
}

void engine::on_message(connection& c, shm::message& m) {
    const int fd = c.fd.get();
    const json request = parse_json_or_discard(m.text, json_channel::message);
    const auto has_object = [&](const char* what) {
        return request.contains(what) && request[what].is_object();
    };
    if (!request.is_object()) {
        answer(fd, run::to_json(run::refused(exit_code::usage, "a message is one JSON object")));
    } else if (json refusal; request.contains("command") && forward_to_host(c, request, refusal)) {
        if (!refusal.is_null()) answer(fd, refusal);
    } else if (request.contains("command")) {
        answer(fd, handle_command(request));
    } else if (has_object("hello") || has_object("return")) {
        bool again = false;
        if (const std::string why = accept_process(c, request, m, again); !why.empty())
            answer(fd, run::refusal(why, again));
    } else if (has_object("owner")) {
        adopt_owner(c, run::read_owner(request));
    } else if (has_object("tap")) {
        try {
            lease_tap(c, run::read_tap_request(request));
        } catch (const error& e) {
            answer(fd, run::refusal(e.what()));
        }
    } else if (request.contains("ready") && c.stage) {
        supervisor::stage_is_ready(*seats_, fd);
    } else if (request.contains("left") && c.stage) {
        supervisor::on_port_left(*seats_, fd);
    } else if (request.contains("back") && c.stage) {
        supervisor::on_stage_returned(*seats_, fd);
    }
}

json engine::handle_command(const json& message) {
    try {
        // A client may name the run that it watches: it must not reach another run that has meanwhile taken
        // the name, and with it the path of the socket.
        if (const run::heading h = run::read_heading(message); h.run_id && *h.run_id != run_id_)
            return run::to_json(run::refused(
                exit_code::usage,
                fmt::format("{} names another run here ({}) than the requested run ({}): nothing was done",
                            setup_->name, run_id_, *h.run_id)));
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

run::parameter_state engine::carry_out(const run::parameters_request&) const { return parameters_.answer(); }

// A frame carries the parameters that its source has read; in a run whose sources are all on other hosts, the
// values in this block would reach no frame.
run::parameter_state engine::carry_out(const run::set_request& r) {
    const bool from_elsewhere =
        std::all_of(setup_->stages.begin(), setup_->stages.end(),
                    [](const stage_setup& s) { return !s.spec.input_indices.empty() || s.receives(); });
    if (from_elsewhere)
        throw config_error(
            "set: all frames of this run come from another host and have its parameters: run `carousel set` "
            "on the host of their source");
    return parameters_.set(r, segment_->block(), *made_);
}

run::verdict engine::carry_out(const run::end_request& r) {
    if (r.as_interrupt)
        interrupt(SIGINT);
    else
        end_on_request("a request to end the run", 0, "`carousel down`: delivering frames in flight");
    return run::carried_out(fmt::format("{} ends", setup_->name));
}

run::verdict engine::carry_out(const run::rebuild_request&) {
    if (over_)
        return run::refused(exit_code::stage_failed, fmt::format("{} is {}", setup_->name, state_name()));
    if (const stage_setup* port = port_of(*setup_))
        return run::refused(
            exit_code::usage,
            fmt::format("{} has the port {}, whose frames can't be reproduced: the run can't restart",
                        setup_->name, port->spec.name));
    rebuild("requested");
    return run::carried_out(fmt::format("{} restarts", setup_->name));
}

run::verdict engine::carry_out(const run::seat_request& r) {
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

run::verdict engine::carry_out(const run::kill_request& r) {
    return on_seats(r.stage, [&r](process_table& t, seat& s) { return kill_seat(t, s, r.signal); });
}

run::verdict engine::carry_out(const run::inject_request& r) {
    return on_seats(r.stage, [&r](process_table& t, seat& s) { return inject_fault(t, s, r.fault); });
}

run::verdict engine::on_seats(const std::string& name,
                              const std::function<std::string(process_table&, seat&)>& act) {
    if (phase_ != phase::running && phase_ != phase::draining)
        return run::refused(exit_code::stage_failed, fmt::format("{} is {}", setup_->name, state_name()));
    std::string message;
    for (seat* s : seats_->find(name)) message += (message.empty() ? "" : "\n") + act(*seats_, *s);
    return run::carried_out(message);
}

}  // namespace carousel::supervisor
