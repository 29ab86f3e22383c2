#include "os/event_loop.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/process.hpp"

namespace carousel::supervisor {

event_loop::event_loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_) throw shm_error("making an epoll instance: " + errno_text(errno));
}

void event_loop::watch(int fd, u32 events, handler fn) {
    auto w = std::make_shared<watched>(watched{++generation_, std::move(fn)});
    epoll_event e{};
    e.events = events;
    e.data.u64 = static_cast<u64>(w->generation) << 32U | static_cast<u32>(fd);
    const bool known = watched_.count(fd) != 0;
    if (epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e) != 0)
        throw shm_error("watching a file descriptor: " + errno_text(errno));
    watched_[fd] = std::move(w);
}

void event_loop::forget(int fd) noexcept {
    if (watched_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void event_loop::run_once(int timeout_ms) {
    epoll_event ready[64];
    const int n = epoll_wait(epoll_.get(), ready, 64, timeout_ms);
    for (int k = 0; k < n; ++k) {
        const int fd = static_cast<int>(ready[k].data.u64 & 0xFFFFFFFFU);
        const auto found = watched_.find(fd);
        // A handler that was called earlier in this loop may have closed the fd, and another file may have
        // got its number.
        if (found == watched_.end() || found->second->generation != ready[k].data.u64 >> 32U) continue;
        const std::shared_ptr<watched> keep = found->second;
        keep->fn(ready[k].events);
    }
}

interrupts::interrupts() {
    const sigset_t wanted = not_ignored({SIGINT, SIGTERM});
    pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    fd_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

interrupts::~interrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool interrupts::sleep(u64 ns) {
    if (events_of(fd_.get(), POLLIN, now_ns() + ns) == 0) return false;
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) > 0;
}

}  // namespace carousel::supervisor
