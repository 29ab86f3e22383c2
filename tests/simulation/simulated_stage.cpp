#include "simulated_stage.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "control/request_message.hpp"
#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "device/backend.hpp"
#include "ring/exit_notes.hpp"
#include "run/directory.hpp"
#include "session/accounts.hpp"
#include "shm/fd_socket.hpp"
#include "shm/runtime_folder.hpp"
#include "tests/support/event_context.hpp"

namespace carousel::test {
namespace {

constexpr u64 watch_every_ns = 20 * ns_per_ms, return_every_ns = 5 * ns_per_ms;
constexpr u64 poll_ns = 4 * ns_per_ms, beat_every_ns = 50 * ns_per_ms, retry_ns = 100 * ns_per_ms;

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
    for (const std::string& word : environment)
        if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
    return "";
}

}  // namespace

void observed_run::violated(const std::string& what) {
    on->note("VIOLATION: " + what);
    violations.push_back(what);
}

void observed_run::attends(const std::string& stage) {
    if (absent.erase(stage) > 0) attendances[stage].push_back({first_not_begun});
}

void observed_run::is_absent(const std::string& stage) {
    if (absent.insert(stage).second && !attendances[stage].empty()) attendances[stage].back().present = false;
}

simulated_stage::simulated_stage(observed_run& r, simulated_process& p,
                                 const std::vector<std::string>& environment)
    : run_(&r),
      process_(&p),
      stage_(value_of(environment, "CAROUSEL_STAGE")),
      claims_as_(p.pid),
      port_(p.elsewhere),
      writes_(!value_of(environment, "CAROUSEL_WRITES").empty()) {
    if (port_) {
        r.on->note("pid " + std::to_string(p.pid) + " starts, to open port " + stage_);
        return;
    }
    std::istringstream attach(value_of(environment, "CAROUSEL_ATTACH"));
    std::string directory;
    attach >> directory >> incarnation_.seat >> incarnation_.entry >> incarnation_.epoch;
    r.on->note("pid " + std::to_string(p.pid) + " starts as " + stage_ + ", entry " +
               std::to_string(incarnation_.entry) + ", epoch " + std::to_string(incarnation_.epoch));
}

void simulated_stage::ends() noexcept {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    if (run_->link) run_->link->close(*process_);
    if (port_ && run_->port_ended) {
        run_->port_ended(stage_, closed_);
        port_ = false;
    }
    for (const work& x : jobs_)
        for (u32 k = x.written; x.at == phase::on_device && k < worker_->outputs(); ++k) {
            late_.emplace_back(worker_->output(k).index(), x.j.output[k].index);
            late_frames_.push_back(x.j.ring_sequence);
        }
    jobs_.clear();
    worker_.reset();
    helper_.reset();
    ledger_.reset();
    joined_.reset();
    fds_.clear();
}

// What its device had begun lands at the latest now, or never. An event that has not fired never fires.
void simulated_stage::is_gone() noexcept {
    for (std::size_t k = 0; k < late_.size(); ++k)
        if (run_->on->below(2) == 0) run_->content[late_[k]] = late_frames_[k];
}

void simulated_stage::die(int exit_code) {
    if (joined_ && exit_code != exit_code::ok && exit_code != exit_code::revoked)
        entry().exit_note.store(ring::note_exit(exit_code));
    run_->on->exit(*process_, exit_code, 0);
}

// The program unmaps the memory, reports it, and exits by itself later.
void simulated_stage::leave_port() {
    run_->on->note("pid " + std::to_string(process_->pid) + " leaves port " + stage_);
    jobs_.clear();
    worker_.reset();
    helper_.reset();
    ledger_.reset();
    joined_.reset();
    (void)shm::send_message(socket_, write_message(run::left_message{}).dump());
    run_->on->touch();
    state_ = state::left;
    if (run_->port_left) run_->port_left(stage_);
}

