#include "supervisor/hosts/near_hosts.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/poll_until.hpp"
#include "core/secret_file.hpp"
#include "os/own_command.hpp"
#include "os/pending_signal.hpp"
#include "run/answer_message.hpp"
#include "run/directory.hpp"
#include "run/request_message.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
using life = remote_host::stage_of_life;
constexpr u64 say_again_ns = 10 * ns_per_s;
constexpr u64 ps_every_ns = 500 * ns_per_ms;

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
        (void)poll_until(nullptr, 0, now_ns() + 20 * ns_per_ms);
    }
    for (const auto& h : hosts_) h->begin();
}

void near_hosts::attend(event_loop&, host_orders& to, const std::string& run_id) {
    orders_ = &to;
    run_id_ = run_id;
    for (const auto& h : hosts_) {
        h->count_from(now_ns());
        h->all_have_begun();
        try {
            if (std::optional<json> kept = kept_outcome(*h)) h->has_ended(std::move(*kept));
        } catch (const json::exception&) {  // it tells it again
        }
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
    if (m.contains("answer") && m.contains("id") && m["id"].is_number_unsigned()) {
        open_questions_.erase(m["id"].get<u64>());
        return orders_->answered(m["id"].get<u64>(), m["answer"]);
    }
    if (m.contains("first_kept")) return take_first_kept(h, m);
    if (m.contains("log") && m["log"].is_array())
        for (const json& l : m["log"])
            orders_->line_of(h.spec().name, l.value("stage", "?"), l.value("pid", 0), l.value("line", ""));
    if (m.contains("interrupted")) {
        const bool at_once = m["interrupted"] == "at once";
        const std::string why = fmt::format("interrupted on host {}", h.spec().name);
        if (at_once) return orders_->end_at_once(why);
        if (end_asked_) return;  // it says so to whoever it finds here
        if (ask_for_end(false)) return orders_->end_the_run(why + ": what is begun is delivered");
        orders_->say(why + ": what is begun is delivered");
    }
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
        try {
            for (const json& m : h->look(now, run_id_)) take_news(*h, m);
        } catch (const json::exception&) {  // it knows the token, and is of another version
            h->was_unreadable(now);
        }
        say_changes(*h, now);
        answer_for_lost(*h);
        if (h->life() == life::agreed)
            begin_anew(*h, now);
        else
            newcomers_.erase(h->spec().name);
        if (!had_begun && h->life() == life::begun)
            tell_end(*h);  // it may not have heard it, or be another one
        if (!had_ended && h->life() == life::ended) keep_outcome(*h);
        if (plan_.helps(h->spec().name)) {
            say_end_of_help(*h, had_ended);
            continue;
        }
        if (h->life() == life::refused && lost_code_ == 0 && lost_.empty()) {
            lost_code_ = exit_code::stage_failed;
            orders_->host_has_failed(h->spec().name, h->trouble(), exit_code::stage_failed);
        }
        if (h->life() != life::ended || !judged_.insert(h->spec().name).second) continue;
        if (const int code = h->outcome->value("code", 1); code != 0 && code != exit_code::given_up)
            orders_->host_has_failed(h->spec().name, h->outcome->value("line", "its part has failed"), code);
    }
    end_without_lost_leaders(now);
    launch_missing(now);
    for (const auto& l : launchers_)
        if (const std::string text = l->news(); !text.empty()) orders_->say(text);
    if (now < ps_ns_) return;
    ps_ns_ = now + ps_every_ns;
    for (const auto& h : hosts_)
        if (h->life() == life::begun) h->send({{"ask", run::to_json(run::ps_request{})}, {"id", 0}});
    watch_links(now);
}

u64 near_hosts::ask(const std::string& host, const json& request, std::string& why) {
    remote_host* const at = named(host);
    if (at == nullptr) {
        why = fmt::format("no host \"{}\"; there are", host);
        for (const auto& h : hosts_) why += " " + h->spec().name;
        return 0;
    }
    if (!at->connected() || at->life() != life::begun) {
        why = fmt::format("host {} can't be asked now: {}", host,
                          at->life() == life::ended ? "its part has ended" : at->trouble());
        return 0;
    }
    at->send({{"ask", request}, {"id", ++last_ask_}});
    open_questions_[last_ask_] = host;
    return last_ask_;
}

// Whoever has asked it would wait, and take this supervisor for the silent one.
void near_hosts::answer_for_lost(const remote_host& h) {
    if (open_questions_.empty() || (h.connected() && h.life() == life::begun)) return;
    const std::string& name = h.spec().name;
    const json refusal = run::to_json(run::refused(
        exit_code::stage_failed,
        h.life() == life::ended
            ? fmt::format("the part of host {} ended before it answered", name)
            : fmt::format("host {} was lost before it answered: it may do it yet, when it is back", name)));
    for (auto at = open_questions_.begin(); at != open_questions_.end();) {
        if (at->second != name) {
            ++at;
            continue;
        }
        orders_->answered(at->first, refusal);
        at = open_questions_.erase(at);
    }
}

}  // namespace carousel::supervisor
