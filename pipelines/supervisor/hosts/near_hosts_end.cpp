// near_hosts: how a run ends over its hosts. Who is told, who is waited for, and what is known of each part.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/read_file.hpp"
#include "run/directory.hpp"
#include "run/request_message.hpp"
#include "supervisor/hosts/near_hosts.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
using life = remote_host::stage_of_life;
constexpr u64 in_vain_patience_ns = 10 * ns_per_s, failed_patience_ns = 8 * ns_per_s;
constexpr u64 help_patience_ns = 5 * ns_per_s;  ///< until a host that only helps is ended; else it hears END

}  // namespace

void near_hosts::end_all(const char* how) {
    for (const auto& h : hosts_)
        if (plan_.leads(h->spec().name) || std::string_view(how) == "at once") h->send({{"end", how}});
}

// From here on each host that begins its stream, and is there, knows it, or is told when it comes.
bool near_hosts::ask_for_end(bool at_once) {
    end_all(at_once ? "at once" : "drain");
    if (at_once) return true;
    end_asked_ = true;
    const bool leader_is_done = std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        return plan_.leads(h->spec().name) &&
               (h->life() == life::ended || h->life() == life::refused || is_lost(*h, now_ns()));
    });
    waits_for_end_ = !plan_.leads("") && !leader_is_done;
    return !waits_for_end_;
}

bool near_hosts::is_to_end(const std::string& host) const {
    return end_asked_ && (plan_.leads(host) || ends_alone_.count(host) != 0);
}

bool near_hosts::is_lost(const remote_host& h, u64 now) const {
    return h.life() == life::away && now > h.away_since_ns() + plan_.patience_ns(h.spec().name);
}

// Who gives the end, and is away for so long that it doesn't come back, gives none: neither to this host nor
// to those that read its frames.
void near_hosts::end_without_lost_leaders(u64 now) {
    if (!end_asked_) return;
    for (const auto& gone : hosts_) {
        const std::string& name = gone->spec().name;
        if (!plan_.leads(name) || !is_lost(*gone, now) || !lost_leaders_.insert(name).second) continue;
        for (const auto& h : hosts_) {
            const std::string& reader = h->spec().name;
            const bool reads = std::any_of(plan_.links.begin(), plan_.links.end(), [&](const crossing& c) {
                return c.from == name && c.to == reader;
            });
            if (reads && ends_alone_.insert(reader).second) h->send({{"end", "drain"}});
        }
        if (std::exchange(waits_for_end_, false))
            orders_->end_the_run(
                fmt::format("host {} is lost, and gives no end: what has come from it is delivered", name));
    }
}

// What a host's part came to is known to nobody else once it has heard `bye`: the supervisor after this one
// finds it here. A death before it is written leaves a host that tells it again.
void near_hosts::keep_outcome(remote_host& h) {
    try {
        run::write_whole_file(outcome_file(h.spec().name),
                              json{{"run", run_id_}, {"ended", *h.outcome}}.dump(
                                  -1, ' ', false, json::error_handler_t::replace));
    } catch (const error& e) {
        orders_->say(
            fmt::format("warning: {}: a supervisor that takes this run over would not know how host "
                        "{} has ended",
                        e.what(), h.spec().name));
    }
    h.send({{"bye", true}});
}

std::optional<json> near_hosts::kept_outcome(const remote_host& h) const {
    const json kept = json::parse(read_file(outcome_file(h.spec().name)).value_or(""), nullptr, false);
    if (!kept.is_object() || kept.value("run", "") != run_id_ || !kept.contains("ended")) return std::nullopt;
    return kept["ended"];
}

std::string near_hosts::outcome_file(const std::string& host) const {
    return run::run_folder(plan_.name) + "/ended-" + host + ".json";
}

// One of our own sending stages still has frames for it.
bool near_hosts::sends_to(const std::string& host) const {
    const run::ps_answer here = run::read_ps(orders_->carry_out_for(run::to_json(run::ps_request{})));
    return std::any_of(plan_.links.begin(), plan_.links.end(), [&](const crossing& c) {
        return c.from.empty() && c.to == host &&
               std::any_of(here.stages.begin(), here.stages.end(), [&](const run::ps_stage& s) {
                   return s.name == c.send && s.state != "done" && s.waits_for == "another host";
               });
    });
}