u64 simulated_stage::step() {
    if (state_ == state::left) {
        die(exit_code::ok);
        return 0;
    }
    if (run_->broken.count(stage_) > 0 && !port_) {
        die(exit_code::no_device);
        return 0;
    }
    if (joined_ && !port_) watch_supervisor();
    if (process_->exiting) return 0;
    if (joined_ && now_ns() >= beat_ns_) {
        session::beat(entry(), block().stage[block().seat[incarnation_.seat].stage].counters);
        beat_ns_ = now_ns() + beat_every_ns;
    }
    switch (state_) {
        case state::connecting:
            connect();
            return 3 * ns_per_ms;
        case state::introduced:
            receive_answer();
            return 2 * ns_per_ms;
        case state::loading:
            if (now_ns() < ready_at_ns_) return 20 * ns_per_ms;
            begin_work();
            return ns_per_ms;
        case state::standing_by:
            if (const u32 epoch = ring::promoted_epoch(block(), incarnation_); epoch != 0) {
                incarnation_.epoch = epoch;
                worker_->set_epoch(epoch);
                standby_ = false;
                state_ = state::working;
                ++run_->takeovers_by_standby;
                run_->on->note("pid " + std::to_string(process_->pid) + " takes over " + stage_);
            }
            return 10 * ns_per_ms;
        case state::working:
        case state::left:
            break;
    }
    return work_step();
}

// ---- its start

bool simulated_stage::open_socket() {
    socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un own{}, to{};
    own.sun_family = to.sun_family = AF_UNIX;
    // With the run's id, because abstract names are shared with tests that run at the same time.
    const std::string name = "carousel-pid-" + std::to_string(process_->pid) + "-" + run_->run_id;
    std::memcpy(own.sun_path + 1, name.data(), name.size());
    const std::string path = run::control_socket(run_->folder);
    std::memcpy(to.sun_path, path.data(), std::min(path.size(), sizeof to.sun_path - 1));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size() + 1);
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&own), length) != 0 ||
        ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
        ::close(std::exchange(socket_, -1));
        return false;
    }
    return true;
}

void simulated_stage::connect() {
    if (!open_socket()) {
        // as attach(): a process that its supervisor has started does not wait for another one
        if (!port_ && (errno == ECONNREFUSED || errno == ENOENT)) die(exit_code::supervisor_gone);
        return;
    }
    run::hello_message hello;
    hello.stage = stage_;
    hello.incarnation = incarnation_;
    hello.pid = process_->pid;
    hello.start_time = process_->start_time;
    hello.port = port_;
    hello.writes = writes_;
    (void)shm::send_message(socket_, write_message(hello).dump());
    state_ = state::introduced;
    run_->on->touch();
}

void simulated_stage::receive_answer() {
    shm::message m;
    const shm::receive_status got = shm::receive_message(socket_, m);
    if (got == shm::receive_status::would_block) return;
    const nlohmann::json answer =
        got == shm::receive_status::ok ? nlohmann::json::parse(m.text) : nlohmann::json();
    if (port_ && (!answer.is_object() || answer.value("later", false))) {
        ::close(std::exchange(socket_, -1));
        state_ = state::connecting;
        return;
    }
    if (!answer.is_object() || !answer.value("ok", false)) {
        closed_ = true;
        run_->on->note("pid " + std::to_string(process_->pid) + " is refused" +
                       (answer.is_object() ? ": " + answer.value("message", "") : ""));
        return die(exit_code::revoked);
    }
    standby_ = answer.value("standby", false);
    if (!port_) kept_ = answer.at("kept").dump(), fds_ = std::move(m.fds);
    joined_ = std::make_unique<shm::segment>(shm::segment::join(run_->run_id));
    if (port_) {
        const nlohmann::json& own = answer.at("incarnation");
        incarnation_ = {own.at("seat"), own.at("entry"), own.at("epoch")};
        claims_as_ = answer.at("pid");
    }
    if (!join()) return die(exit_code::revoked);
    ready_at_ns_ = now_ns() + between(run_->load_ns);
    state_ = state::loading;
}

bool simulated_stage::join() {
    shm::control_block& c = block();
    const ring::claim_result got =
        standby_ ? ring::claim_standby(c, incarnation_)
                 : ring::claim(c, incarnation_, {claims_as_, port_ ? 0 : process_->start_time});
    if (got != ring::claim_result::ok) return false;
    const shm::stage_block& st = c.stage[c.seat[incarnation_.seat].stage];
    for (u32 k = 0; k < st.outputs; ++k) shm::open_frames(c, st.output_link[k]);
    for (u32 k = 0; k < shm::max_slots; ++k) {
        const u32 names[2] = {incarnation_.entry, k};
        std::memcpy(c.event_handle[incarnation_.entry][k], names, sizeof names);
    }
    return true;
}

