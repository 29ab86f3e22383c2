// coordinator: ends a run on all its hosts. Determines which hosts are notified and which hosts the run waits
// for, and handles the result of each partition.

#include "supervisor/hosts/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "run/directory.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::supervisor {
using nlohmann::json;
namespace {

using nlohmann::json;
namespace msg = host_message;
using state = remote_host::host_state;
constexpr u64 failed_patience_ns = 8 * ns_per_s;
/// time that is available for detecting that a host has ended, and for sending `bye`
constexpr u64 bye_patience_ns = 2 * ns_per_s;
/// time to wait for the EOS of a helper host; after that the host is requested to end
constexpr u64 help_patience_ns = 5 * ns_per_s;

}  // namespace

// Notifies each host that begins the stream, or every host if `at_once` is true. A host that is not connected
// is notified when it connects.
bool coordinator::request_end(bool at_once) {
    end_asked_ = true;
    at_once_ = at_once_ || at_once;
    for (const auto& h : hosts_) send_end(*h);
    waits_for_end_ = !at_once && !plan_.leads("") && upstream_can_end("", now_ns());
    return !waits_for_end_;
}

void coordinator::send_end(remote_host& h) {
    const std::string& name = h.spec().name;
    if (at_once_)
        h.send(msg::end{msg::end_kind::at_once});
    else if (end_asked_ && (plan_.leads(name) || ends_alone_.count(name) != 0))
        h.send(msg::end{msg::end_kind::drain});
    const auto unreported = unreported_ends_.find(name);
    if (!at_once_ && unreported != unreported_ends_.end())
        h.send(msg::stream_end{unreported->second.stage, unreported->second.at});
}

bool coordinator::is_lost(const remote_host& h, u64 now) const {
    return h.state() == state::away && now > h.away_since_ns() + plan_.patience_ns(h.spec().name);
}

/// Returns the hosts that receive frames of `host`, directly or through other hosts.
std::set<std::string> coordinator::downstream_of(const std::string& host) const {
    std::set<std::string> found;
    for (bool more = true; std::exchange(more, false);)
        for (const crossing& c : plan_.links)
            if ((c.from == host || found.count(c.from) != 0) && found.insert(c.to).second) more = true;
    return found;
}

/// True if `to` receives frames, directly or through other hosts, from a remote host that begins the stream
/// and is connected or may reconnect.
bool coordinator::upstream_can_end(const std::string& to, u64 now) const {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        return plan_.leads(h->spec().name) && h->state() != state::ended && h->state() != state::refused &&
               !is_lost(*h, now) && downstream_of(h->spec().name).count(to) != 0;
    });
}

// A host that begins the stream and has been disconnected for too long sends no end of stream to this host,
// and none to the hosts that read its frames. Therefore the coordinator notifies the readers. A reader that
// also receives frames from a second host that begins a stream is not notified, because the reader ends
// together with that stream.
void coordinator::end_without_lost_leaders(u64 now) {
    if (!end_asked_) return;
    for (const auto& lost : hosts_) {
        const std::string& name = lost->spec().name;
        if (!plan_.leads(name) || !is_lost(*lost, now) || !lost_leaders_.insert(name).second) continue;
        for (const auto& h : hosts_) {
            const std::string& reader = h->spec().name;
            const bool reads = std::any_of(plan_.links.begin(), plan_.links.end(), [&](const crossing& c) {
                return c.from == name && c.to == reader;
            });
            if (reads && !upstream_can_end(reader, now) && ends_alone_.insert(reader).second) send_end(*h);
        }
        if (!waits_for_end_ || upstream_can_end("", now)) continue;
        waits_for_end_ = false;
        orders_->end_the_run(fmt::format(
            "host {} is lost and has not reported its end; the frames received from it are still delivered",
            name));
    }
}

// When a host has received `bye`, this file is the only place where the result of its partition is stored.
// The next supervisor of this run reads it. If this supervisor dies before it has written the file, it has
// not sent `bye`, and the host sends its result again.
void coordinator::save_outcome(remote_host& h) {
    try {
        shm::write_whole_file(outcome_file(h.spec().name),
                              json{{"run", run_id_}, {"ended", *h.outcome}}.dump(
                                  -1, ' ', false, json::error_handler_t::replace));
    } catch (const error& e) {
        orders_->log_line(fmt::format(
            "warning: {}: a supervisor that takes this run over would not have the result of host {}",
            e.what(), h.spec().name));
    }
    h.send_bye();
}

