// engine: the control socket. Stages say {"hello"} and stay, viewers {"tap"}; clients ask one {"command"} and get one answer.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/injected_fault.hpp"
#include "shm/process_id.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/plan/graph.hpp"
#include "supervisor/processes/let_in.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "supervisor/processes/watch.hpp"
#include "telemetry/histogram.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t max_connections = 300;
constexpr u64 said_refusals = 10;
constexpr u64 accept_rest_ns = 250 * ns_per_ms, idle_client_ns = 2 * ns_per_s, shortage_over_ns = ns_per_s,
              shortage_patience_ns = 8 * ns_per_s;

json refusal(int code, const std::string& message) { return {{"ok", false}, {"message", message}, {"code", code}}; }

/// What a sink has counted, source's claim to commit, as [from ms, to ms, frames]; null for a stage that is none.
json counted_latencies(const stage_setup& st, const shm::word* buckets) {
    if (st.has_output()) return json();
    json out = json::array();
    for (u32 k = 0; k < shm::latency_buckets; ++k)
        if (const u64 count = ring::load(buckets[k]); count > 0)
            out.push_back({k == 0 ? 0.0 : static_cast<f64>(telemetry::upper_ns(k - 1)) / 1e6, static_cast<f64>(telemetry::upper_ns(k)) / 1e6, count});
    return out;
}

