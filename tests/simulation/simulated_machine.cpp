#include "simulated_machine.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"

namespace carousel::test {
namespace {

machine* the_machine = nullptr;
constexpr std::size_t stack_bytes = std::size_t{512} << 10U;
constexpr std::size_t kept_lines = 4000;
constexpr u64 tick_ns = 20 * ns_per_ms;

ino_t inode_of(int fd) noexcept {
    struct stat s {};
    return ::fstat(fd, &s) == 0 ? s.st_ino : 0;
}

}  // namespace

std::set<int> open_descriptors() {
    std::set<int> all;
    DIR* const folder = ::opendir("/proc/self/fd");
    while (const dirent* each = ::readdir(folder))
        if (each->d_name[0] != '.' && std::atoi(each->d_name) != ::dirfd(folder))
            all.insert(std::atoi(each->d_name));
    ::closedir(folder);
    return all;
}

machine::machine(u64 seed) : dice_(seed) { the_machine = this; }

machine::~machine() {
    for (auto& [pid, p] : processes_) {
        p->runs.reset();
        if (p->pidfd >= 0) ::close(p->pidfd);
        if (p->death >= 0) ::close(p->death);
    }
    the_machine = nullptr;
}

machine* machine::current() noexcept { return the_machine; }

void machine::at(u64 when, std::function<void()> event) {
    events_.emplace(std::make_pair(when, ++sequence_), std::move(event));
}

void machine::note(std::string text) {
    char time[32];
    std::snprintf(time, sizeof time, "%10.6f ", static_cast<f64>(now_ - 1'000'000'000'000) / 1e9);
    text.insert(0, time);
    for (const char c : text) trace_hash_ = (trace_hash_ ^ static_cast<u8>(c)) * 0x100'0000'01b3ULL;
    trace_.push_back(std::move(text));
    if (trace_.size() > kept_lines) trace_.pop_front();
}

// ---- the supervisor's fiber

void machine::enter(unsigned high, unsigned low) {
    auto* const f = reinterpret_cast<fiber*>(static_cast<u64>(high) << 32U | low);
    try {
        f->body();
    } catch (const std::exception& e) {
        f->error = e.what();
    }
    f->over = true;
    for (;;) ::swapcontext(&f->context, &the_machine->scheduler_);
}

void machine::resume(fiber& f) {
    if (supervisors_may_die) others_ = open_descriptors();
    running_ = &f;
    ::swapcontext(&scheduler_, &f.context);
    running_ = nullptr;
    if (supervisors_may_die) {
        std::set<int> own;
        for (const int fd : open_descriptors())
            if (others_.count(fd) == 0 || f.descriptors.count(fd) > 0) own.insert(fd);
        for (const auto& [pid, p] : processes_) own.erase(p->pidfd), own.erase(p->death);
        f.descriptors = std::move(own);
    }
    if (f.dead) return bury(f, std::exchange(died_at_, ""));
    if (f.over) std::erase(fibers_, &f);
}

void machine::reach(const std::string& point) {
    if (running_ == nullptr) return;
    const bool is_counted_out = running_->dies_in != 0 && --running_->dies_in == 0;
    if (!is_counted_out && running_->dies_at != point) return;
    died_at_ = point;
    fiber& f = *running_;
    f.dead = true;
    ::swapcontext(&f.context, &scheduler_);
}

// A stopped child whose parent has died is continued: its process group has become an orphan.
void machine::bury(fiber& f, const std::string& point) {
    f.dead = true;
    std::erase(fibers_, &f);
    note("the supervisor dies" + (point.empty() ? "" : " at " + point));
    for (const int fd : f.descriptors) ::close(fd);
    f.descriptors.clear();
    for (auto& [pid, p] : processes_) {
        if (p->elsewhere || p->orphan) continue;
        p->orphan = true;
        p->reaped = p->reaped || p->ended;
        if (p->stopped) (void)signal(*p, SIGCONT);
    }
    if (died) died(f, point);
}

void machine::tick() {
    const u64 one = 1;
    for (const fiber* f : fibers_)
        if (f->timer >= 0) (void)!::write(f->timer, &one, sizeof one);
    touch();
    after(tick_ns, [this] { tick(); });
}

void machine::start(fiber& f) {
    f.stack = std::make_unique<char[]>(stack_bytes);
    ::getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = stack_bytes;
    f.context.uc_link = nullptr;
    const u64 at = reinterpret_cast<u64>(&f);
    ::makecontext(&f.context, reinterpret_cast<void (*)()>(&machine::enter), 2,
                  static_cast<unsigned>(at >> 32U), static_cast<unsigned>(at));
    if (!std::exchange(ticks_, true)) after(tick_ns, [this] { tick(); });
    fibers_.push_back(&f);
}

bool machine::run(const std::function<bool()>& is_over, u64 limit_ns) {
    const auto is_due = [this](fiber* f) {
        return now_ >= f->stopped_until_ns && (now_ >= f->wakes_at_ns || (std::exchange(f->touched, false) &&
                                                                          (!f->is_ready || f->is_ready())));
    };
    while (!is_over() && now_ < limit_ns) {
        if (const auto due = std::find_if(fibers_.begin(), fibers_.end(), is_due); due != fibers_.end()) {
            resume(**due);
            continue;
        }
        if (events_.empty()) return false;
        const auto next = events_.begin();
        now_ = std::max(now_, next->first.first);
        const std::function<void()> event = std::move(next->second);
        events_.erase(next);
        event();
    }
    return is_over();
}

void machine::wait(u64 until_ns, std::function<bool()> ready) {
    fiber& f = *running_;
    f.wakes_at_ns = until_ns;
    f.is_ready = std::move(ready);
    ::swapcontext(&f.context, &scheduler_);
}

int machine::make_timer() {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (running_ != nullptr) running_->timer = fd;
    return fd;
}

// ---- processes

int machine::spawn(pid_t& pid, char* const environment[]) {
    if (no_process_left) return EAGAIN;
    std::vector<std::string> words;
    for (char* const* at = environment; *at != nullptr; ++at) words.emplace_back(*at);
    pid = make_process(words, false).pid;
    return 0;
}

simulated_process& machine::spawn_elsewhere(const std::vector<std::string>& environment) {
    return make_process(environment, true);
}

simulated_process& machine::make_process(const std::vector<std::string>& environment, bool elsewhere) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw shm_error("no pipe for a simulated process");
    auto p = std::make_unique<simulated_process>();
    p->pid = next_pid_++;
    p->elsewhere = elsewhere;
    p->start_time = now_ / 10'000'000 + 1;
    p->pidfd = ends[0];
    p->death = ends[1];
    pid_of_pidfd_[inode_of(p->pidfd)] = p->pid;
    simulated_process& made = *p;
    processes_[p->pid] = std::move(p);
    made.runs = load(made, environment);
    schedule(made, 1'000'000 + below(20'000'000));
    return made;
}

