// coordinator: handles a host that has reconnected without its partition of the run. Determines the frame at
// which the host restarts, and which other hosts have the frames that the host lacks.
#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "run/directory.hpp"
#include "supervisor/hosts/coordinator.hpp"
#include "supervisor/hosts/hosts_extension.hpp"

namespace carousel::supervisor {
namespace {

namespace msg = host_message;
using state = remote_host::host_state;
constexpr u64 ask_every_ns = 500 * ns_per_ms, log_after_ns = 500 * ns_per_ms;
constexpr u64 answer_patience_ns = 10 * ns_per_s;  ///< time to wait for a connected host that does not reply

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& w : words) text += (text.empty() ? "" : " and ") + w;
    return text;
}

}  // namespace

remote_host* coordinator::named(const std::string& host) const {
    const auto at =
        std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& h) { return h->spec().name == host; });
    return at == hosts_.end() ? nullptr : at->get();
}

/// Returns the remote hosts that send frames to `to`.
std::set<std::string> coordinator::remote_senders(const std::string& to) const {
    std::set<std::string> found;
    for (const crossing& c : plan_.links)
        if (c.to == to && !c.from.empty()) found.insert(c.from);
    return found;
}

/// True if all hosts that send frames to `h` are done, which means that the sinks of `h` have the last frame.
bool coordinator::all_is_in_files(const host_spec& h) const {
    if (!h.durable() || plan_.leads(h.name) || plan_.helps(h.name)) return false;
    return std::all_of(plan_.links.begin(), plan_.links.end(), [&](const crossing& c) {
        if (c.to != h.name) return true;
        if (c.from.empty()) return waiting_since_ns_ != 0;
        const remote_host* const s = named(c.from);
        return s != nullptr && s->outcome && s->outcome->value("code", 1) == 0;
    });
}

/// True if a remote host may still have frames for `h`. To be called when this host is done.
bool coordinator::is_sent_more(const host_spec& h, u64 now) const {
    if (!h.durable() || plan_.leads(h.name) || at_once_) return false;
    const std::set<std::string> senders = remote_senders(h.name);
    return std::any_of(senders.begin(), senders.end(), [&](const std::string& from) {
        const remote_host* const s = named(from);
        return s != nullptr && s->state() != state::ended && s->state() != state::refused &&
               !is_lost(*s, now);
    });
}

/// Returns an upstream host that was lost while `h` was disconnected and whose frames no host has kept; "":
/// there is no such host.
std::string coordinator::lost_upstream(const remote_host& h) const {
    for (const auto& x : hosts_) {
        const std::string& name = x->spec().name;
        const auto restart = restarted_ns_.find(name);
        if (restart != restarted_ns_.end() && restart->second > h.away_since_ns() && !is_resent(*x) &&
            downstream_of(name).count(h.spec().name) != 0)
            return name;
    }
    return "";
}

/// Returns true if the host's senders send again the frames that the host has lost.
bool coordinator::is_resent(const remote_host& h) const {
    return h.spec().durable() && !plan_.leads(h.spec().name);
}

// A reply that the sender gave before `h` was lost is out of date, so the sender is queried again. If the
// sender is lost as well and does not reconnect, its frames are lost. If the sender does reconnect, its own
// senders determine the frame at which it restarts.
void coordinator::query_sender(remote_host& s, const std::string& to, replacement& n, bool ask, u64 now,
                               sender_replies& all) const {
    const std::string& name = s.spec().name;
    if (s.state() != state::begun) n.replies.erase(name);
    if (const auto replies = n.replies.find(name); replies != n.replies.end()) {
        all.first = std::max(all.first, replies->second.value_or(0));
        if (replies->second)
            all.from.push_back("from host " + name);
        else
            all.unknown.push_back(fmt::format("host {} can't read its first kept frame", name));
    } else if (is_lost(s, now)) {
        const auto restart = first_kept(plan_, run::run_folder(plan_.name), "", name);
        if (restart && is_resent(s) && remote_senders(name).empty()) {
            all.first = std::max(all.first, *restart);
            all.from.push_back(fmt::format("when host {} is back", name));
        } else {
            all.unknown.push_back(fmt::format("host {} is lost", name));
        }
    } else if (s.state() != state::begun || !s.connected()) {
        all.awaited.push_back(fmt::format("host {}, which is lost ({}), reports its first kept frame", name,
                                          s.state() == state::agreed ? "it also restarts" : s.problem()));
    } else {
        if (ask) s.send(msg::ask_first_kept{to, n.question});
        if (now > n.since_ns + answer_patience_ns)
            all.unknown.push_back(fmt::format("host {} does not report its first kept frame", name));
        else
            all.awaited.push_back(fmt::format("host {} reports its first kept frame", name));
    }
}