void simulated_stage::begin_work() {
    shm::control_block& c = block();
    std::erase_if(run_->pending, [&](const auto& at) { return at.first == incarnation_.entry; });
    entry().events_published.store(1);
    worker_ = std::make_unique<ring::worker>(c, incarnation_.seat, incarnation_.entry, incarnation_.epoch);
    device_ = std::make_unique<event_context>([run = run_](u32 entry, u32 slot) {
        return run->pending.count({entry, slot}) == 0;
    });
    helper_ = std::make_unique<ring::helper>(c, *device_);
    receives_ = run_->link && worker_->stage().source != shm::none;
    if (worker_->outputs() == 0)
        ledger_ = std::make_unique<telemetry::ledger_writer>(telemetry::ledger_path(run_->folder, stage_));
    if (standby_) {
        entry().live_since_ns.store(now_ns());
        state_ = state::standing_by;
    } else {
        if (!ring::go_live(c, incarnation_, claims_as_)) return die(exit_code::revoked);
        state_ = state::working;
        run_->attends(stage_);
    }
    ready_ = true;
    if (socket_ >= 0) (void)shm::send_message(socket_, write_message(run::ready_message{}).dump());
    run_->on->touch();
}

// ---- its supervisor's death

void simulated_stage::watch_supervisor() {
    if (now_ns() < watch_due_ns_) return;
    watch_due_ns_ = now_ns() + (socket_ < 0 ? return_every_ns : watch_every_ns);
    if (socket_ < 0) {
        if (now_ns() - lost_ns_ > run_->grace_ns) return die(exit_code::supervisor_gone);
        return return_to_supervisor();
    }
    shm::message m;
    const shm::receive_status got = shm::receive_message(socket_, m);
    if (got == shm::receive_status::would_block) return;
    if (got != shm::receive_status::ok) {
        ::close(std::exchange(socket_, -1));
        awaiting_welcome_ = false;
        lost_ns_ = now_ns();
        return;
    }
    const run::welcome_answer answer = run::read_welcome(m.text);
    if (answer.refused) {
        run_->on->note("pid " + std::to_string(process_->pid) + " is refused: " + *answer.refused);
        return die(exit_code::revoked);
    }
    if (!answer.welcome || !std::exchange(awaiting_welcome_, false)) return;
    ++run_->welcomes;
    (void)shm::send_message(socket_, write_message(run::back_message{}).dump());
    run_->on->touch();
}

void simulated_stage::return_to_supervisor() {
    if (!open_socket()) return;
    run::return_message back;
    back.run_id = run_->run_id;
    back.stage = stage_;
    back.incarnation = incarnation_;
    back.ready = ready_;
    back.memory = nlohmann::json::parse(kept_);
    back.start_time = process_->start_time;
    std::vector<int> fds;
    for (const shm::unique_fd& fd : fds_) fds.push_back(fd.get());
    (void)shm::send_message(socket_, write_message(back).dump(), fds);
    awaiting_welcome_ = true;
    run_->on->touch();
}

// ---- its frames

u64 simulated_stage::work_step() {
    u64 next = poll_ns;
    if (run_->on->below(6) == 0)
        for (u32 k = 0; k < worker_->stage().inputs; ++k) run_->helped += helper_->help(worker_->input(k));
    if (!jobs_.empty() && now_ns() >= jobs_.front().due_ns) {
        const u64 wait = advance(jobs_.front());
        if (process_->exiting) return 0;
        std::erase_if(jobs_, [](const work& x) { return x.at == phase::marked; });
        return wait;
    }
    if (leaves_ && jobs_.empty()) {
        leave_port();
        return run_->on->below(300 * ns_per_ms);
    }
    const bool room = jobs_.empty() || (jobs_.size() < worker_->stage().in_flight &&
                                        jobs_.back().at != phase::processing && !jobs_.front().ends_stream);
    if (room && begin_one()) return 100'000;
    if (process_->exiting) return 0;
    if (!jobs_.empty() && jobs_.front().due_ns != ~u64{0})
        next = std::min(next, jobs_.front().due_ns - std::min(now_ns(), jobs_.front().due_ns - 1));
    return next;
}

