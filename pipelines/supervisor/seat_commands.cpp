// seat_keeper: what users ask of a seat, and the end of the run.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "core/clock.hpp"
#include "core/did_you_mean.hpp"
#include "core/errors.hpp"
#include "shm/injected_fault.hpp"
#include "shm/process_id.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {
namespace {

[[noreturn]] void refuse_command(const seat& s, const char* command, const char* instead) {
    throw config_error(
        fmt::format("{}: `{}` makes no sense for a stage that is {}: {}", s.label, command, name_of(s.machine.state()), instead));
}

}  // namespace

std::vector<seat*> seat_keeper::find(const std::string& name) {
    std::vector<seat*> out;
    std::string known;
    std::vector<std::string> names;
    for (auto& s : seats_) {
        const std::string& stage = setup_->stages[s->stage].name;
        if (name == stage || name == fmt::format("{}.{}", stage, s->instance)) out.push_back(s.get());
        known += (known.empty() ? "" : ", ") + s->label;
        names.push_back(stage);
        if (s->label != stage) names.push_back(s->label);
    }
    if (out.empty())
        throw config_error(fmt::format("the pipeline {} has no stage \"{}\"; it has {}{}", setup_->name, name, known,
                                       did_you_mean_clause(name, names)));
    return out;
}

std::string seat_keeper::stop(seat& s) {
    const seat_action a = s.now ? s.machine.on(seat_event::hold, now_ns()) : seat_action::refuse;
    if (a == seat_action::refuse) refuse_command(s, "stop", "it has no process to hold");
    act(s, a, nullptr);
    return fmt::format("{} (pid {}) is held until `carousel cont {}`", s.label, s.now->pid, s.label);
}

std::string seat_keeper::cont(seat& s) {
    const seat_action a = s.now ? s.machine.on(seat_event::release, now_ns()) : seat_action::refuse;
    if (a == seat_action::refuse) refuse_command(s, "cont", "it is not held");
    // Others may have waited for it all the time: nobody is called late for that.
    restart_clocks(now_ns());
    act(s, a, nullptr);
    return fmt::format("{} (pid {}) goes on", s.label, s.now->pid);
}

std::string seat_keeper::kill(seat& s, int signal) {
    if (!s.now) refuse_command(s, "kill", "it has no process");
    life& l = *s.now;
    const bool stops =
        signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU || signal == SIGCONT || signal == 0;
    if (!stops && l.signalled_ns == 0) l.signalled_ns = now_ns();
    if (!stops) l.user_signal = signal;
    const int failed = shm::signal_pidfd(l.pidfd.get(), signal);
    if (failed != 0) {
        l.signalled_ns = 0;
        throw shm_error(fmt::format("signalling {} (pid {}): {}", s.label, l.pid, errno_text(failed)));
    }
    const char* name = signal > 0 ? sigabbrev_np(signal) : nullptr;
    return fmt::format("sent signal {} ({}) to {} (pid {})", signal, name != nullptr ? name : "?", s.label, l.pid);
}

// The successor is the program that lies on the disk now; the predecessor's frames are thrown back, none is lost.
std::string seat_keeper::restart(seat& s) {
    const seat_state before = s.machine.state();
    if (!s.now && (before == seat_state::backoff || before == seat_state::down || before == seat_state::failed))
        return bring_up(s);
    if (!s.now || before == seat_state::done || before == seat_state::stopping) refuse_command(s, "restart", "it has no process");
    const i32 old = s.now->pid;
    end_spare(s);  // it is of the old program too
    s.now->how.asked = s.now->how.outside = s.now->by_us = true;
    bury(s);
    if (!s.now) return fmt::format("{} (pid {}) is being replaced", s.label, old);
    return fmt::format("{} (pid {}) is being replaced by pid {}", s.label, old, s.now->pid);
}

// A faulty stage on demand. Its death is held neither against the stage nor against the frame that it had in hand.
std::string seat_keeper::inject(seat& s, shm::injected_fault kind) {
    using shm::injected_fault;
    if (!s.now || s.machine.state() != seat_state::running) refuse_command(s, "inject", "only one that runs can take a fault");
    life& l = *s.now;
    const std::string name(shm::injected_fault_names[static_cast<std::size_t>(kind)]);
    const bool on_gpu = setup_->stages[s.stage].device.kind == device::device_kind::cuda;
    if (kind == injected_fault::gpu_fault && !on_gpu)
        throw config_error(fmt::format("{} computes on the CPU and can have no GPU fault: `carousel kill {} --signal SEGV` is the nearest to it",
                                       s.label, s.label));
    const u64 timeout_ns = setup_->stages[s.stage].frame_timeout_ns;
    if (kind == injected_fault::hang && (l.tool || timeout_ns == 0 || (c_->stage[s.stage].flags & shm::stage_flag::latest) != 0))
        throw config_error(fmt::format("{} {}: nothing would ever find the hang", s.label,
                                       l.tool            ? "runs under a tool and has no deadline"
                                       : timeout_ns == 0 ? "has frame_timeout_ms = 0, no deadline"
                                                         : "reads its input as `latest` and holds nobody up"));
    l.how.injected = true;
    c_->seat[s.index].fault.store(shm::fault_word(kind, l.who.epoch), std::memory_order_release);
    return fmt::format("{} (pid {}) takes a fault ({}) with its next frame{}", s.label, l.pid, name,
                       kind == injected_fault::hang ? fmt::format(" and is replaced {} ms later", timeout_ns / ns_per_ms) : "");
}

