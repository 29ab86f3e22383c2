#include "stages/hosts/durable_watch.hpp"

#include <unistd.h>

#include <chrono>

#include "core/errors.hpp"
#include "core/log.hpp"

namespace carousel::hosts {
namespace {
constexpr auto rest = std::chrono::milliseconds(5), rest_unwanted = std::chrono::milliseconds(100);
}

durable_watch::~durable_watch() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    ends_.notify_all();
    thread_.join();
}

void durable_watch::poll() {
    try {
        const u64 below = set_.below();
        if (below <= reported_) return;
        if (set_.sync) ::sync();
        set_.is_durable(below);
        reported_ = below;
        failed_ = false;
    } catch (const error& e) {  // the sender keeps its frames in the meantime
        if (!failed_) log::warning("the progress of the sinks can't be read: {}. Retrying", e.what());
        failed_ = true;
    }
}

void durable_watch::run() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
        lock.unlock();
        const bool wanted = set_.wanted();
        if (wanted) poll();
        lock.lock();
        ends_.wait_for(lock, wanted ? rest : rest_unwanted, [&] { return ending_; });
    }
}

}  // namespace carousel::hosts
