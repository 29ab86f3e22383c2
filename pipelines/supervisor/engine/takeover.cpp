// engine: takeover by a second supervisor. The first one was killed; its stages continue to stream, hold the
// memory of all rings, and connect to the control socket again as soon as a process listens there. No process
// is started until the memory is back; dead processes are retired at once.
//
// DIR/state.json has the counters and intentions of this process for its successor. It is written after each
// event that changes them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/read_file.hpp"
#include "ring/link.hpp"
#include "shm/peer_process.hpp"
#include "shm/runtime_folder.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/handshake.hpp"
#include "supervisor/processes/seat_state.hpp"
#include "supervisor/processes/start.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr u64 memory_patience_ns = 5 * ns_per_s;  // stages check every 50 ms

json read_state(const std::string& folder) { return read_json_file(folder + "/state.json"); }

/// Viewers' places in latest groups carry numbers that the dead supervisor assigned.
u32 next_tap(const shm::control_block& c) {
    u32 next = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
            const ring::group_word w = ring::group_word::of(ring::load(c.link[k].group_state[g]));
            if (w.state == ring::group_state::latest && w.entry >= shm::max_incarnations)
                next = std::max(next, w.entry - shm::max_incarnations + 1);
        }
    }
    return next;
}

/// Recovers a damaged END after a stop: the number in the file, if it differs by one bit. Otherwise STOPPING,
/// whether or not it was that: the sources have acknowledged, and the same END is found again.
u64 end_of_stop(u64 damaged, u64 recorded) noexcept {
    const bool fits = std::popcount(damaged ^ shm::end_word::pack(recorded)) == 1;
    return fits && recorded != ring::end_unknown ? recorded : ring::end_stopping;
}

}  // namespace