bool simulated_stage::begin_one() {
    for (u32 k = 0; k < worker_->outputs(); ++k)
        if (!worker_->output(k).has_free_slot()) {
            for (u32 o = 0; o < worker_->outputs(); ++o) worker_->output(o).sweep();
            break;
        }
    u64 next = 0;
    const ring::outcome can = worker_->peek(static_cast<u32>(jobs_.size()), next);
    for (u32 k = 0; can == ring::outcome::ok && k < worker_->outputs(); ++k)
        if (!worker_->output(k).has_free_slot()) return false;  // begin() would sleep
    if (receives_ && can == ring::outcome::ok) {
        const bool there = has_arrived(next);
        wait_for_link(!there && jobs_.empty());
        if (!there) return false;
    }
    work x;
    const ring::outcome got = worker_->begin(x.j, static_cast<u32>(jobs_.size()));
    if (got == ring::outcome::revoked) {
        die(exit_code::revoked);
        return false;
    }
    if (got == ring::outcome::closed && jobs_.empty()) {
        closed_ = true;
        die(exit_code::ok);
        return false;
    }
    if (got != ring::outcome::ok) return false;
    check_inputs(x);
    for (u32 k = 0; k < worker_->outputs(); ++k)
        run_->content[{worker_->output(k).index(), x.j.output[k].index}] = ~u64{0};
    entry().processing_since_ns.store(now_ns());
    if (x.j.sequence_index != shm::none)
        run_->first_not_begun = std::max(run_->first_not_begun, x.j.ring_sequence + 1);
    x.due_ns = hangs_ ? ~u64{0} : now_ns() + between(run_->process_ns);
    x.ends_stream = x.j.sequence_index != shm::none &&
                    x.j.ring_sequence >= (receives_ ? run_->link->end().value_or(~u64{0}) : run_->ends_at);
    if (receives_ && x.j.ring_sequence != next)
        run_->violated("frame " + std::to_string(x.j.ring_sequence) + " was begun, although frame " +
                       std::to_string(next) + " is the next one");
    jobs_.push_back(std::move(x));
    return true;
}

bool simulated_stage::has_arrived(u64 ring_sequence) {
    const u64 done = worker_->done_below();
    if (!opened_) {
        if (ring_sequence != done || !run_->link->open(*process_, done)) return false;
        opened_ = true;
        const nlohmann::json figures{{"run", run_->run_id}, {"durable", run_->link->is_durable()}};
        shm::write_whole_file(run_->folder + "/figures-" + stage_, figures.dump());
        delivered_ = std::make_unique<stages::delivered>(block(), run_->folder, block().first_ring_sequence);
    }
    if (run_->link->is_durable() && now_ns() >= delivered_read_ns_) {
        delivered_read_ns_ = now_ns() + 5 * ns_per_ms;
        run_->link->delivered(delivered_->below());
    }
    return run_->link->ready(ring_sequence, done);
}

void simulated_stage::wait_for_link(bool waits) {
    if (std::exchange(waits_, waits) == waits) return;
    entry().pause.store(static_cast<u64>(waits ? shm::pause_reason::link : shm::pause_reason::nothing));
    entry().paused_since_ns.store(waits ? now_ns() : 0);
}

void simulated_stage::check_inputs(const work& x) {
    for (u32 k = 0; k < x.j.inputs; ++k) {
        const u64 found = run_->content[{worker_->input(k).index(), x.j.input[k].index}];
        if (found == x.j.ring_sequence || x.j.is_tombstone()) continue;
        if (worker_->revoked()) continue;  // what a revoked process reads is discarded
        run_->violated("torn: " + stage_ + " (pid " + std::to_string(process_->pid) + ") reads " +
                       std::to_string(found) + " as frame " + std::to_string(x.j.ring_sequence));
    }
}