std::string seat_keeper::take_down(seat& s) {
    const seat_state before = s.machine.state();
    s.start_wanted = false;
    end_spare(s);
    const i32 pid = s.now ? s.now->pid : 0;
    const seat_action a = s.machine.on(seat_event::take_down, now_ns());
    if (a == seat_action::refuse) refuse_command(s, "down", "it has ended already");
    if (s.now) {
        s.now->how.outside = s.now->by_us = true;
        act(s, a, nullptr);
    } else if (s.machine.state() == seat_state::stopping) {
        s.machine.on(seat_event::died_outside, now_ns());  // it was about to be started
    }
    if (before == seat_state::down) return fmt::format("{} is down already", s.label);
    return pid != 0 ? fmt::format("{} (pid {}) is down until `carousel up {}`; what it had in hand waits", s.label, pid, s.label)
                    : fmt::format("{} is down until `carousel up {}`", s.label, s.label);
}

std::string seat_keeper::bring_up(seat& s) {
    if (ending_) throw config_error(fmt::format("{}: the run is ending", s.label));
    const seat_action a = s.machine.on(seat_event::bring_up, now_ns());
    if (a == seat_action::refuse)
        refuse_command(s, "up",
                       s.machine.state() == seat_state::stopped ? "`carousel cont` lets it go on" : "wait until it is down");
    act(s, a, nullptr);
    return s.now ? fmt::format("{} is {} (pid {})", s.label, name_of(s.machine.state()), s.now->pid)
                 : fmt::format("{} starts", s.label);
}

void seat_keeper::pause() {
    paused_ = true;
    release_held();
    for (auto& s : seats_) {
        end_spare(*s);
        if (!s->now) continue;
        s->now->how.asked = s->now->how.outside = s->now->by_us = true;
        bury(*s);
    }
}

void seat_keeper::resume(bool revive) {
    paused_ = ending_ = false;
    for (auto& s : seats_) {
        const seat_state was = s->machine.state();
        const bool optional = setup_->stages[s->stage].optional;
        if (was == seat_state::failed && optional) close_groups_of(s->stage);
        // A source may be done long before the sinks are: there is nothing left of its frames now.
        if (was == seat_state::done || (revive && ((was == seat_state::failed && !optional) || was == seat_state::backoff))) {
            s->machine.resume(seat_state::starting, now_ns(), 0);
            s->start_wanted = true;
        }
        if (s->start_wanted) start(*s);
    }
    if (revive) failure_.reset();
}

void seat_keeper::fail(const std::string& label, const std::string& what, int code) {
    if (!failure_) failure_ = root_cause{label, what, code, {}};
}

void seat_keeper::release_held() {
    for (auto& s : seats_)
        if (s->now && s->machine.state() == seat_state::stopped) act(*s, s->machine.on(seat_event::release, now_ns()), nullptr);
}

void seat_keeper::signal_all(int signal) {
    for (auto& s : seats_) {
        const auto send = [&](const life& l) {
            if (l.ended || !l.pidfd) return;
            shm::signal_pidfd(l.pidfd.get(), signal);
            if (signal != SIGCONT) shm::signal_pidfd(l.pidfd.get(), SIGCONT);  // a stopped process gets its TERM when it goes on
            if (l.tool_pidfd && signal == SIGKILL) shm::signal_pidfd(l.tool_pidfd.get(), signal);
        };
        if (s->now) send(*s->now);
        if (s->spare) send(*s->spare);
        for (const auto& l : s->gone) send(*l);
    }
}

bool seat_keeper::all_gone() const noexcept {
    return std::all_of(seats_.begin(), seats_.end(), [](const auto& s) {
        return !s->now && !s->spare && std::all_of(s->gone.begin(), s->gone.end(), [](const auto& l) { return l->ended && !l->tool_pidfd; });
    });
}

std::vector<std::string> seat_keeper::still_there() const {
    std::vector<std::string> out;
    for (const auto& s : seats_) {
        if (s->now) out.push_back(fmt::format("{} (pid {})", s->label, s->now->pid));
        if (s->spare) out.push_back(fmt::format("{}'s standby (pid {})", s->label, s->spare->pid));
        for (const auto& l : s->gone)
            if (!l->ended) out.push_back(fmt::format("{} (pid {})", s->label, l->pid));
    }
    return out;
}

}  // namespace carousel::supervisor
