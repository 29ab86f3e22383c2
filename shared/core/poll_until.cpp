#include "core/poll_until.hpp"

#include <cerrno>
#include <ctime>

#include "core/clock.hpp"

namespace carousel {

int poll_until(pollfd* fds, std::size_t count, u64 deadline_ns) noexcept {
    for (;;) {
        const u64 now = now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
        const timespec t{static_cast<time_t>(left / ns_per_s), static_cast<long>(left % ns_per_s)};
        const int ready = ::ppoll(fds, count, &t, nullptr);
        if (ready >= 0 || errno != EINTR) return ready;
    }
}

short events_of(int fd, short wanted, u64 deadline_ns) noexcept {
    pollfd p{fd, wanted, 0};
    return poll_until(&p, 1, deadline_ns) > 0 ? p.revents : short{0};
}

}  // namespace carousel