// Only a sending host knows the state of its links, so each sender is queried.
std::optional<std::string> coordinator::restart_frame(const remote_host& h, u64 now, u64& first) {
    const std::string& name = h.spec().name;
    replacement& n = replacements_[name];
    if (n.question == 0) n.question = ++last_query_, n.since_ns = now;
    sender_replies all;
    const auto here = first_kept(plan_, run::run_folder(plan_.name), "", name);
    if (here) all.from.emplace_back("from this host");
    const bool ask = now >= n.ask_ns;
    if (ask) n.ask_ns = now + ask_every_ns;
    for (const std::string& sender : remote_senders(name)) {
        remote_host* const s = named(sender);
        if (s != nullptr && s->state() != state::ended && s->state() != state::refused)
            query_sender(*s, name, n, ask, now, all);
    }
    if (!all.awaited.empty()) {
        if (!n.logged && now > n.since_ns + log_after_ns) {
            n.logged = true;
            orders_->log_line(fmt::format("host {} restarts when {}", name, joined(all.awaited)));
        }
        return std::nullopt;
    }
    first = std::max({first, all.first, here.value_or(0)});
    if (const std::string lost = lost_upstream(h); !lost.empty())
        return fmt::format("frames that host {} had for it are lost", lost);
    if (!all.unknown.empty())
        return fmt::format(
            "it is unknown whether this is the first frame that its sinks do not have, because {}. If not, "
            "the sending stage on that host logs the --first N with which to start `carousel host` on {}",
            joined(all.unknown), name);
    if (all.from.empty()) return "its sender has ended";
    if (here && all.from.size() == 1) return "frames that its sinks do not have are kept here";
    return fmt::format("frames that its sinks do not have are sent again {}", joined(all.from));
}

void coordinator::handle_first_kept(const remote_host& h, const msg::first_kept& m) {
    const auto at = replacements_.find(m.host);
    if (at != replacements_.end() && at->second.question == m.id) at->second.replies[h.spec().name] = m.first;
}

// The host has reconnected without its partition of the run. The frames that the host has acknowledged are
// either lost or in its sinks' files. A link that continues detects the loss by itself, but if all senders
// are done, no link continues.
void coordinator::restart_host(remote_host& h, u64 now) {
    const std::string& name = h.spec().name;
    const bool all_there = all_is_in_files(h.spec());
    if (!all_there && (waiting_since_ns_ == 0 || is_sent_more(h.spec(), now))) {
        u64 first = plan_.first;
        if (!h.spec().durable()) {
            orders_->log_line(fmt::format("host {} restarts, and its frames are lost", name));
        } else {
            const std::optional<std::string> why = restart_frame(h, now, first);
            if (!why) return;
            orders_->log_line(fmt::format("host {} restarts at frame {}: {}", name, first, *why));
        }
        restarted_ns_[name] = now;
        return h.begin(first);
    }
    h.send(msg::over{});
    h.abandon("its part of the run is lost");
    if (plan_.helps(name)) return;  // a helper host has done all its work, and no frame is lost with it
    if (all_there) {
        lost_ = fmt::format("host {} has lost its report, but all its frames are in the files of its sinks",
                            name);
        return;
    }
    lost_code_ = exit_code::stage_failed;
    lost_ = fmt::format("error: host {} has lost its part of the run, and its sinks do not have all frames",
                        name);
}

}  // namespace carousel::supervisor