void answer(int fd, const json& reply) {
    // A client that does not read its answer loses it; nobody waits for it.
    (void)shm::send_message(fd, reply.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

void engine::accept_all() {
    for (;;) {
        shm::unique_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd && is_shortage(errno) && errno != EAGAIN) return rest_from_accepting(errno);
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

// No descriptor is left for whoever wants to connect. They wait in the queue; a listener that is watched meanwhile would wake us
// without end. Clients that only hang on lose their place to stages.
void engine::rest_from_accepting(int why) {
    const u64 now = now_ns();
    if (short_since_ns_ == 0) short_since_ns_ = now;
    if (!shut_out_said_) {  // a shortage that began with a start that was put off has not been told as this
        shut_out_said_ = true;
        seats_->say(fmt::format("a process that connects can't be let in yet: {}", shortage_text(why)));
    }
    loop_.forget(listener_.get());
    accept_again_ns_ = now + accept_rest_ns;
    std::vector<int> idle;
    for (const auto& [fd, c] : connections_)
        if (!c.stage && c.tap == shm::none && now - c.since_ns > idle_client_ns) idle.push_back(fd);
    for (const int fd : idle) drop(fd);
}

// A stage that waits for its place is not late. A run that nobody can be let into for so long ends, and says why.
void engine::watch_shortage(u64 now) {
    if (accept_again_ns_ != 0 && now >= accept_again_ns_) {
        accept_again_ns_ = 0;
        watch_listener();
        return accept_all();
    }
    const auto can_not_start = [](const auto& s) { return s->start_short; };
    if (short_since_ns_ == 0 && std::any_of(seats_->seats.begin(), seats_->seats.end(), can_not_start)) short_since_ns_ = now;
    if (short_since_ns_ == 0) return;
    const auto waits = [](const auto& s) {
        return s->start_short || (s->now && s->now->connection < 0 && s->machine.state() == seat_state::starting);
    };
    if (std::none_of(seats_->seats.begin(), seats_->seats.end(), waits)) {
        if (accept_again_ns_ == 0 && now - short_since_ns_ > shortage_over_ns) {
            short_since_ns_ = 0;
            shut_out_said_ = false;
        }
        return;
    }
    if (now - short_since_ns_ < shortage_patience_ns || seats_->failure || phase_ == phase::ending) return;
    seats_->fail("carousel",
                 fmt::format("no stage can be let in for {} s: {}", shortage_patience_ns / ns_per_s, shortage_text(EMFILE)),
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
        // The one guard for every kind of message: a peer that is broken, or malicious, loses its connection and nothing else.
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
    answer(fd, {{"refused", "this message can't be read: " + why}});
    if (++refused_messages_ <= said_refusals)
        seats_->say(fmt::format("a message of pid {} can't be read ({}): its connection is closed{}", shm::peer_of(fd).pid, why,
                                refused_messages_ == said_refusals ? "; further ones are not said" : ""));
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

std::string engine::let_in(connection& c, const json& request, shm::message& m) {
    try {
        if (request.contains("return")) return take_return(c, request["return"], m);
        const bool open = phase_ == phase::running || phase_ == phase::draining;
        std::string why = open ? supervisor::let_stage_in(*seats_, c.fd.get(), shm::peer_of(c.fd.get()), request["hello"])
                               : "the run is ending";
        c.stage = why.empty();
        return why;
    } catch (const error& e) {  // ours: a sentence for the stage
        return e.what();
    }
}

void engine::on_message(connection& c, shm::message& m) {
    const int fd = c.fd.get();
    const json request = json::parse(m.text, nullptr, false);
    const auto asks = [&](const char* what) { return request.contains(what) && request[what].is_object(); };
    if (!request.is_object()) {
        answer(fd, refusal(exit_code::usage, "a message is one JSON object"));
    } else if (request.contains("command")) {
        answer(fd, handle_command(request));
    } else if (asks("hello") || asks("return")) {
        if (const std::string why = let_in(c, request, m); !why.empty()) answer(fd, {{"refused", why}});
    } else if (asks("owner")) {
        take_owner(c, request["owner"]);
    } else if (asks("tap")) {
        try {
            lend(c, request["tap"]);
        } catch (const error& e) {
            answer(fd, {{"refused", e.what()}});
        }
    } else if (request.contains("ready") && c.stage) {
        supervisor::stage_is_ready(*seats_, fd);
    } else if (request.contains("back") && c.stage) {
        supervisor::stage_is_back(*seats_, fd);
    }
}

json engine::handle_command(const json& request) {
    try {
        const std::string command = request.at("command");
        // Who watches a run asks that run and no other: not the one that has taken its name, and its socket's path, meanwhile.
        if (const std::string meant = request.value("run_id", run_id_); meant != run_id_)
            return refusal(exit_code::usage, fmt::format("{} is another run here ({}) than the one that is meant ({}): nothing was done", setup_->name,
                                                         run_id_, meant));
        if (command == "ps") return ps();
        if (command == "trace") return trace(request);
        if (command == "parameters") return parameters_.answer();
        if (command == "set") return parameters_.set(request, segment_->block(), *made_);
        const std::string name = request.value("stage", "");
        if ((command == "down" || command == "shutdown") && name.empty()) {
            begin_drain("`carousel down`: what is begun is delivered");
            return {{"ok", true}, {"message", fmt::format("{} ends", setup_->name)}};
        }
        if (command == "begin-again") {  // what the death of an owner of ring memory does, for its tests where there is no GPU
            rebuild("asked to");
            return {{"ok", true}, {"message", fmt::format("{} begins again", setup_->name)}};
        }
        std::string (*act)(process_table&, seat&) = nullptr;
        if (command == "stop") act = stop_seat;
        if (command == "cont") act = continue_seat;
        if (command == "restart") act = restart_seat;
        if (command == "down") act = take_seat_down;
        if (command == "up") act = bring_seat_up;
        const shm::injected_fault fault = shm::fault_named(request.value("fault", ""));
        if (command == "inject" && fault == shm::injected_fault::nothing)
            return refusal(exit_code::usage, fmt::format("inject: no such fault \"{}\": {} are known",
                                                         request.value("fault", ""), shm::fault_names(" and ")));
        if (act == nullptr && command != "kill" && command != "inject")
            return refusal(exit_code::usage, fmt::format("unknown command \"{}\": ps, trace, parameters, set, kill, inject, "
                                                         "stop, cont, restart, down, up and shutdown are known",
                                                         command));
        if (phase_ != phase::running && phase_ != phase::draining)
            return refusal(exit_code::stage_failed, fmt::format("{} is {}", setup_->name, state_name()));
        const int signal = request.value("signal", 9);
        std::string message;
        for (seat* s : seats_->find(name)) {
            const std::string done = act != nullptr                          ? act(*seats_, *s)
                                     : fault != shm::injected_fault::nothing ? inject_fault(*seats_, *s, fault)
                                                                          : kill_seat(*seats_, *s, signal);
            message += (message.empty() ? "" : "\n") + done;
        }
        return {{"ok", true}, {"message", message}};
    } catch (const error& e) {
        return refusal(e.code(), e.what());
    } catch (const json::exception& e) {
        return refusal(exit_code::usage, fmt::format("the request can't be read: {}", e.what()));
    }
}

std::string engine::state_name() const {
    switch (phase_) {
        case phase::draining:
            return "stopping";
        case phase::leaving:
            return "done";
        case phase::ending:
            return "ending";
        case phase::rebuilding:
            return "beginning again";
        case phase::running:
            break;
    }
    if (!missing_stages(*setup_, seats_->seats).empty()) return "waiting";
    bool starting = false;
    for (const auto& s : seats_->seats) {
        if (s->machine.state() == seat_state::stopped) return "paused";
        starting = starting || s->machine.state() == seat_state::starting;
    }
    return starting ? "starting" : "running";
}

// "waiting: fragment is down, vertex is in backoff": for people.
std::string engine::state_text() const {
    std::string text = state_name();
    if (text != "waiting") return text;
    const char* between = ": ";
    for (const missing_stage& m : missing_stages(*setup_, seats_->seats))
        text += std::exchange(between, ", ") + m.name + " " + m.how;
    return text;
}

json engine::ps() const {
    const u64 now = now_ns();
    const std::vector<telemetry::stage_shares> shares = times_.recent();
    const auto share = [&shares](u32 stage, f64 telemetry::stage_shares::*of) {
        return shares.empty() ? json() : json(shares[stage].*of);
    };
    json waits_for = json::array();
    for (const missing_stage& m : missing_stages(*setup_, seats_->seats)) waits_for.push_back(m.name);
    const auto& at = seats_->account.kills_at;
    const json kills{{"idle", at[0]}, {"open", at[1]}, {"submitted", at[2]}, {"committed", at[3]}, {"aborted", at[4]}};
    json stages = json::array();
    for (const auto& s : seats_->seats) {
        const stage_setup& st = setup_->stages[s->stage];
        const bool alive = s->now != nullptr;
        stages.push_back({{"name", st.spec.name},
                          {"instance", s->instance},
                          {"pid", alive ? json(s->now->pid) : json()},
                          {"state", name_of(s->machine.state())},
                          {"waits_for", full_disk_since_ns(segment_->block(), *s) != 0 ? json("full disk") : json()},
                          {"standby", !st.spec.standby ? json() : json(s->standby && s->standby->standing_by ? "ready" : "starting")},
                          {"standby_pid", s->standby ? json(s->standby->pid) : json()},
                          {"age_s", alive ? json(static_cast<f64>(now - s->now->spawned_ns) / 1e9) : json()},
                          {"restarts", s->restarts},
                          {"last_exit", s->last_exit.empty() ? json() : json(s->last_exit)},
                          {"frames_per_second", progress_.frames_per_second(s->stage)},
                          {"frames", ring::load(segment_->block().stage[s->stage].counters.frames)},
                          {"busy", share(s->stage, &telemetry::stage_shares::busy)},
                          {"wait_input", share(s->stage, &telemetry::stage_shares::wait_input)},
                          {"wait_output", share(s->stage, &telemetry::stage_shares::wait_output)},
                          {"wait_own", share(s->stage, &telemetry::stage_shares::wait_own)},
                          {"commits", alive ? json(ring::load(segment_->block().entry[s->now->who.entry].commits)) : json()},
                          {"cpu_percent", s->cpu_percent},
                          {"memory_bytes", alive ? json(shm::resident_bytes(s->now->pid)) : json()},
                          {"end_to_end", counted_latencies(st, segment_->block().stage[s->stage].counters.end_to_end)},
                          {"device", st.device_name}});
    }
    return {{"ok", true},
            {"pipeline",
             {{"name", setup_->name},
              {"state", state_name()},
              {"state_text", state_text()},
              {"waits_for", waits_for},
              {"bottleneck", bottleneck_of(*setup_, shares, &seats_->seats)},
              {"pid", ::getpid()},
              {"run_id", run_id_},
              {"owner_pid", memory_.owner_pidfd() >= 0 ? json(memory_.owner_pid()) : json()},
              {"mps", !domain_ ? json()
                               : json{{"daemon_pid", domain_->daemon_pid()},
                                      {"generation", domain_->generation()},
                                      {"up", domain_->is_up()},
                                      {"domain_faults", seats_->account.domain_faults},
                                      {"given_up", seats_->account.domain_given_up}}},
              {"file", setup_->file},
              {"device", setup_->device_name},
              {"uptime_s", static_cast<f64>(now - started_ns_) / 1e9},
              {"frames", delivered(*setup_, segment_->block())},
              {"restarts", seats_->account.restarts},
              {"stalls", mends_.stalls},
              {"damaged", mends_.damaged},
              {"kills_at", kills},
              {"frames_per_second", progress_.frames_per_second()}}},
            {"stages", stages},
            {"problems", problems_.present(now)},
            {"links", links_json(*setup_)}};
}

}  // namespace carousel::supervisor