std::optional<json> coordinator::saved_outcome(const remote_host& h) const {
    const json kept = read_json_file(outcome_file(h.spec().name));
    if (std::string run; !read_member(kept, "run", run) || run != run_id_ || !kept.contains("ended"))
        return std::nullopt;
    return kept["ended"];
}

std::string coordinator::outcome_file(const std::string& host) const {
    return run::run_folder(plan_.name) + "/ended-" + host + ".json";
}

// Returns true while the run waits for the end of a helper host. A helper host receives its end of stream
// over the link. If the link has not delivered it in time, the host is requested to end. The run does not
// wait for a disconnected host.
bool coordinator::awaits_end_of_help(remote_host& h, u64 now) {
    if (!h.connected() || now > waiting_since_ns_ + 2 * help_patience_ns) return false;
    if (now > waiting_since_ns_ + help_patience_ns && ended_early_.insert(h.spec().name).second)
        h.send(msg::end{msg::end_kind::at_once});
    return true;
}

bool coordinator::may_leave(std::optional<u64> end, u64 now) {
    if (waiting_since_ns_ == 0) waiting_since_ns_ = now;
    const bool whole = end.has_value();
    own_end_ = end;
    if (!whole && !at_once_) (void)request_end(true);
    bool all = true;
    for (const auto& h : hosts_) {
        if (h->awaits_bye() && now < waiting_since_ns_ + bye_patience_ns) all = false;
        if (h->state() == state::ended || h->state() == state::refused) continue;
        if (plan_.helps(h->spec().name)) {
            all = all && !awaits_end_of_help(*h, now);
            continue;
        }
        const u64 away = h->connected() ? 0 : now - std::max(h->away_since_ns(), waiting_since_ns_);
        const bool is_lost = away > plan_.patience_ns(h->spec().name) ||
                             (!whole && now > waiting_since_ns_ + failed_patience_ns);
        if (!is_lost) {
            all = false;
        } else if (lost_code_ == 0) {
            lost_code_ = exit_code::output;
            lost_ = fmt::format(
                "error: host {} has not reported the result of its part of the run ({}), so it is unknown "
                "whether all frames were delivered",
                h->spec().name, h->problem());
        }
    }
    return all;
}

// Reports on the other hosts of a pipeline, while they run and when they are done.

void coordinator::add_to(run::ps_answer& a) const {
    for (const auto& h : hosts_) {
        const std::string& name = h->spec().name;
        const bool there = h->state() == remote_host::host_state::begun && h->connected();
        run::ps_host about{name,
                           h->spec().address,
                           there                                            ? "running"
                           : h->state() == remote_host::host_state::ended   ? "ended"
                           : h->state() == remote_host::host_state::refused ? "refused"
                                                                            : "lost",
                           {},
                           {}};
        if (const auto clock = h->clock(now_ns())) {
            about.clock_ahead_ms = static_cast<f64>(clock->offset_ns) / 1e6;
            about.clock_error_ms = static_cast<f64>(clock->error_ns) / 1e6;
        }
        a.hosts.push_back(about);
        run::ps_answer theirs = run::read_ps(h->ps);
        for (run::ps_stage& s : theirs.stages) {
            s.name = name + "/" + s.name.value_or("?");
            if (!there) s.state = about.state, s.pid.reset();
            a.stages.push_back(std::move(s));
        }
        if (there)
            for (const std::string& problem : theirs.problems) a.problems.push_back(name + ": " + problem);
    }
}

int coordinator::code() const {
    for (const auto& h : hosts_)
        if (h->outcome && !plan_.helps(h->spec().name))
            if (const int code = h->outcome->value("code", 1); code != 0) return code;
    return lost_code_;
}

json coordinator::reports() const {
    json out = json::object();
    for (const auto& h : hosts_) {
        json& one = out[h->spec().name];
        one = h->outcome ? h->outcome->value("report", json()) : json();
        if (!one.is_object()) one = {{"ending", "not known"}};
        one["address"] = h->spec().address;
        if (const auto clock = h->clock(now_ns()))
            one["clock"] = {{"ahead_ms", static_cast<f64>(clock->offset_ns) / 1e6},
                            {"error_ms", static_cast<f64>(clock->error_ns) / 1e6}};
    }
    return out;
}

std::vector<std::string> coordinator::closing_lines() const {
    std::vector<std::string> out;
    for (const auto& h : hosts_)
        if (h->outcome)
            out.push_back(fmt::format("host {}: {}", h->spec().name, h->outcome->value("line", "?")));
    if (!lost_.empty()) out.push_back(lost_);
    return out;
}

}  // namespace carousel::supervisor