u64 simulated_stage::advance(work& x) {
    constexpr u64 soon = 50'000;
    shm::incarnation& e = entry();
    if (x.ends_stream) return end_stream(x);
    switch (x.at) {
        case phase::processing:
            if (worker_->outputs() > 0) run_->pending.insert({incarnation_.entry, x.j.output[0].index});
            e.processing_since_ns.store(0);
            if (!worker_->submit(x.j)) {
                die(exit_code::revoked);
                return 0;
            }
            e.device_since_ns.store(now_ns());
            x.at = phase::on_device;
            x.due_ns = now_ns() + between(run_->process_ns);
            return soon;
        case phase::on_device:
            if (x.written < worker_->outputs()) {
                run_->content[{worker_->output(x.written).index(), x.j.output[x.written].index}] =
                    x.j.ring_sequence;
                if (++x.written < worker_->outputs()) return soon;
                run_->pending.erase({incarnation_.entry, x.j.output[0].index});
            }
            e.device_since_ns.store(0);
            e.finishing_since_ns.store(now_ns());
            x.at = phase::written;
            return soon;
        case phase::written:
            check_inputs(x);
            if (ledger_ && !store_on_disk(x, false)) return retry_ns;
            x.at = phase::recorded;
            return soon;
        case phase::recorded:
            if (!worker_->commit(x.j)) {
                die(exit_code::revoked);
                return 0;
            }
            if (worker_->outputs() == 0) {
                if (x.j.is_tombstone()) ++run_->tombstones;
                if (++run_->delivered[worker_->stage_index()][x.j.ring_sequence] > 1)
                    run_->violated("repeated: " + stage_ + " commits frame " +
                                   std::to_string(x.j.ring_sequence) + " again");
                if (auto& all = run_->attendances[stage_]; !all.empty()) {
                    all.back().any = true;
                    all.back().last = std::max(all.back().last, x.j.ring_sequence);
                }
                run_->on->note(stage_ + " has frame " + std::to_string(x.j.ring_sequence) +
                               (x.j.is_tombstone() ? " (tombstone)" : ""));
            }
            ++run_->commits;
            ++committed_;
            x.at = phase::committed;
            return run_->on->below(4) == 0 ? run_->on->below(3 * ns_per_ms) : soon;  // a slow disk
        case phase::committed:
            if (ledger_ && !store_on_disk(x, true)) return retry_ns;
            session::count_commit(*worker_, e, x.j, now_ns());
            e.finishing_since_ns.store(0);
            if (!worker_->complete(x.j)) {
                die(exit_code::revoked);
                return 0;
            }
            if (receives_) run_->link->committed(x.j.ring_sequence);
            x.at = phase::marked;
            return soon;
        case phase::marked:
            break;
    }
    return soon;
}

u64 simulated_stage::end_stream(work& x) {
    entry().processing_since_ns.store(0);
    const ring::outcome got = worker_->end_stream(x.j);
    if (got == ring::outcome::empty) return poll_ns;
    if (got == ring::outcome::revoked || !worker_->give_back(x.j)) {
        die(exit_code::revoked);
        return 0;
    }
    x.at = phase::marked;
    return poll_ns;
}

bool simulated_stage::store_on_disk(const work& x, bool mark) {
    const u32 committer = telemetry::ledger_committer(incarnation_.seat, incarnation_.epoch);
    shm::incarnation& e = entry();
    try {
        if (mark)
            ledger_->mark_committed(x.j.ring_sequence, x.j.ring_sequence * 7, x.j.is_tombstone(), committer);
        else
            ledger_->record(x.j.ring_sequence, x.j.ring_sequence * 7, x.j.is_tombstone(), committer);
    } catch (const output_error&) {
        if (ring::load(e.paused_since_ns) == 0) {
            e.pause.store(static_cast<u64>(shm::pause_reason::disk_full));
            e.paused_since_ns.store(now_ns());
            ++run_->disk_waits;
        }
        return false;
    }
    if (ring::load(e.paused_since_ns) != 0) {
        e.finishing_since_ns.store(now_ns());
        e.paused_since_ns.store(0);
        e.pause.store(static_cast<u64>(shm::pause_reason::nothing));
    }
    return true;
}

}  // namespace carousel::test
