#include "supervisor/hosts/near_hosts.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/secret_file.hpp"
#include "os/own_command.hpp"
#include "run/directory.hpp"
#include "run/request_message.hpp"
#include "telemetry/ledger.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
using life = remote_host::stage_of_life;
constexpr u64 say_again_ns = 10 * ns_per_s, in_vain_patience_ns = 10 * ns_per_s,
              failed_patience_ns = 8 * ns_per_s;
constexpr u64 ps_every_ns = 500 * ns_per_ms;
constexpr u64 help_patience_ns = 5 * ns_per_s;  ///< until a host that only helps is ended; else it hears END

/// A signal that has come and is kept for who begins.
int pending_signal() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&wanted, s);
    const timespec none{};
    return std::max(0, sigtimedwait(&wanted, nullptr, &none));
}

std::string token_of(const hosts_plan& plan) {
    if (!hosts::can_seal())
        throw config_error(fmt::format(
            "{}: stages on several hosts take a build with UCX and libcrypto: apt-get install libucx-dev "
            "libssl-dev, and build again",
            plan.file));
    struct stat there {};
    if (::lstat(plan.token.c_str(), &there) != 0 && errno == ENOENT) write_secret(plan.token, new_secret());
    return read_secret(plan.token, "the token of this pipeline's hosts");
}

}  // namespace

near_hosts::near_hosts(hosts_plan plan) : plan_(std::move(plan)) {
    const std::string token = token_of(plan_);
    for (const host_spec& h : plan_.others) {
        hosts_.push_back(std::make_unique<remote_host>(h, plan_, token, now_ns()));
        launchers_.push_back(std::make_unique<launcher>(h, plan_, token));
    }
}

// The command as it can be typed there. Options that stand for keys are part of the plan.
void near_hosts::say_waiting(remote_host& h, console& out) const {
    const host_spec& s = h.spec();
    std::string words;
    for (const std::string& w : plan_.words) words += " " + shell_word(w);
    const std::string file = s.file.empty() ? plan_.file : s.file;
    if (s.launcher == launcher_kind::none)
        out.line(fmt::format(
            "waiting for host {} ({} port {}): {}. Start it there: carousel host --file {} --as "
            "{}{}   ({} has the token, and must be there beside the file)",
            s.name, s.address, s.port, h.trouble(), shell_word(file), s.name, words, plan_.token));
    else
        out.line(fmt::format("waiting for host {} ({} port {}): {}", s.name, s.address, s.port, h.trouble()));
}

// Where nobody listens, a supervisor is started: at first, and again when it has died. One that comes back
// finds its stages alive and takes them over.
void near_hosts::launch_missing(u64 now) {
    for (std::size_t k = 0; k < hosts_.size(); ++k) {
        const life is = hosts_[k]->life();
        if (is == life::agreed || is == life::begun) launchers_[k]->reached();
        launchers_[k]->look(now);
        if (is == life::away && hosts_[k]->nobody_there()) launchers_[k]->start(now);
    }
}

void near_hosts::gather(console& out, const std::string& run_id) {
    run_id_ = run_id;
    u64 say_ns = now_ns() + ns_per_s / 2;
    for (;;) {
        const u64 now = now_ns();
        bool all = true;
        for (const auto& h : hosts_) {
            (void)h->look(now, run_id);
            if (h->life() == life::refused)
                throw config_error(fmt::format("host {}: {}", h->spec().name, h->trouble()));
            all = all && (h->life() == life::agreed || h->life() == life::begun);
        }
        if (all) break;
        launch_missing(now);
        for (const auto& l : launchers_)
            if (!l->failure().empty()) throw config_error(l->failure());
        if (now >= say_ns) {
            say_ns = now + say_again_ns;
            for (const auto& h : hosts_)
                if (h->life() == life::away || h->life() == life::greeting) say_waiting(*h, out);
        }
        out.flush();
        if (const int signal = pending_signal(); signal != 0) throw interrupted_early{signal};
        ::poll(nullptr, 0, 20);
    }
    for (const auto& h : hosts_) h->begin();
}