// A host whose part has ended well, and takes no more of ours: it was asked to end while this host was away,
// and cut off what it had not. Its links wait for somebody who never comes.
void near_hosts::fail_for_early_ends(u64 now) {
    if (waiting_since_ns_ != 0) return;
    for (const auto& h : hosts_) {
        const std::string& name = h->spec().name;
        if (h->life() != life::ended || h->outcome->value("code", 1) != 0 || plan_.helps(name)) continue;
        if (!sends_to(name)) {
            in_vain_since_ns_.erase(name);
            continue;
        }
        const u64 patience = h->outcome->value("alone", false) ? ns_per_s : in_vain_patience_ns;
        if (now < in_vain_since_ns_.try_emplace(name, now).first->second + patience) continue;
        h->give_up("its part has ended");
        lost_code_ = exit_code::stage_failed;
        orders_->host_has_failed(name, "its part has ended without the last frames of this host",
                                 exit_code::stage_failed);
    }
}

// It hears the end of its work by the link. Where that has not got there it is ended, and where it is away
// nobody waits for it.
bool near_hosts::awaits_end_of_help(remote_host& h, u64 now) {
    if (!h.connected() || now > waiting_since_ns_ + 2 * help_patience_ns) return false;
    if (now > waiting_since_ns_ + help_patience_ns && ended_early_.insert(h.spec().name).second)
        h.send({{"end", "at once"}});
    return true;
}

// One of its receiving stages waits for a link whose sending host is done.
bool near_hosts::waits_for_nobody(const remote_host& h) const {
    const auto is_done = [&](const std::string& host) {
        return host.empty() || std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& o) {
                   return o->spec().name == host && (o->life() == life::ended || o->life() == life::refused ||
                                                     lost_leaders_.count(host) != 0);
               });
    };
    const run::ps_answer there = run::read_ps(h.ps);
    return std::any_of(plan_.links.begin(), plan_.links.end(), [&](const crossing& c) {
        return c.to == h.spec().name && is_done(c.from) &&
               std::any_of(there.stages.begin(), there.stages.end(), [&](const run::ps_stage& s) {
                   return s.name == c.receive && s.waits_for == "another host";
               });
    });
}

// All of this host is done. A host that began anew after the sending stage of its link was done is told of
// the loss by none, and one that has not heard where the stream ends waits for that: both would wait for
// ever.
bool near_hosts::has_waited_in_vain(remote_host& h, u64 now) {
    const std::string& name = h.spec().name;
    if (h.life() != life::begun || !h.connected() || !waits_for_nobody(h)) {
        in_vain_since_ns_.erase(name);
        return false;
    }
    if (now < in_vain_since_ns_.try_emplace(name, now).first->second + in_vain_patience_ns) return false;
    h.send({{"end", "at once"}});
    h.give_up("it waits for frames that come no more");
    lost_code_ = exit_code::stage_failed;
    lost_ = fmt::format(
        "error: host {} waits for frames that come no more, for who sends to it is done: it has begun anew "
        "since, or was not told where the stream ends. Not all frames are known to have come to its sinks",
        name);
    return true;
}

bool near_hosts::may_leave(bool whole, u64 now) {
    if (waiting_since_ns_ == 0) waiting_since_ns_ = now;
    if (!whole && !end_told_) {
        end_told_ = true;
        end_all("at once");
    }
    bool all = true;
    for (const auto& h : hosts_) {
        if (h->life() == life::ended || h->life() == life::refused) continue;
        if (plan_.helps(h->spec().name)) {
            all = all && !awaits_end_of_help(*h, now);
            continue;
        }
        if (whole && has_waited_in_vain(*h, now)) continue;
        const u64 away = h->connected() ? 0 : now - std::max(h->away_since_ns(), waiting_since_ns_);
        const bool given_up = away > plan_.patience_ns(h->spec().name) ||
                              (!whole && now > waiting_since_ns_ + failed_patience_ns);
        if (!given_up) {
            all = false;
        } else if (lost_code_ == 0) {
            lost_code_ = exit_code::output;
            lost_ = fmt::format(
                "error: host {} has not said how its part has ended ({}): whether all frames are "
                "there is not known",
                h->spec().name, h->trouble());
        }
    }
    return all;
}

}  // namespace carousel::supervisor
