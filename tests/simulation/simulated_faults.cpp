// The faults and commands of a simulated run.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/crash_point.hpp"
#include "core/json.hpp"
#include "run/directory.hpp"
#include "simulated_history.hpp"

namespace carousel::test {
namespace {

constexpr const char* fault_names[simulated_faults] = {
    "kill",    "crash", "exit",         "hang",      "stop",           "pause",
    "restart", "down",  "kill command", "full disk", "no process",     "stop supervisor",
    "rebuild", "fail",  "leave",        "lose",      "kill supervisor"};

}  // namespace

void simulated_history::next_fault() {
    if (machine_.now() >= faults_end_ns_ || is_over()) return;
    begin_fault(any_fault());
    machine_.after(
        10 * ns_per_ms + machine_.below(machine_.below(3) == 0 ? 1500 * ns_per_ms : 200 * ns_per_ms),
        [this] { next_fault(); });
}

simulated_fault simulated_history::any_fault() {
    const auto any = static_cast<simulated_fault>(machine_.below(simulated_faults));
    if (machine_.below(3) != 0 && !(options_.takes_over && takes_over_)) return any;
    if (options_.takes_over && machine_.below(3) == 0) return any;
    if (takes_over_) return simulated_fault::kill_supervisor;
    for (const stage_setup& st : setup_.stages) {
        if (st.spec.optional) return simulated_fault::fail;
        if (st.spec.is_port()) return simulated_fault::leave;
    }
    return run_.link ? simulated_fault::lose : any;
}

void simulated_history::open_port(const std::string& name) {
    if (is_over()) return;
    ++result_.programs;
    std::vector<std::string> words{"CAROUSEL_STAGE=" + name};
    if (setup_.stages[stage_number(name)].spec.inputs.empty()) words.push_back("CAROUSEL_WRITES=1");
    machine_.spawn_elsewhere(words);
}

simulated_process* simulated_history::any_process(bool of_port) {
    std::vector<simulated_process*> alive;
    for (const auto& [pid, p] : machine_.processes())
        if (!p->exiting && (!of_port || p->elsewhere)) alive.push_back(p.get());
    return alive.empty() ? nullptr : alive[machine_.below(alive.size())];
}

const seat& simulated_history::any_seat() {
    return *engine_->seats().seats[machine_.below(engine_->seats().seats.size())];
}

const seat& simulated_history::optional_seat() {
    for (const auto& s : engine_->seats().seats)
        if (setup_.stages[s->stage].spec.optional) return *s;
    return any_seat();
}

simulated_stage& simulated_history::stage(simulated_process& p) {
    return static_cast<simulated_stage&>(*p.runs);
}

void simulated_history::begin_fault(simulated_fault f) {
    if ((options_.faults >> static_cast<u32>(f) & 1U) == 0) return;
    using enum simulated_fault;
    const bool of_process = f <= stop || f == full_disk || f == no_process || f == leave || f == lose;
    if (engine_ == nullptr && !of_process) return;
    simulated_process* const p = any_process(f == simulated_fault::leave);
    const seat* const s = engine_ == nullptr           ? nullptr
                          : f == simulated_fault::fail ? &optional_seat()
                                                       : &any_seat();
    const u64 span =
        50 * ns_per_ms + machine_.below(machine_.below(2) == 0 ? 300 * ns_per_ms : 2500 * ns_per_ms);
    const bool own = f == crash || f == exit || f == hang;
    if ((f <= stop && p == nullptr) || (own && !stage(*p).has_committed())) return;
    if ((f == fail && !setup_.stages[s->stage].spec.optional) ||
        (f == leave && (p == nullptr || !stage(*p).is_port())) || (f == lose && !run_.link) ||
        (f == kill_supervisor && !takes_over_))
        return;
    // A run that is rebuilt three times without a frame in between ends.
    if (f == rebuild && (rebuilds_++ > 0 || machine_.disk_full || machine_.no_process_left)) return;
    ++result_.faults;
    ++result_.faults_of[static_cast<u8>(f)];
    machine_.note(std::string("fault: ") + fault_names[static_cast<u8>(f)] +
                  (f <= stop || f == leave          ? " pid " + std::to_string(p->pid)
                   : f <= kill_command || f == fail ? " " + s->label
                                                    : "") +
                  " for " + std::to_string(span / ns_per_ms) + " ms");
    switch (f) {
        case kill:
            (void)machine_.signal(*p, SIGKILL);
            break;
        case crash:
            if (!p->stopped) machine_.exit(*p, 0, SIGSEGV);
            break;
        case exit:
            if (!p->stopped) machine_.exit(*p, 1, 0);
            break;
        case hang:
            stage(*p).hang();
            // the supervisor ends no program of a port
            if (p->elsewhere) machine_.after(span, [this, p] { (void)machine_.signal(*p, SIGKILL); });
            break;
        case stop:
            (void)machine_.signal(*p, SIGSTOP);
            machine_.after(span, [this, p] { (void)machine_.signal(*p, SIGCONT); });
            break;
        case pause:
            send_order(run::seat_order::stop, s->label);
            machine_.after(span, [this, label = s->label] { send_order(run::seat_order::cont, label); });
            break;
        case restart:
            send_order(run::seat_order::restart, s->label);
            break;
        case down:
            take_down(s->label, span);
            break;
        case kill_command:
            send(run::kill_request{s->label, machine_.below(2) == 0 ? SIGKILL : SIGSEGV});
            break;
        case full_disk:
            machine_.disk_full = true;
            machine_.after(span, [this] { machine_.disk_full = false; });
            break;
        case no_process:
            machine_.no_process_left = true;
            machine_.after(span, [this] { machine_.no_process_left = false; });
            break;
        case stop_supervisor:
            supervisor_->stopped_until_ns = machine_.now() + span;
            break;
        case rebuild:
            send(run::rebuild_request{});
            break;
        case fail:
            run_.broken.insert(setup_.stages[s->stage].spec.name);
            break;
        case leave:
            stage(*p).leave();
            break;
        case lose:
            run_.link->lose(span);
            break;
        case kill_supervisor:
            end_supervisor(span);
            break;
    }
}

void simulated_history::take_down(const std::string& label, u64 span) {
    send_order(run::seat_order::down, label);
    ordered_down_.emplace(label, false);
    machine_.after(span, [this, label] { send_order(run::seat_order::up, label); });
}

void simulated_history::end_supervisor(u64 span) {
    switch (machine_.below(options_.takes_over ? 5 : 3)) {
        case 0:
            machine_.kill(*supervisor_);
            break;
        case 1:
            supervisor_->dies_in = 1 + static_cast<u32>(machine_.below(30));
            break;
        case 2: {  // rare ones as well
            constexpr u64 points =
                static_cast<u64>(crash_point::seat_named) - static_cast<u64>(crash_point::entry_prepared) + 1;
            supervisor_->dies_at = name_of(static_cast<crash_point>(
                static_cast<u64>(crash_point::entry_prepared) + machine_.below(points)));
            break;
        }
        default:
            kill_at_retirement(span);
    }
}

void simulated_history::kill_at_retirement(u64 span) {
    using enum crash_point;
    if (rebuilds_ == 0 && machine_.below(4) == 0) return begin_fault(simulated_fault::rebuild);
    for (const auto& s : engine_->seats().seats) {
        if (!s->now || !s->standby || !s->standby->standing_by || machine_.below(2) == 0) continue;
        simulated_process* const holder = machine_.find(s->now->pid);
        if (holder == nullptr || holder->exiting) continue;
        supervisor_->dies_at = name_of(seat_named);
        dies_with_supervisor_ = machine_.below(2) == 0 ? s->standby->pid : 0;
        (void)machine_.signal(*holder, SIGKILL);
        return;
    }
    constexpr crash_point points[] = {entry_appointed, entry_doomed,    words_revoked, death_judged,
                                      entry_fenced,    words_reclaimed, seat_named};
    supervisor_->dies_at = name_of(points[machine_.below(std::size(points))]);
    const std::string label = any_seat().label;
    if (machine_.below(2) == 0)
        take_down(label, span);
    else
        send_order(run::seat_order::restart, label);
}

void simulated_history::send_order(run::seat_order order, const std::string& label) {
    if (order == run::seat_order::up || order == run::seat_order::restart) ordered_down_.erase(label);
    send(run::seat_request{order, label});
}

void simulated_history::send(const run::request& request) {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const std::string path = run::control_socket(run_.folder);
    std::copy(path.begin(), path.end(), to.sun_path);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 ||
        !shm::send_message(fd, run::to_json(request).dump())) {
        ::close(fd);
        return;
    }
    machine_.touch();
    clients_.insert(fd);
    read_answer(fd, 0);
}

