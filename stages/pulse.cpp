#include "stages/pulse.hpp"

#include <poll.h>

#include <cstdlib>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "stages/last_words.hpp"

namespace carousel::stages {
namespace {
constexpr int beat_ms = 50;
constexpr u64 default_grace_s = 5;

u64 grace_ns() {
    const char* text = std::getenv("CAROUSEL_KEEPER_GRACE_S");
    return (text != nullptr ? std::strtoull(text, nullptr, 10) : default_grace_s) * ns_per_s;
}
}  // namespace

pulse::pulse(runtime& r) : runtime_(&r), thread_([this] { beat(); }) {}

pulse::~pulse() {
    stop_.store(true, std::memory_order_release);
    thread_.join();
}

void pulse::beat() {
    u64 gone_since = 0;
    while (!stop_.load(std::memory_order_acquire)) {
        runtime_->entry().heartbeat_ns.store(now_ns(), std::memory_order_release);
        runtime_->entry().cpu_ns.store(process_cpu_ns(), std::memory_order_relaxed);
        pollfd p{runtime_->socket(), POLLIN | POLLRDHUP, 0};
        const int ready = gone_since == 0 ? ::poll(&p, 1, beat_ms) : ::poll(nullptr, 0, beat_ms);
        if (ready <= 0) {
            if (gone_since != 0 && now_ns() - gone_since > grace_ns()) {
                log::error("the supervisor has been gone for {} s and nobody took the run over: leaving", grace_ns() / ns_per_s);
                die(exit_code::supervisor_gone);
            }
            continue;
        }
        shm::message m;
        if ((p.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0 || shm::receive_message(runtime_->socket(), m) == shm::receive_status::closed) {
            gone_since = now_ns();
            log::warning("the supervisor is gone: this stage goes on for {} s", grace_ns() / ns_per_s);
        }
    }
}

}  // namespace carousel::stages
