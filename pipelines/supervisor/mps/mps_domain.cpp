#include "supervisor/mps/mps_domain.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 first_spare_delay_ns = ns_per_s, longest_spare_delay_ns = 30 * ns_per_s;
constexpr u64 server_query_ns = ns_per_s;
/// The limit for a daemon's answer at an adoption is as long as a start may take, because the daemon may
/// merely be slow, and its end would be that of all its clients.
constexpr u32 late_ms = 10'000;

shm::unique_fd pidfd_of(const shm::process_id& id) { return shm::unique_fd(shm::open_pidfd(id)); }

}  // namespace

mps_domain::mps_domain(const std::string& runtime_directory, event_loop& loop)
    : folder_(shm::mps_folder(runtime_directory)),
      parts_{mps_control(folder_, "0"), mps_control(folder_, "1")},
      loop_(&loop),
      done_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!done_event_) throw shm_error("making an eventfd: " + errno_text(errno));
    loop_->watch(done_event_.get(), EPOLLIN, [this](u32) { read_completions(); });
    thread_ = std::thread([this] { run_tasks(); });
}

mps_domain::~mps_domain() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        todo_.clear();
    }
    wake_.notify_all();
    thread_.join();
    loop_->forget(done_event_.get());
    if (daemon_pidfd_) loop_->forget(daemon_pidfd_.get());
    const bool spare_gone = other().end(0);
    std::error_code ignored;
    if (serving().end(1000) && spare_gone) std::filesystem::remove_all(folder_, ignored);
}

void mps_domain::start() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    generation_ = last_ = 1;
    serving().start();
    name("serving", generation_);
    up_ = true;
    const shm::process_id daemon = serving().daemon();
    watch_daemon(daemon, pidfd_of(daemon));
}

bool mps_domain::adopt() {
    generation_ = std::max(named("serving"), 1U);
    const u32 spare = named("spare");
    last_ = std::max(generation_, spare);
    const bool has_name = spare > generation_ && &part_of(spare) == &other();
    if (has_name && other().is_responding(late_ms)) {
        spare_daemon_ = other().daemon();
        spare_pidfd_ = pidfd_of(spare_daemon_);
        spare_server_pidfd_ = pidfd_of(other().server());
        spare_generation_ = spare;
        spare_ = spare_state::ready;
        if (!spare_is_alive()) spare_ = spare_state::none;
        spare_of_ = spare_ == spare_state::ready ? generation_ : 0;
    }
    if (has_name) ended_ = generation_ - 1;  // a spare is started after the previous generation has ended
    const shm::process_id daemon = serving().daemon();
    up_ = daemon.pid != 0 && serving().is_responding(late_ms);
    if (up_) watch_daemon(daemon, pidfd_of(daemon));
    return up_;
}

void mps_domain::end_nameless() {
    if (last_ > generation_) return;  // of the named spare, or of a process that was found
    enqueue({[part = &other()] {
                 return outcome{"", part->end(0)};
             },
             [this, of = generation_](const outcome& o) {
                 if (o.ended) ended_ = std::max(ended_, of - 1);
             },
             {}});
}

/// A supervisor that adopts the run reads this link. The link has its old or its new value, never a partial
/// one; if it cannot be written, the adopting supervisor finds a dead daemon and starts another one.
void mps_domain::name(const char* role, u32 generation) const {
    const std::string link = folder_ + "/" + role, aside = link + ".tmp";
    ::unlink(aside.c_str());
    if (::symlink(std::to_string(generation).c_str(), aside.c_str()) == 0)
        (void)::rename(aside.c_str(), link.c_str());
}

u32 mps_domain::named(const char* role) const {
    std::error_code none;
    const std::string target = std::filesystem::read_symlink(folder_ + "/" + role, none);
    return static_cast<u32>(std::strtoul(target.c_str(), nullptr, 10));
}