void simulated_history::read_answer(int fd, u32 tries) {
    machine_.after(30 * ns_per_ms, [this, fd, tries] {
        shm::message m;
        const shm::receive_status got = shm::receive_message(fd, m);
        if (got == shm::receive_status::would_block && tries < 300) return read_answer(fd, tries + 1);
        if (got == shm::receive_status::ok) machine_.note("answer: " + m.text);
        clients_.erase(fd);
        ::close(fd);
    });
}

void simulated_history::give_back_everything() {
    machine_.note("the last fault is over");
    run_.over = true;
    machine_.disk_full = machine_.no_process_left = false;
    run_.broken.clear();
    for (const auto& f : supervisors_) f->dies_in = 0, f->dies_at.clear();
    machine_.after(ns_per_s, [this] { resume_seats(); });
    machine_.after(longest_end_ns, [this] {
        if (!is_over()) run_.violated("the run does not end after the last fault: " + why());
    });
}

// Repeated, because a command may be refused while its seat changes.
void simulated_history::resume_seats() {
    machine_.after(ns_per_s, [this] { resume_seats(); });
    if (engine_ == nullptr) return;
    for (const auto& s : engine_->seats().seats) {
        if (s->machine.paused() || s->machine.state() == seat_state::stopped)
            send_order(run::seat_order::cont, s->label);
        if (s->machine.state() == seat_state::down) send_order(run::seat_order::up, s->label);
    }
}

}  // namespace carousel::test