simulated_process* machine::find(i32 pid) noexcept {
    const auto at = processes_.find(pid);
    return at == processes_.end() ? nullptr : at->second.get();
}

simulated_process* machine::by_pidfd(int fd) noexcept {
    const auto at = pid_of_pidfd_.find(inode_of(fd));
    return at == pid_of_pidfd_.end() ? nullptr : find(at->second);
}

void machine::schedule(simulated_process& p, u64 after_ns) {
    const u64 number = ++p.steps;
    after(after_ns, [this, &p, number] {
        if (p.steps != number || p.exiting || p.stopped) return;
        const u64 next = as(p.pid, [&] { return p.runs->step(); });
        if (!p.exiting && p.steps == number) schedule(p, next);
    });
}

int machine::signal(simulated_process& p, int signal) {
    if (p.reaped) return ESRCH;
    if (p.exiting || signal == 0) return 0;
    switch (signal) {
        case SIGSTOP:
            p.stopped = true;
            break;
        case SIGCONT:
            if (std::exchange(p.stopped, false)) schedule(p, 100'000);
            break;
        case SIGKILL:
            exit(p, 0, signal);
            break;
        default:
            if (!p.stopped)
                exit(p, 0, signal);
            else
                after(ns_per_ms, [this, &p, signal] { (void)this->signal(p, signal); });
    }
    return 0;
}

int machine::send_signal(simulated_process& p, int signal) {
    if (p.reaped) return ESRCH;
    if (signal != SIGKILL || p.exiting) return this->signal(p, signal);
    if (p.stopped && below(2) == 0) (void)this->signal(p, SIGCONT);
    after(below(3 * ns_per_ms), [this, &p] { (void)this->signal(p, SIGKILL); });
    return 0;
}

// The kernel closes the descriptors first; the end of the process follows after the driver's tear-down.
void machine::exit(simulated_process& p, int exit_code, int signal) {
    if (p.exiting) return;
    p.exiting = true;
    p.stopped = false;
    p.exit_code = exit_code;
    p.signal = signal;
    note("pid " + std::to_string(p.pid) +
         (signal != 0 ? " dies by signal " + std::to_string(signal)
                      : " exits with code " + std::to_string(exit_code)));
    p.runs->ends();
    if (supervisors_may_die &&
        running_ != nullptr) {  // a number that it has closed may become the supervisor's
        const std::set<int> open = open_descriptors();
        std::erase_if(others_, [&](int fd) { return open.count(fd) == 0; });
    }
    touch();
    after(teardown_ns[0] + below(teardown_ns[1] - teardown_ns[0]), [this, &p] {
        p.runs->is_gone();
        p.ended = true;
        p.reaped = p.elsewhere || p.orphan;
        (void)!::write(p.death, "x", 1);
        touch();
    });
}

std::string machine::stat_of(const simulated_process& p) const {
    const char state = p.ended ? 'Z' : p.stopped ? 'T' : 'S';
    std::string text =
        std::to_string(p.pid) + " (simulated) " + state + " 1 1 1 0 -1 " + (p.exiting ? "4" : "0");
    for (int field = 10; field < 22; ++field) text += " 0";
    return text + " " + std::to_string(p.start_time) + " 0 0\n";
}

}  // namespace carousel::test
