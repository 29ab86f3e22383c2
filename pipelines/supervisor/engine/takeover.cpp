#include "supervisor/engine/takeover.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/engine/run_rebuild.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/start.hpp"
#include "supervisor/stores/memory_store.hpp"

namespace carousel::supervisor {
using nlohmann::json;
namespace {

using nlohmann::json;
// this time is long enough, because stages try to reach a new supervisor every 50 ms
constexpr u64 memory_patience_ns = 5 * ns_per_s;
constexpr u64 retry_every_ns = ns_per_s;

/// Returns the value to which a damaged END is restored after a stop. If the number in the file differs from
/// the damaged word by one bit, the value is that number. If it differs by more bits, the value is STOPPING.
/// This is correct for any former content of the word, because the sources have acknowledged the stop, so the
/// same END is found again.
u64 end_of_stop(u64 damaged, u64 recorded) noexcept {
    const bool fits = std::popcount(damaged ^ shm::end_word::pack(recorded)) == 1;
    return fits && recorded != ring::end_unknown ? recorded : ring::end_stopping;
}

}  // namespace

void takeover::begin(const json& state, saved_run& saved) {
    shm::control_block& c = block_->block();
    const u64 now = now_ns();
    c.supervisor.store(static_cast<u64>(::getpid()), std::memory_order_relaxed);
    c.supervisor_heartbeat_ns.store(now, std::memory_order_relaxed);
    u64 end = block_->end();
    u32 stream_ended_by = shm::none;
    restore(*facts_, saved, c.created_ns);
    saved.read("end", end);
    saved.read("stream_ended_by", stream_ended_by);
    if (ring::load(c.stop_asked) == 0)
        block_->set_end(end);  // a stop found in the block may have begun after the file was written
    else if (ring::load(c.end) == shm::no_number)
        block_->set_end(end_of_stop(ring::load(c.end.raw()), end));
    stream_->adopt(stream_ended_by);
    if (!saved.unreadable().empty())
        seats_->log_line(
            fmt::format("warning: {}/state.json is damaged; unreadable values, which are reset to those of a "
                        "new run: run.{}",
                        setup_->directory, fmt::join(saved.unreadable(), ", run.")));
    if (const std::string message = parameters_->adopt(
            c, block_->published(), state.is_object() ? state.value("parameters", json()) : json());
        !message.empty())
        seats_->log_line(message);
    if (!state.is_object()) block_->forget_deaths();
    ++facts_->taken_over;
    if (ring::load(c.stop_asked) != 0) phase_->adopt_drain(now);
    phase_->note_move(now);
    since_ns_ = now;
    found_ = supervisor::adopt_processes(*seats_, state, run_id_);
    crash_here(crash_point::run_taken_over);
}

void takeover::watch(u64 now) {
    if (since_ns_ == 0 || phase_->is(phase::rebuilding) || phase_->is(phase::ending)) return;
    const bool owner_there = !memory_->has_ipc() || memory_->owner_pidfd() >= 0;
    const auto missing = supervisor::not_returned(*seats_);
    if (memory_->complete() && owner_there) {
        since_ns_ = 0;
        memory_->enter(block_->published());
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
    // A stopped stage does not return its memory before it continues. A stopped stage is not a reason to end
    // the other stages. The successors of dead processes are started when the stopped stage has continued.
    const bool stopped = std::any_of(missing.begin(), missing.end(),
                                     [](const seat* s) { return shm::is_stopped(s->now->pid); });
    if (!missing.empty() && (stopped || now - since_ns_ < memory_patience_ns)) return;
    if (!owner_there && memory_->complete() && now - since_ns_ < memory_patience_ns) return;
    since_ns_ = 0;
    rebuild_->begin(fmt::format(
        "adopted {}, but the memory of its rings was lost with the processes that held it", setup_->name));
    supervisor::memory_is_there(*seats_);
}

std::string takeover::accept_return(connection& c, const run::return_message& message, shm::message& m) {
    if (message.run_id != run_id_) return "this is another run";
    memory_->restore(message.memory, m.fds);
    std::string why = supervisor::accept_stage_return(
        *seats_, c.fd.get(), shm::peer_process_of(c.fd.get(), message.start_time), message);
    c.stage = why.empty();
    crash_here(crash_point::stage_returned);
    return why;
}

void takeover::accept_owner(connection& c, const run::owner_message& message, control_socket& socket) {
    const int number = c.fd.get();
    spawned owner;
    shm::peer_process peer = shm::peer_process_of(number, message.start_time);
    owner.pid = peer.id.pid;
    owner.start_time = peer.id.start_time;
    owner.pidfd = std::move(peer.pidfd);
    const bool wanted = message.run_id == run_id_ && memory_->has_ipc() && memory_->owner_pidfd() < 0 &&
                        owner.pidfd && owner.pid > 0;
    (void)shm::send_message(number, (wanted ? json(run::welcome_message{})
                                            : run::to_json(run::refused("this run needs no memory owner")))
                                        .dump());
    if (!wanted) return;
    memory_->adopt_owner(std::move(owner), socket.release(number));
    rebuild_->watch_owner();
}

u64 state_file::fingerprint() const {
    const run_facts& f = *facts_;
    u64 print = supervisor::fingerprint(*seats_) ^ static_cast<u64>(phase_->now()) << 40U ^ f.begun_ns ^
                f.finished_ns << 1U ^ f.rebuilds << 2U ^ static_cast<u64>(f.interrupts) << 50U ^
                static_cast<u64>(f.taken_over) << 56U ^ f.started_ns ^ block_->end() << 3U ^
                f.repairs.words << 40U ^ f.repairs.damaged << 44U ^ f.repairs.stalls << 36U ^
                parameters_->number() << 20U ^ f.repairs.state_lost_at.size() << 32U ^
                (f.fallback.fallbacks + f.fallback.returns) << 24U ^
                (f.fallback.last.empty() ? 0 : f.fallback.last.back().next_frame_ns << 4U);
    extensions_->each([&](const run_extension& e) { print ^= e.fingerprint(); });
    return print;
}

bool state_file::is_due() const {
    return fingerprint() != saved_print_ || (retry_ns_ != 0 && now_ns() >= retry_ns_);
}

void state_file::save() {
    saved_print_ = fingerprint();
    json j = supervisor::state_json(*seats_);
    j["parameters"] = parameters_->state(block_->published());
    json run = to_json(*facts_);
    run["end"] = block_->end();
    extensions_->each([&](const run_extension& e) { e.save(run); });
    j["run"] = std::move(run);
    try {
        shm::write_whole_file(setup_->directory + "/state.json",
                              j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
        if (retry_ns_ != 0) seats_->log_line(setup_->directory + "/state.json is written again");
        retry_ns_ = 0;
    } catch (const error& e) {
        if (retry_ns_ == 0)
            seats_->log_line(
                fmt::format("warning: {}; a supervisor that takes over the run would therefore count "
                            "restarts and deaths from 0",
                            e.what()));
        retry_ns_ = now_ns() + retry_every_ns;
    }
}

json state_file::read() const { return read_json_file(setup_->directory + "/state.json"); }

}  // namespace carousel::supervisor
