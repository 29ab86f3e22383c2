#include "supervisor/hosts/coordinator.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/secret.hpp"
#include "os/console.hpp"
#include "os/event_loop.hpp"
#include "run/directory.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
namespace msg = host_message;
using state = remote_host::host_state;
constexpr u64 log_again_ns = 10 * ns_per_s;
constexpr u64 ps_every_ns = 500 * ns_per_ms;

std::string token_of(const hosts_plan& plan) {
    if (!hosts::can_seal())
        throw config_error(
            fmt::format("{}: stages on several hosts need UCX and libcrypto: run apt-get install libucx0 "
                        "libssl3, or for a build of your own libucx-dev libssl-dev, and build again",
                        plan.file));
    struct stat there {};
    if (::lstat(plan.token.c_str(), &there) != 0 && errno == ENOENT) write_secret(plan.token, new_secret());
    return read_secret(plan.token, "the token of this pipeline's hosts");
}

}  // namespace

coordinator::coordinator(hosts_plan plan) : plan_(std::move(plan)) {
    const std::string token = token_of(plan_);
    for (const host_spec& h : plan_.others) {
        hosts_.push_back(std::make_unique<remote_host>(h, plan_, token, now_ns()));
        launchers_.push_back(std::make_unique<launcher>(h, plan_, token));
    }
}

// Prints the command that the user must type on the other host. The command contains the options that
// override keys of the file, because they are part of the plan.
void coordinator::print_waiting(remote_host& h, console& out) const {
    const host_spec& s = h.spec();
    std::string words;
    for (const std::string& w : plan_.words) words += " " + shell_word(w);
    const std::string file = s.file.empty() ? plan_.file : s.file;
    if (s.launcher == launcher_kind::none)
        out.line(fmt::format(
            "waiting for host {} ({} port {}): {}. Start it there: carousel host --file {} --as {}{}   (copy "
            "{}, which contains the token, to the folder of the file there)",
            s.name, s.address, s.port, h.problem(), shell_word(file), s.name, words, plan_.token));
    else
        out.line(fmt::format("waiting for host {} ({} port {}): {}", s.name, s.address, s.port, h.problem()));
}

// Starts a supervisor on each host on which no process listens: at the beginning, and again when a supervisor
// has died. The new supervisor finds its predecessor's stages alive and takes the run over.
void coordinator::launch_missing(u64 now) {
    for (std::size_t k = 0; k < hosts_.size(); ++k) {
        const state is = hosts_[k]->state();
        if (is == state::agreed || is == state::begun) launchers_[k]->reached();
        launchers_[k]->poll(now);
        if (is == state::away && hosts_[k]->no_listener()) launchers_[k]->start(now);
    }
}

void coordinator::gather(console& out, const std::string& run_id) {
    run_id_ = run_id;
    u64 log_due_ns = now_ns() + ns_per_s / 2;
    for (;;) {
        const u64 now = now_ns();
        bool all = true;
        for (const auto& h : hosts_) {
            (void)h->poll(now, run_id);
            if (h->state() == state::refused)
                throw config_error(fmt::format("host {}: {}", h->spec().name, h->problem()));
            all = all && (h->state() == state::agreed || h->state() == state::begun);
        }
        if (all) break;
        launch_missing(now);
        for (const auto& l : launchers_)
            if (!l->failure().empty()) throw config_error(l->failure());
        if (now >= log_due_ns) {
            log_due_ns = now + log_again_ns;
            for (const auto& h : hosts_)
                if (h->state() == state::away || h->state() == state::greeting) print_waiting(*h, out);
        }
        out.flush();
        if (const int signal = pending_signal(); signal != 0) throw interrupted_early{signal};
        (void)poll_until(nullptr, 0, now_ns() + 20 * ns_per_ms);
    }
    for (const auto& h : hosts_) h->begin();
}

void coordinator::attend(event_loop&, host_orders& to, const std::string& run_id) {
    orders_ = &to;
    run_id_ = run_id;
    for (const auto& h : hosts_) {
        h->count_from(now_ns());
        h->all_have_begun();
        try {
            if (std::optional<json> kept = saved_outcome(*h)) h->has_ended(std::move(*kept));
        } catch (const json::exception&) {  // if the saved result cannot be read, the host sends it again
        }
    }
}

void coordinator::leave() noexcept {
    orders_ = nullptr;
    for (const auto& h : hosts_) h->close();
}

void coordinator::log_changes(remote_host& h, u64 now) {
    const std::string& name = h.spec().name;
    if (h.state() == state::away && !h.logged_away && now > h.away_since_ns() + ns_per_s / 2) {
        h.logged_away = true;
        orders_->log_line(fmt::format("host {} is lost ({}): {}, and the connection is retried", name,
                                      h.problem(),
                                      plan_.helps(name) ? "frames of its instances go to other instances"
                                                        : "the rings to and from it wait"));
    }
    if (h.state() == state::begun && h.logged_away) {
        h.logged_away = false;
        orders_->log_line(fmt::format("host {} is back", name));
    }
}