void near_hosts::attend(event_loop&, host_orders& to, const std::string& run_id) {
    orders_ = &to;
    run_id_ = run_id;
    for (const auto& h : hosts_) {
        h->count_from(now_ns());
        h->all_have_begun();
    }
}

void near_hosts::leave() noexcept {
    orders_ = nullptr;
    for (const auto& h : hosts_) h->close();
}

void near_hosts::say_changes(remote_host& h, u64 now) {
    const std::string& name = h.spec().name;
    if (h.life() == life::away && !h.told_away && now > h.away_since_ns() + ns_per_s / 2) {
        h.told_away = true;
        orders_->say(fmt::format(
            "host {} is lost ({}): {}, and it is tried again", name, h.trouble(),
            plan_.helps(name) ? "what its instances had goes to others" : "the rings to and from it wait"));
    }
    if (h.life() == life::begun && h.told_away) {
        h.told_away = false;
        orders_->say(fmt::format("host {} is back", name));
    }
}

void near_hosts::take_news(remote_host& h, const json& m) {
    if (m.contains("answer") && m.contains("id") && m["id"].is_number_unsigned())
        return orders_->answered(m["id"].get<u64>(), m["answer"]);
    if (m.contains("log") && m["log"].is_array())
        for (const json& l : m["log"])
            orders_->line_of(h.spec().name, l.value("stage", "?"), l.value("pid", 0), l.value("line", ""));
    if (m.contains("interrupted")) {
        const bool at_once = m["interrupted"] == "at once";
        const std::string why = fmt::format("interrupted on host {}", h.spec().name);
        if (at_once) return orders_->end_at_once(why);
        if (ask_for_end(false)) return orders_->end_the_run(why + ": what is begun is delivered");
        orders_->say(why + ": what is begun is delivered");
    }
}

// Our sending stages mark a frame when all sinks over there have it. Two links hear of that one after the
// other, so the one that has come furthest is right: what lies below its first unmarked frame may be released
// here, and is in those sinks' files. Links from other hosts are known to those alone.
std::optional<u64> near_hosts::first_kept_for(const host_spec& h) const {
    if (!h.durable()) return std::nullopt;
    u64 first = plan_.first;
    for (const crossing& c : plan_.links) {
        if (!c.from.empty() || c.to != h.name) continue;
        const auto ledger =
            telemetry::ledger_reader::open(telemetry::ledger_path(run::run_folder(plan_.name), c.send));
        if (ledger) first = std::max(first, ledger->first_undelivered(plan_.first));
    }
    return first;
}

bool near_hosts::all_frames_are_ours(const host_spec& h) const {
    return !plan_.leads(h.name) &&
           std::all_of(plan_.links.begin(), plan_.links.end(),
                       [&](const crossing& c) { return c.to != h.name || c.from.empty(); });
}

// It has come back without its part of the run. What was there and is acknowledged is gone, or in its sinks'
// files: a link that goes on finds out by itself what is lost; where all of ours is done there is none.
void near_hosts::begin_anew(remote_host& h) {
    if (waiting_since_ns_ == 0) {
        const std::optional<u64> first = first_kept_for(h.spec());
        orders_->say(
            first ? fmt::format("host {} begins anew, at frame {}: what its sinks have not is kept here",
                                h.spec().name, *first)
                  : fmt::format("host {} begins anew: what it had is lost", h.spec().name));
        return h.begin(first);
    }
    h.send({{"over", true}});
    h.give_up("its part of the run is lost");
    if (plan_.helps(h.spec().name)) return;  // all that it could do is done
    if (h.spec().durable() && all_frames_are_ours(h.spec())) {
        // Our sending stages are done, and were not before its sinks had the last frame.
        lost_ = fmt::format("host {} has lost its report: all frames are in the files of its sinks",
                            h.spec().name);
        return;
    }
    lost_code_ = exit_code::stage_failed;
    lost_ = fmt::format("error: host {} has lost its part of the run: not all frames have come to its sinks",
                        h.spec().name);
}

