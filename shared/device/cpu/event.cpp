#include "device/cpu/event.hpp"

#include "core/errors.hpp"
#include "device/cpu/queue.hpp"

namespace carousel::device::cpu {

u64 fence::begin() noexcept {
    const std::lock_guard lock(mutex_);
    return ++begun_;
}

void fence::complete(u64 number) noexcept {
    {
        const std::lock_guard lock(mutex_);
        completed_ = number;
    }
    changed_.notify_all();
}

void fence::fail(u64 number, std::shared_ptr<const failure> why) noexcept {
    {
        const std::lock_guard lock(mutex_);
        completed_ = number;
        failure_ = std::move(why);
    }
    changed_.notify_all();
}

void fence::throw_if_failed() const {
    if (failure_) throw error(failure_->code, failure_->message);
}

bool fence::done() {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    return completed_ == begun_;
}

void fence::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completed_ == begun_ || failure_; });
    throw_if_failed();
}

void event::record(device::queue& on, u64 tag) {
    CAROUSEL_ASSERT(on.kind() == device_kind::cpu);
    static_cast<queue&>(on).record(fence_, shared_, tag);
}

}  // namespace carousel::device::cpu
