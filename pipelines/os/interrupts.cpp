#include "os/interrupts.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/clock.hpp"

namespace carousel::supervisor {

interrupts::interrupts() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int s : {SIGINT, SIGTERM}) sigaddset(&wanted, s);
    pthread_sigmask(SIG_BLOCK, &wanted, &before_);
    fd_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

interrupts::~interrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool interrupts::sleep(u64 ns) {
    pollfd p{fd_.get(), POLLIN, 0};
    const timespec t{static_cast<time_t>(ns / ns_per_s), static_cast<long>(ns % ns_per_s)};
    if (::ppoll(&p, 1, &t, nullptr) <= 0) return false;
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) > 0;
}

}  // namespace carousel::supervisor