// It has nothing that is not here, too: the run goes on without it.
void near_hosts::say_end_of_help(const remote_host& h, bool had_ended) {
    const bool over = (h.life() == life::ended && !had_ended) || h.life() == life::refused;
    if (!over || waiting_since_ns_ != 0 || !ended_early_.insert(h.spec().name).second) return;
    orders_->say(fmt::format("host {} computes no more ({}): what its instances had goes to others",
                             h.spec().name,
                             h.outcome ? h.outcome->value("line", "its part has ended") : h.trouble()));
}

void near_hosts::tick(u64 now) {
    if (orders_ == nullptr) return;
    for (const auto& h : hosts_) {
        const bool had_ended = h->life() == life::ended, had_begun = h->life() == life::begun;
        for (const json& m : h->look(now, run_id_)) take_news(*h, m);
        say_changes(*h, now);
        if (h->life() == life::agreed) begin_anew(*h);
        if (end_asked_ && !had_begun && h->life() == life::begun && plan_.leads(h->spec().name))
            h->send({{"end", "drain"}});  // it may not have heard it, or be another one
        if (plan_.helps(h->spec().name)) {
            say_end_of_help(*h, had_ended);
            continue;
        }
        if (h->life() == life::refused && lost_code_ == 0 && lost_.empty()) {
            lost_code_ = exit_code::stage_failed;
            orders_->host_has_failed(h->spec().name, h->trouble(), exit_code::stage_failed);
        }
        if (h->life() != life::ended || had_ended) continue;
        if (const int code = h->outcome->value("code", 1); code != 0 && code != exit_code::given_up)
            orders_->host_has_failed(h->spec().name, h->outcome->value("line", "its part has failed"), code);
    }
    if (const remote_host* gone = end_asked_ ? lost_leader(now) : nullptr; gone != nullptr) {
        end_asked_ = false;
        orders_->end_the_run(fmt::format(
            "host {} is lost, and gives no end: what has come from it is delivered", gone->spec().name));
    }
    launch_missing(now);
    for (const auto& l : launchers_)
        if (const std::string text = l->news(); !text.empty()) orders_->say(text);
    if (now < ps_ns_) return;
    ps_ns_ = now + ps_every_ns;
    for (const auto& h : hosts_)
        if (h->life() == life::begun) h->send({{"ask", run::to_json(run::ps_request{})}, {"id", 0}});
}

u64 near_hosts::ask(const std::string& host, const json& request, std::string& why) {
    const auto at =
        std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& h) { return h->spec().name == host; });
    if (at == hosts_.end()) {
        why = fmt::format("no host \"{}\"; there are", host);
        for (const auto& h : hosts_) why += " " + h->spec().name;
        return 0;
    }
    if (!(*at)->connected() || (*at)->life() != life::begun) {
        why = fmt::format("host {} can't be asked now: {}", host,
                          (*at)->life() == life::ended ? "its part has ended" : (*at)->trouble());
        return 0;
    }
    (*at)->send({{"ask", request}, {"id", ++last_ask_}});
    return last_ask_;
}

void near_hosts::end_all(const char* how) {
    for (const auto& h : hosts_)
        if (plan_.leads(h->spec().name) || std::string_view(how) == "at once") h->send({{"end", how}});
}

bool near_hosts::ask_for_end(bool at_once) {
    end_all(at_once ? "at once" : "drain");
    const bool leader_is_done = std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        return plan_.leads(h->spec().name) && (h->life() == life::ended || h->life() == life::refused);
    });
    if (plan_.leads("") || at_once || leader_is_done || lost_leader(now_ns()) != nullptr) return true;
    end_asked_ = true;
    return false;
}

// Who gives the end, and is away for so long that it doesn't come back. Until then it is told again when it
// is there.
const remote_host* near_hosts::lost_leader(u64 now) const {
    const auto at = std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& h) {
        return plan_.leads(h->spec().name) && h->life() == life::away &&
               now > h->away_since_ns() + plan_.patience_ns(h->spec().name);
    });
    return at == hosts_.end() ? nullptr : at->get();
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
                   return o->spec().name == host && o->life() == life::ended;
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