void coordinator::handle_message(remote_host& h, const msg::to_coordinator& m) {
    if (const auto* answer = std::get_if<msg::answer>(&m)) {
        open_questions_.erase(answer->id);
        orders_->answered(answer->id, answer->reply);
    } else if (const auto* kept = std::get_if<msg::first_kept>(&m)) {
        handle_first_kept(h, *kept);
    } else if (const auto* log = std::get_if<msg::log>(&m)) {
        for (const msg::log_line& l : log->lines) orders_->line_of(h.spec().name, l.stage, l.pid, l.line);
    } else if (const auto* by_user = std::get_if<msg::interrupted>(&m)) {
        const std::string why = fmt::format("interrupted on host {}", h.spec().name);
        if (by_user->how == msg::end_kind::at_once) return orders_->end_at_once(why);
        // the end was already requested; the host sends this message to each coordinator that connects
        if (end_asked_) return;
        if (request_end(false)) return orders_->end_the_run(why + ": frames in flight are delivered");
        orders_->log_line(why + ": frames in flight are delivered");
    }
}

// The run continues without a helper host, because everything that the helper host had is also available on
// this host.
void coordinator::log_end_of_help(const remote_host& h, bool had_ended) {
    const bool over = (h.state() == state::ended && !had_ended) || h.state() == state::refused;
    if (!over || waiting_since_ns_ != 0 || !ended_early_.insert(h.spec().name).second) return;
    orders_->log_line(fmt::format(
        "host {} has stopped computing ({}): frames of its instances go to other instances", h.spec().name,
        h.outcome ? h.outcome->value("line", "its part of the run has ended") : h.problem()));
}

void coordinator::tick(u64 now) {
    if (orders_ == nullptr) return;
    for (const auto& h : hosts_) {
        const bool had_ended = h->state() == state::ended, had_begun = h->state() == state::begun;
        try {
            for (const msg::to_coordinator& m : h->poll(now, run_id_)) handle_message(*h, m);
            // the host has proven that it has the token, so it must be of another version
        } catch (const json::exception&) {
            h->was_unreadable(now);
        }
        log_changes(*h, now);
        refuse_for_lost(*h);
        if (h->state() == state::agreed)
            restart_host(*h, now);
        else
            replacements_.erase(h->spec().name);
        // repeated, because the host may have missed the request, or may have been restarted
        if (!had_begun && h->state() == state::begun) send_end(*h);
        if (!had_ended && h->state() == state::ended) save_outcome(*h);
        if (plan_.helps(h->spec().name)) {
            log_end_of_help(*h, had_ended);
            continue;
        }
        if (h->state() == state::refused && lost_code_ == 0 && lost_.empty()) {
            lost_code_ = exit_code::stage_failed;
            orders_->host_has_failed(h->spec().name, h->problem(), exit_code::stage_failed);
        }
        if (h->state() != state::ended || !outcome_checked_.insert(h->spec().name).second) continue;
        if (const int code = h->outcome->value("code", 1); code != 0 && code != exit_code::frames_abandoned)
            orders_->host_has_failed(h->spec().name,
                                     h->outcome->value("line", "its part of the run has failed"), code);
    }
    end_without_lost_leaders(now);
    launch_missing(now);
    for (const auto& l : launchers_)
        if (const std::string text = l->new_failure(); !text.empty()) orders_->log_line(text);
    if (now < ps_ns_) return;
    ps_ns_ = now + ps_every_ns;
    for (const auto& h : hosts_)
        if (h->state() == state::begun) h->send(msg::ask{run::to_json(run::ps_request{}), 0});
    watch_links(now);
}

u64 coordinator::ask(const std::string& host, const json& request, std::string& why) {
    remote_host* const at = named(host);
    if (at == nullptr) {
        why = fmt::format("no host \"{}\"; there are", host);
        for (const auto& h : hosts_) why += " " + h->spec().name;
        return 0;
    }
    if (!at->connected() || at->state() != state::begun) {
        why = fmt::format("host {} can't be queried now: {}", host,
                          at->state() == state::ended ? "its part of the run has ended" : at->problem());
        return 0;
    }
    at->send(msg::ask{request, ++last_ask_});
    open_questions_[last_ask_] = host;
    return last_ask_;
}

// Refuses the open requests that were forwarded to a lost host. Without the refusal, the client would wait,
// and would attribute the missing reply to this supervisor.
void coordinator::refuse_for_lost(const remote_host& h) {
    if (open_questions_.empty() || (h.connected() && h.state() == state::begun)) return;
    const std::string& name = h.spec().name;
    const json refusal = run::to_json(run::refused(
        exit_code::stage_failed,
        h.state() == state::ended
            ? fmt::format("host {} ended its part of the run before it answered", name)
            : fmt::format(
                  "host {} was lost before it answered: it may still execute the request when it is back",
                  name)));
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
