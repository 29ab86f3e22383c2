#include "os/interrupts.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "core/process.hpp"

namespace carousel::supervisor {

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
