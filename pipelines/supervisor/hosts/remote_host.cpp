#include "supervisor/hosts/remote_host.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "supervisor/plan/compatibility.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
namespace msg = host_message;
constexpr u64 connect_every_ns = 250 * ns_per_ms, ping_every_ns = 500 * ns_per_ms;
constexpr u64 unreadable_rest_ns = ns_per_s;  ///< the pause gives the user time to replace the other build

}  // namespace

remote_host::remote_host(host_spec spec, const hosts_plan& plan, std::string token, u64 now)
    : spec_(std::move(spec)), plan_(&plan), token_(std::move(token)), away_since_ns_(now) {}

void remote_host::connect(u64 now) {
    if (now < retry_ns_) return;
    retry_ns_ = now + connect_every_ns;
    try {
        stream_ = std::make_unique<sealed_stream>(sealed_stream::connect(spec_.address, spec_.port),
                                                  sealed_stream::endpoint::coordinator, token_, now);
        hello_sent_ = false;
    } catch (const error& e) {
        no_listener_ = true;
        problem_ = e.what();
    }
}

void remote_host::lose(u64 now, const std::string& why) {
    const bool was_connected = stream_ && state_ != host_state::away;
    const bool unauthenticated = stream_ && stream_->wrong_token();
    if (unauthenticated) {
        problem_ = fmt::format(
            "{} port {} has a different token for this pipeline ({}): use the same token file on both hosts, "
            "for example copied by `scp -p`",
            spec_.address, spec_.port, plan_->token);
        // Once the run has begun, a wrong token does not end the run, because any process may have taken the
        // port of a dead host.
        if (!all_begun_) state_ = host_state::refused;
    } else {
        problem_ = why;
    }
    no_listener_ = !unauthenticated && why == std::strerror(ECONNREFUSED);
    if (state_ == host_state::ended && farewell_ != farewell::over) {
        const bool hung_up = stream_ && stream_->closed() && farewell_ == farewell::sent;
        farewell_ = unauthenticated || hung_up ? farewell::over : farewell::pending;
    }
    close();
    if (state_ == host_state::ended || state_ == host_state::refused) return;
    state_ = host_state::away;
    if (was_connected) away_since_ns_ = now;
}

void remote_host::close() { stream_.reset(); }

void remote_host::was_unreadable(u64 now) {
    lose(now, "it sent an unknown message: check whether its version differs");
    retry_ns_ = now + unreadable_rest_ns;
}

// These values are read in many places later, so their types are checked once, here.
void remote_host::has_ended(json what) {
    (void)what.value("code", 1);
    (void)what.value("line", std::string());
    (void)what.value("alone", false);
    outcome = std::move(what);
    state_ = host_state::ended;
}

// The remote host also compares the plans, and refuses if they differ. The plans are also compared here, so
// that this side can report the difference.
void remote_host::handle(const msg::agreed& m) {
    const std::string what = difference(m.plan, plan_->plan);
    if (!what.empty()) {
        problem_ = fmt::format("its plan differs: {}", what);
        state_ = host_state::refused;
        return;
    }
    state_ = m.running ? host_state::begun : host_state::agreed;
    if (state_ == host_state::begun) away_since_ns_ = 0;
}

void remote_host::begin(std::optional<u64> first) {
    if (state_ != host_state::agreed) return;
    send(msg::begin{first});
    state_ = host_state::begun;
    away_since_ns_ = 0;
}

void remote_host::send_bye() {
    if (!connected()) return;
    stream_->send(write_message(msg::bye{}));
    if (connected()) farewell_ = farewell::sent;
}

// The host has ended. A previous coordinator may have stored the host's result without sending `bye`, or the
// connection may have broken before the host received `bye`. In both cases the host sends its result again,
// and then receives `bye`. If the host at this address belongs to another run or another plan, it is not the
// expected host.
bool remote_host::handle_farewell(const msg::to_coordinator& m) {
    if (std::holds_alternative<msg::ended>(m)) {
        send_bye();
        return true;
    }
    const auto* const agreed = std::get_if<msg::agreed>(&m);
    const bool declined = std::holds_alternative<msg::later>(m) || std::holds_alternative<msg::refused>(m);
    if ((agreed != nullptr && !agreed->running) || declined) farewell_ = farewell::over;
    return agreed != nullptr || declined;
}

/// Returns false if the caller must handle the message.
bool remote_host::handle(msg::to_coordinator& m, u64 now) {
    if (state_ == host_state::ended && handle_farewell(m)) return true;
    if (const auto* agreed = std::get_if<msg::agreed>(&m)) {
        handle(*agreed);
    } else if (const auto* later = std::get_if<msg::later>(&m)) {
        later_ = later->why;
    } else if (const auto* refused = std::get_if<msg::refused>(&m)) {
        problem_ = refused->why;
        state_ = host_state::refused;
    } else if (const auto* pong = std::get_if<msg::pong>(&m)) {
        clock_.answered(pong->sent, pong->here, now);
    } else if (auto* answer = std::get_if<msg::ps>(&m)) {
        ps = std::move(answer->answer);
    } else if (auto* ended = std::get_if<msg::ended>(&m)) {
        has_ended(std::move(ended->outcome));
    } else {
        return false;
    }
    return true;
}

std::vector<msg::to_coordinator> remote_host::poll(u64 now, const std::string& run_id) {
    std::vector<msg::to_coordinator> unhandled;
    if (state_ == host_state::refused) return unhandled;
    if (state_ == host_state::ended && farewell_ == farewell::over) {
        close();
        return unhandled;
    }
    if (!stream_) connect(now);
    if (!stream_) return unhandled;
    for (const json& received : stream_->advance(now)) {
        try {
            auto m = read_message<msg::to_coordinator>(received);
            if (!handle(m, now)) unhandled.push_back(std::move(m));
        } catch (const json::exception&) {
            was_unreadable(now);
            return unhandled;
        }
    }
    if (!later_.empty()) {  // the hello is repeated over a new connection
        lose(now, std::exchange(later_, ""));
        retry_ns_ = now + connect_every_ns;
        return unhandled;
    }
    if (stream_->closed() || (stream_->open() && now > stream_->last_received_ns() + silence_ns)) {
        lose(now, stream_->closed() ? stream_->why() : "it does not respond any more");
        return unhandled;
    }
    if (stream_->open() && !hello_sent_) {
        hello_sent_ = true;
        no_listener_ = false;
        clock_.forget();  // another machine may have this address now
        if (state_ == host_state::away) state_ = host_state::greeting;
        send(msg::hello{spec_.name, plan_->name, run_id, plan_->plan,
                        all_begun_ ? std::nullopt : std::optional(plan_->first)});
    }
    if (stream_->open() && now >= ping_ns_) {
        ping_ns_ = now + ping_every_ns;
        send(msg::ping{now_ns()});
    }
    return unhandled;
}

}  // namespace carousel::supervisor
