#include "simulated_stage.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "control/memory_message.hpp"
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
constexpr u64 beat_every_ns = 50 * ns_per_ms;

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
    if (notice) notice();
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
        for (u32 k = x.written; x.at == phase::on_device && k < worker_->outputs(); ++k)
            late_.push_back({k, worker_->output(k).index(), x.j.output[k].index, x.j.ring_sequence});
    jobs_.clear();
    worker_.reset();
    helper_.reset();
    ledger_.reset();
    joined_.reset();
    fds_.clear();
}

// What its device had begun lands at the latest now, or never. An event that has not fired never fires.
void simulated_stage::is_gone() noexcept {
    for (const late_write& x : late_)
        if (run_->on->below(2) == 0) write_frame(x);
    memory_.clear();
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

// As stages/runner/stage_main.cpp: the process has nothing of the run any more, and waits for its next entry.
void simulated_stage::start_over() {
    run_->on->note("pid " + std::to_string(process_->pid) + " starts over as " + stage_);
    worker_.reset();
    helper_.reset();
    device_.reset();
    ledger_.reset();
    memory_.clear();
    fds_.clear();
    joined_.reset();
    ready_ = false;
    (void)shm::send_message(socket_, write_message(run::detached_message{}).dump());
    ++run_->started_over;
    run_->on->touch();
    state_ = state::introduced;
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
    map_outputs(answer, m.fds);
    if (!port_) kept_ = answer.at("kept").dump(), fds_ = std::move(m.fds);
    joined_ = std::make_unique<shm::segment>(shm::segment::join(run_->run_id));
    const nlohmann::json& own = answer.at("incarnation");
    incarnation_ = {own.at("seat"), own.at("entry"), own.at("epoch")};
    if (port_) claims_as_ = answer.at("pid");
    if (!join()) return die(exit_code::revoked);
    ready_at_ns_ = now_ns() + between(run_->load_ns);
    state_ = state::loading;
}

void simulated_stage::map_outputs(const nlohmann::json& answer, const std::vector<shm::unique_fd>& fds) {
    const shm::segment block = shm::segment::observe(run_->run_id);
    const shm::control_block& c = block.block();
    const shm::stage_block& st = c.stage[c.seat[answer.at("incarnation").at("seat").get<u32>()].stage];
    for (u32 k = 0; k < st.outputs; ++k)
        for (const nlohmann::json& link : answer.at("links")) {
            if (link.at("link") != st.output_link[k]) continue;
            memory_.push_back({std::make_unique<device::memfd_mapping>(run::read_memory(link, fds)),
                               c.link[st.output_link[k]].slot_bytes});
            break;
        }
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
    if (run::is_start_over(m.text) && state_ == state::standing_by) return start_over();
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

}  // namespace carousel::test