void mps_domain::watch_daemon(const shm::process_id& daemon, shm::unique_fd pidfd) {
    daemon_ = daemon;
    daemon_pidfd_ = std::move(pidfd);
    // without a pidfd the daemon is already dead, which is detected when the next client is refused
    if (!daemon_pidfd_) return;
    loop_->watch(daemon_pidfd_.get(), EPOLLIN, [this](u32) {
        loop_->forget(daemon_pidfd_.get());
        daemon_pidfd_.reset();
        up_ = false;
        if (on_exit_) on_exit_();
    });
}

void mps_domain::end_client(i32 pid, std::function<void(const std::string&)> then) {
    enqueue({[part = &serving(), pid] {
                 return outcome{part->terminate_client(pid), false};
             },
             [then = std::move(then)](const outcome& o) { then(o.why); },
             {}});
}

void mps_domain::make_spare() {
    if (spare_ == spare_state::ready && !spare_is_alive()) drop_spare();
    if (!up_ || spare_ != spare_state::none || spare_of_ == generation_ || now_ns() < spare_due_ns_) return;
    spare_ = spare_state::making;
    spare_of_ = generation_;
    // the next number of the other folder
    last_ += (last_ + 1 - generation_) % 2 == 1 ? 1 : 2;
    spare_generation_ = last_;
    enqueue({[part = &other()] {
                 outcome o{"", part->end(0)};  // ends the previous generation, if it has not ended yet
                 if (!o.ended) return outcome{"the old MPS server can't be ended", false};
                 try {
                     part->start();
                     mps_control::started_server made = part->start_server();
                     o.why = std::move(made.why);
                     o.server = made.server;
                     o.daemon = part->daemon();
                 } catch (const error& e) {
                     o.why = e.what();
                 }
                 if (!o.why.empty()) (void)part->end(0);
                 return o;
             },
             [this, of = generation_, number = spare_generation_](const outcome& o) {
                 if (o.ended) ended_ = std::max(ended_, of - 1);
                 if (spare_ != spare_state::making || spare_generation_ != number) return;  // not needed
                 if (!o.why.empty()) return spare_failed(o.why);
                 spare_ = spare_state::ready;
                 spare_delay_ns_ = 0;
                 spare_why_.clear();
                 spare_daemon_ = o.daemon;
                 spare_pidfd_ = pidfd_of(o.daemon);
                 spare_server_pidfd_ = pidfd_of(o.server);
                 name("spare", number);
             },
             {}});
}

void mps_domain::spare_failed(const std::string& why) {
    if (why != spare_why_) unreported_ = spare_why_ = why;
    drop_spare();
}

void mps_domain::drop_spare() {
    spare_ = spare_state::none;
    spare_of_ = 0;
    spare_delay_ns_ = std::clamp(2 * spare_delay_ns_, first_spare_delay_ns, longest_spare_delay_ns);
    spare_due_ns_ = now_ns() + spare_delay_ns_;
    ::unlink((folder_ + "/spare").c_str());
}

bool mps_domain::spare_is_alive() const noexcept {
    if (spare_ != spare_state::ready || !spare_pidfd_ || events_of(spare_pidfd_.get(), POLLIN) != 0)
        return false;
    // a server that cannot be watched counts as alive
    return !spare_server_pidfd_ || events_of(spare_server_pidfd_.get(), POLLIN) == 0;
}

// The server of a domain starts with the first client, so it is queried later.
void mps_domain::find_server() {
    if (!up_ || server_of_ == generation_ || now_ns() < server_due_ns_) return;
    server_of_ = generation_;
    enqueue({[part = &serving()] {
                 outcome o;
                 o.server = part->server();
                 return o;
             },
             [this, of = generation_](const outcome& o) {
                 if (of != generation_ || !up_) return;
                 server_pidfd_ = pidfd_of(o.server);
                 if (server_pidfd_) return;
                 server_of_ = 0;  // it has not started yet, or the daemon did not answer in time
                 server_due_ns_ = now_ns() + server_query_ns;
             },
             {}});
}

u64 mps_domain::server_dead_since_ns() {
    find_server();
    if (server_dead_ns_ == 0 && server_pidfd_ && events_of(server_pidfd_.get(), POLLIN) != 0)
        server_dead_ns_ = now_ns();
    return server_dead_ns_;
}

