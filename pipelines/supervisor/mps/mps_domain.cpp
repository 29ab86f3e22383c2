#include "supervisor/mps/mps_domain.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/errors.hpp"
#include "shm/marked_process.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {

mps_domain::mps_domain(const std::string& run_directory, event_loop& loop)
    : control_(shm::mps_folder(run_directory)),
      loop_(&loop),
      done_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!done_event_) throw shm_error("making an eventfd: " + errno_text(errno));
    loop_->watch(done_event_.get(), EPOLLIN, [this](u32) { hear(); });
    thread_ = std::thread([this] { work_off(); });
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
    (void)control_.end(1000);
}

void mps_domain::start() {
    control_.start();
    generation_ = 1;
    up_ = true;
    watch_daemon();
}

bool mps_domain::adopt() {
    generation_ = 1;
    up_ = control_.daemon() != 0 && control_.answers();
    if (up_) watch_daemon();
    return up_;
}

void mps_domain::watch_daemon() {
    daemon_ = control_.daemon();
    daemon_pidfd_.reset(shm::open_pidfd({daemon_, shm::start_time_of(daemon_)}));
    if (!daemon_pidfd_) return;  // dead already: the next client that is refused shows it
    loop_->watch(daemon_pidfd_.get(), EPOLLIN, [this](u32) {
        loop_->forget(daemon_pidfd_.get());
        daemon_pidfd_.reset();
        up_ = false;
        if (told_) told_();
    });
}

void mps_domain::end_client(i32 pid, std::function<void(const std::string&)> then) {
    enqueue({[this, pid] {
                 return outcome{control_.terminate_client(pid), false};
             },
             [then = std::move(then)](const outcome& o) { then(o.why); },
             {}});
}

void mps_domain::renew(std::function<void(const std::string&)> then) {
    if (daemon_pidfd_) loop_->forget(daemon_pidfd_.get());
    daemon_pidfd_.reset();
    daemon_ = 0;
    up_ = false;
    const u32 over = generation_;
    {
        const std::lock_guard lock(mutex_);
        todo_.clear();  // clients that were to be ended one by one go with their server
    }
    auto work = [this] {
        outcome o;
        o.ended = control_.end(0);
        if (!o.ended) {
            o.why = "the old MPS server can't be ended";
            return o;
        }
        try {
            control_.start();
        } catch (const error& e) {
            o.why = e.what();
        }
        return o;
    };
    enqueue({work,
             [this, over, then = std::move(then)](const outcome& o) {
                 if (o.ended) ended_ = over;
                 if (o.why.empty()) {
                     generation_ = over + 1;
                     up_ = true;
                     watch_daemon();
                 }
                 then(o.why);
             },
             {}});
}

void mps_domain::enqueue(task t) {
    {
        const std::lock_guard lock(mutex_);
        todo_.push_back(std::move(t));
    }
    wake_.notify_one();
}

void mps_domain::work_off() {
    // The loop's thread takes the signals (signalfd); none may end up here.
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
        lock.lock();
        done_.push_back(std::move(t));
        const u64 one = 1;
        [[maybe_unused]] const ssize_t written = ::write(done_event_.get(), &one, sizeof one);
    }
}

void mps_domain::hear() {
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