void engine::save_state() {
    const u64 print = supervisor::fingerprint(*seats_) ^ static_cast<u64>(phase_) << 40U ^ begun_ns_ ^
                      finished_ns_ << 1U ^ rebuilds_ << 2U ^ static_cast<u64>(interrupts_) << 50U ^
                      static_cast<u64>(taken_over_) << 56U ^ started_ns_ ^ end_ << 3U ^
                      repairs_.words << 40U ^ repairs_.damaged << 44U ^ repairs_.stalls << 36U ^
                      parameters_.number() << 20U ^ static_cast<u64>(other_hosts_end_run_) << 60U;
    if (print == saved_print_) return;
    saved_print_ = print;
    json j = supervisor::state_json(*seats_);
    j["parameters"] = parameters_.state(*made_);
    j["run"] = {{"first", first_},
                {"started_ns", started_ns_},
                {"begun_ns", begun_ns_},
                {"finished_ns", finished_ns_},
                {"rebuilds", rebuilds_},
                {"end_requested", end_requested_},
                {"other_hosts_end_run", other_hosts_end_run_},
                {"ended_by", ended_by_},
                {"end_requested_by", end_requested_by_},
                {"end_request_signal", end_request_signal_},
                {"interrupts", interrupts_},
                {"taken_over", taken_over_},
                {"stalls", repairs_.stalls},
                {"damaged", repairs_.damaged},
                {"words_repaired", repairs_.words},
                {"end", end_},
                {"stream_ended_by", stream_ended_by_},
                {"beyond_end", repairs_.beyond_end}};
    try {
        if (shortage_->is_short()) reserve_.release();
        shm::write_whole_file(setup_->directory + "/state.json",
                              j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    } catch (const error& e) {
        if (!state_failed_)
            seats_->log_line(fmt::format("warning: {}: a second supervisor would count from 0", e.what()));
        state_failed_ = true;
    }
    reserve_.fill();
}

void engine::takeover() {
    shm::control_block& c = segment_->block();
    const u64 now = now_ns();
    c.supervisor.store(static_cast<u64>(::getpid()), std::memory_order_relaxed);
    c.supervisor_heartbeat_ns.store(now, std::memory_order_relaxed);
    const json state = read_state(setup_->directory);
    if (const json run = state.is_object() ? state.value("run", json::object()) : json::object();
        run.is_object()) {
        std::vector<std::string> unreadable;
        const auto read = [&](const char* key, auto& into) {
            if (run.contains(key) && !read_member(run, key, into)) unreadable.emplace_back(key);
        };
        started_ns_ = c.created_ns;
        u64 end = end_;
        u32 stream_ended_by = shm::none;
        read("first", first_);
        read("started_ns", started_ns_);
        read("begun_ns", begun_ns_);
        read("finished_ns", finished_ns_);
        read("rebuilds", rebuilds_);
        read("end_requested", end_requested_);
        read("other_hosts_end_run", other_hosts_end_run_);
        read("ended_by", ended_by_);
        read("end_requested_by", end_requested_by_);
        read("end_request_signal", end_request_signal_);
        read("interrupts", interrupts_);
        read("taken_over", taken_over_);
        read("stalls", repairs_.stalls);
        read("damaged", repairs_.damaged);
        read("words_repaired", repairs_.words);
        read("beyond_end", repairs_.beyond_end);
        read("end", end);
        read("stream_ended_by", stream_ended_by);
        if (ring::load(c.stop_asked) == 0)
            set_end(end);  // a stop may be newer than the file
        else if (ring::load(c.end) == shm::no_number)
            set_end(end_of_stop(ring::load(c.end.raw()), end));
        adopt_stream_end(stream_ended_by);
        if (!unreadable.empty())
            seats_->log_line(fmt::format(
                "warning: {}/state.json is damaged: run.{} can't be read and have the values of a new run",
                setup_->directory, fmt::join(unreadable, ", run.")));
    }
    if (const std::string message =
            parameters_.adopt(c, *made_, state.is_object() ? state.value("parameters", json()) : json());
        !message.empty())
        seats_->log_line(message);
    if (!state.is_object()) deaths_then_ = ~u64{0};  // the number of deaths is unknown
    ++taken_over_;
    taps_ = next_tap(c);
    if (ring::load(c.stop_asked) != 0) {
        end_requested_ = stop_requested_ = true;
        phase_ = phase::draining;
        phase_since_ns_ = now;
    }
    moved_ns_ = now;
    taking_over_since_ns_ = now;
    found_ = supervisor::adopt_processes(*seats_, state, run_id_);
    crash_here(crash_point::run_taken_over);
    save_state();
}

// Called in each tick.
void engine::watch_takeover(u64 now) {
    if (taking_over_since_ns_ == 0 || phase_ == phase::rebuilding || phase_ == phase::ending) return;
    const bool owner_there = !memory_.has_ipc() || memory_.owner_pidfd() >= 0;
    const auto missing = supervisor::not_returned(*seats_);
    if (memory_.complete() && owner_there) {
        taking_over_since_ns_ = 0;
        memory_.enter(*made_);
        const std::string dead = found_.dead == 0 ? ""
                                                  : fmt::format(", {} {} dead and {} replaced", found_.dead,
                                                                found_.dead == 1 ? "was" : "were",
                                                                found_.dead == 1 ? "is" : "are");
        const std::string standbys =
            found_.standbys == 0
                ? ""
                : fmt::format(", and {} {}", found_.standbys, found_.standbys == 1 ? "standby" : "standbys");
        seats_->log_line(fmt::format("adopted {}: {} {} alive{}{}", setup_->name, found_.alive,
                                     found_.alive == 1 ? "stage" : "stages", standbys, dead));
        supervisor::memory_is_there(*seats_);
        return;
    }
    // A stopped stage returns no memory before it continues, and is not a reason to end the others: starting
    // successors of the dead waits for it.
    const bool stopped = std::any_of(missing.begin(), missing.end(),
                                     [](const seat* s) { return shm::is_stopped(s->now->pid); });
    if (!missing.empty() && (stopped || now - taking_over_since_ns_ < memory_patience_ns)) return;
    if (!owner_there && memory_.complete() && now - taking_over_since_ns_ < memory_patience_ns) return;
    taking_over_since_ns_ = 0;
    rebuild(fmt::format("adopted {}, but the memory of its rings was lost with the processes that held it",
                        setup_->name));
    supervisor::memory_is_there(*seats_);
}

// A stage that the dead supervisor had started. Its descriptors are kept first, whether or not it is
// accepted.
std::string engine::handle_return(connection& c, const run::return_message& message, shm::message& m) {
    if (message.run_id != run_id_) return "this is another run";
    memory_.restore(message.memory, m.fds);
    std::string why = supervisor::accept_stage_return(
        *seats_, c.fd.get(), shm::peer_process_of(c.fd.get(), message.start_time), message);
    c.stage = why.empty();
    crash_here(crash_point::stage_returned);
    return why;
}

// The process that owns ipc memory has waited for a supervisor, too. From now on it lives as long as its
// connection.
void engine::adopt_owner(connection& c, const run::owner_message& message) {
    const int number = c.fd.get();
    spawned owner;
    shm::peer_process peer = shm::peer_process_of(number, message.start_time);
    owner.pid = peer.id.pid;
    owner.start_time = peer.id.start_time;
    owner.pidfd = std::move(peer.pidfd);
    const bool wanted = message.run_id == run_id_ && memory_.has_ipc() && memory_.owner_pidfd() < 0 &&
                        owner.pidfd && owner.pid > 0;
    (void)shm::send_message(number, (wanted ? run::to_json(run::welcome_message{})
                                            : run::refusal("this run needs no memory owner"))
                                        .dump());
    if (!wanted) return;
    memory_.adopt_owner(std::move(owner), socket_->release(number));
    watch_owner();
}

}  // namespace carousel::supervisor