void mps_domain::renew(u32 spare, renewal then) {
    if (daemon_pidfd_) loop_->forget(daemon_pidfd_.get());
    daemon_pidfd_.reset();
    server_pidfd_.reset();
    server_dead_ns_ = 0;
    daemon_ = {};
    up_ = false;
    server_of_ = 0;
    const bool ready = spare != 0 && spare_ == spare_state::ready && spare == spare_generation_;
    spare_ = spare_state::none;
    if (ready) return serve_from_spare(std::move(then));
    {
        const std::lock_guard lock(mutex_);
        todo_.clear();  // drops pending calls of end_client(), because the clients of these calls end with
                        // the server
    }
    start_again(std::move(then));
}

void mps_domain::serve_from_spare(renewal then) {
    const u32 over = generation_;
    enqueue({[part = &serving()] {
                 return outcome{"", part->end(0)};
             },
             [this, over, gone = std::move(then.over)](const outcome& o) {
                 if (o.ended) ended_ = std::max(ended_, over);
                 gone();
             },
             {}});
    generation_ = spare_generation_;
    // names the serving daemon and removes the name of the spare one in one step
    if (::rename((folder_ + "/spare").c_str(), (folder_ + "/serving").c_str()) != 0)
        name("serving", generation_);
    up_ = true;
    server_pidfd_ = std::move(spare_server_pidfd_);
    server_of_ = server_pidfd_ ? generation_ : 0;
    // the pidfd that was opened when the daemon was alive: if it has died since, its death is noticed
    watch_daemon(spare_daemon_, std::move(spare_pidfd_));
    post({{}, [up = std::move(then.up)](const outcome&) { up(""); }, {}});
}

void mps_domain::start_again(renewal then) {
    const u32 next = ++last_;
    ::unlink((folder_ + "/spare").c_str());
    auto work = [part = &serving(), spare = &other(), to = &part_of(next)] {
        outcome o;
        const bool spare_gone = spare->end(0);  // starting, ending, or dead
        o.ended = part->end(0) && spare_gone;
        if (!o.ended) {
            o.why = "the old MPS server can't be ended";
            return o;
        }
        try {
            to->start();
            o.daemon = to->daemon();
        } catch (const error& e) {
            o.why = e.what();
        }
        return o;
    };
    enqueue({work,
             [this, next, then = std::move(then)](const outcome& o) {
                 if (o.ended) ended_ = std::max(ended_, next - 1);
                 if (o.why.empty()) {
                     generation_ = next;
                     name("serving", generation_);
                     up_ = true;
                     watch_daemon(o.daemon, pidfd_of(o.daemon));
                 }
                 then.over();
                 then.up(o.why);
             },
             {}});
}

/// Posts a completed task: its `then` is called from the event loop.
void mps_domain::post(task t) {
    {
        const std::lock_guard lock(mutex_);
        done_.push_back(std::move(t));
    }
    const u64 one = 1;
    [[maybe_unused]] const ssize_t written = ::write(done_event_.get(), &one, sizeof one);
}

void mps_domain::enqueue(task t) {
    {
        const std::lock_guard lock(mutex_);
        todo_.push_back(std::move(t));
    }
    wake_.notify_one();
}

void mps_domain::run_tasks() {
    // The event loop's thread handles the signals (signalfd); this thread must not receive any.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return stop_ || !todo_.empty(); });
        if (stop_) return;
        task t = std::move(todo_.front());
        todo_.pop_front();
        lock.unlock();
        try {
            t.result = t.work();
        } catch (const std::exception& e) {
            t.result.why = e.what();
        }
        post(std::move(t));
        lock.lock();
    }
}

void mps_domain::read_completions() {
    u64 count = 0;
    [[maybe_unused]] const ssize_t got = ::read(done_event_.get(), &count, sizeof count);
    for (;;) {
        task t;
        {
            const std::lock_guard lock(mutex_);
            if (done_.empty()) return;
            t = std::move(done_.front());
            done_.pop_front();
        }
        t.then(t.result);
    }
}

}  // namespace carousel::supervisor
