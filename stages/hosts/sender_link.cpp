#include "stages/hosts/sender_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/running_time.hpp"
#include "device/backend.hpp"
#include "device/cpu/pool.hpp"

namespace carousel::hosts {
namespace {
constexpr u64 log_first_ns = ns_per_s, log_every_ns = 5 * ns_per_s;

/// Memory that the stage allocates to compress frames: for each frame in flight slightly more than the length
/// of a frame.
u64 bytes_to_pack(const hello& own_hello) {
    return own_hello.packed == 0
               ? 0
               : most_durable_under_way * (own_hello.payload_bytes + own_hello.payload_bytes / 128 + 65536);
}
}  // namespace

sender_link::sender_link(const link_settings& where, hello own_hello, token_file token, u64 first_epoch,
                         std::string figures_path, const device::context* gpu)
    : where_(where),
      from_(local_address_towards(where.address)),
      gpu_(gpu),
      packed_bytes_(bytes_to_pack(own_hello)),
      figures_(std::move(figures_path), own_hello.run),
      side_(std::move(own_hello), std::move(token), first_epoch),
      log_due_ns_(now_ns() + log_first_ns),
      down_since_ns_(now_ns()),
      round_ns_(now_ns()),
      thread_([this] { run(); }) {}

sender_link::~sender_link() {
    stop_.store(true, std::memory_order_release);
    {
        const std::lock_guard lock(mutex_);
        if (transport_ != nullptr) transport_->wake();
    }
    thread_.join();
}

void sender_link::begin(u64 ring_sequence) {
    const std::lock_guard lock(mutex_);
    side_.begin(ring_sequence);
    if (transport_ != nullptr) transport_->wake();
}

void sender_link::offer(const frame_message& m, const std::byte* data) {
    const std::lock_guard lock(mutex_);
    data_[m.ring_sequence] = data;
    side_.offer(m);
    if (transport_ != nullptr) transport_->wake();
}

bool sender_link::wait_released(u64 ring_sequence, u64 ns) {
    std::unique_lock lock(mutex_);
    std::condition_variable mine;
    const auto at = waiting_.emplace(ring_sequence, &mine).first;
    mine.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return over(ring_sequence); });
    waiting_.erase(at);
    if (!broken_.empty()) throw config_error(broken_);
    if (side_.released(ring_sequence)) {
        side_.forget(ring_sequence);
        data_.erase(ring_sequence);
        return true;
    }
    if (!side_.failure().empty()) throw config_error(side_.failure());
    return false;
}

// Called under the lock, like the next function.
bool sender_link::over(u64 ring_sequence) const {
    return side_.released(ring_sequence) || !side_.failure().empty() || !broken_.empty();
}

// The link's thread iterates several times per frame. If it woke all waiters each time, this would take a
// fifteenth of the link's CPU time. So the thread wakes a waiter only when the waiter's condition is met,
// and only once.
void sender_link::wake_released_waiters() {
    for (const auto& [ring_sequence, waiter] : waiting_)
        if (over(ring_sequence)) waiter->notify_one();
    if (side_.end_known() || !side_.failure().empty() || releasing_ > 0) changed_.notify_all();
}

bool sender_link::end(u64 ring_sequence, u64 ns) {
    std::unique_lock lock(mutex_);
    side_.end(ring_sequence);
    if (transport_ != nullptr) transport_->wake();
    changed_.wait_for(lock, std::chrono::nanoseconds(ns),
                      [&] { return side_.end_known() || !side_.failure().empty(); });
    return side_.end_known();
}

std::string sender_link::failure() const {
    const std::lock_guard lock(mutex_);
    return side_.failure();
}

bool sender_link::takes_work() {
    const std::lock_guard lock(mutex_);
    return side_.up() && side_.is_drained();
}

u64 sender_link::next_number() {
    const std::lock_guard lock(mutex_);
    const u64 number = side_.first().value() + given_++;
    side_.begin(number);
    return number;
}

std::string sender_link::remote_run() const {
    const std::lock_guard lock(mutex_);
    return side_.remote_run();
}

std::string sender_link::numbering_restarted() const {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) throw config_error(broken_);
    if (!side_.failure().empty() && !side_.numbering_restarted()) throw config_error(side_.failure());
    return side_.failure();
}

u64 sender_link::away_ns() const {
    const std::lock_guard lock(mutex_);
    const u64 now = now_ns();
    return was_up_ || now < down_since_ns_ ? 0 : now - down_since_ns_;
}

bool sender_link::release(u64 ring_sequence, u64 ns) {
    std::unique_lock lock(mutex_);
    ++releasing_;
    const bool idle =
        changed_.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return side_.is_idle(ring_sequence); });
    --releasing_;
    if (!idle) return false;
    side_.forget(ring_sequence);
    data_.erase(ring_sequence);
    return true;
}

bool sender_link::end_here(u64 ns) {
    std::unique_lock lock(mutex_);
    side_.end_here();
    if (transport_ != nullptr) transport_->wake();
    return changed_.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return side_.end_known(); });
}

bool sender_link::alive() const noexcept {
    return now_ns() < round_ns_.load(std::memory_order_acquire) + ns_per_s;
}

void sender_link::run() {
    device::cpu::name_this_thread("link");
    try {
        // UCX uses the CUDA context of the calling thread when it copies from a GPU.
        if (gpu_ != nullptr) device::bind_thread(*gpu_);
        transport t(*this, {.address = from_,
                            .transports = where_.transports,
                            .first_port = static_cast<u16>(where_.port + 1),
                            .gpu_memory = gpu_ != nullptr,
                            .message_bytes = longest_message,
                            .allowance = usual_allowance + packed_bytes_});
        {
            const std::lock_guard lock(mutex_);
            transport_ = &t;
        }
        running_time running(longest_sleep_ns + dead_after_ns / 4);
        while (!stop_.load(std::memory_order_acquire)) {
            round_ns_.store(now_ns(), std::memory_order_release);
            t.progress_all();
            actions todo;
            u64 due = 0;
            u32 proven = 0;
            {
                const std::lock_guard lock(mutex_);
                const u64 woken = now_ns();
                side_.exclude(running.consume_gap(woken), woken);
                todo = side_.step(now_ns());
                due = side_.next_due();
                proven = side_.proven();
                log_changes();
                figures_.update(side_.up(), side_.clock(now_ns()), now_ns());
                wake_released_waiters();
            }
            t.trust(proven);
            carry_out(t, todo);
            const u64 now = now_ns();
            if (todo.empty()) t.wait(std::min(due > now ? due - now : 0, longest_sleep_ns));
        }
        const std::lock_guard lock(mutex_);
        transport_ = nullptr;
        figures_.update(side_.up(), side_.clock(now_ns()), now_ns(), true);
    } catch (const error& e) {
        const std::lock_guard lock(mutex_);
        transport_ = nullptr;
        broken_ = e.what();
        wake_released_waiters();
    }
}

void sender_link::carry_out(transport& t, actions& todo) {
    for (action& a : todo) {
        switch (a.kind) {
            case action::what::connect:
                t.connect(a.connection, where_.address, where_.port);
                break;
            case action::what::send:
                t.send(a.connection, a.bytes);
                break;
            case action::what::send_frame: {
                const std::byte* data = nullptr;
                u64 bytes = 0;
                if (const auto m = decode(a.bytes)) {
                    const auto& f = std::get<frame_message>(*m);
                    bytes = f.packed_bytes;
                    const std::lock_guard lock(mutex_);
                    data = data_[a.ring_sequence];
                    figures_.crossed(f.bytes, bytes);
                }
                t.send_frame(a.connection, a.bytes, data, bytes, a.ring_sequence);
                break;
            }
            case action::what::close:
                t.close(a.connection);
                break;
        }
    }
}

// Called under the lock. If the link goes up or down, this is logged at once; while it is down, this is
// logged every few seconds.
void sender_link::log_changes() {
    const u64 now = now_ns();
    if (side_.end_known()) return;
    if (side_.up() != was_up_) {
        was_up_ = side_.up();
        if (was_up_)
            log::info("the link to {} port {} is up after {:.3f} s", where_.address, where_.port,
                      static_cast<double>(now - down_since_ns_) / 1e9);
        else
            log::warning("the link to {} port {} is down: {}. Frames are kept until it is back",
                         where_.address, where_.port, side_.disconnect_reason());
        if (!was_up_) down_since_ns_ = now, log_due_ns_ = now + log_first_ns;
    } else if (!was_up_ && now >= log_due_ns_ && !side_.disconnect_reason().empty()) {
        log_due_ns_ = now + log_every_ns;
        log::warning("no link to {} port {} for {:.0f} s: {}. Retrying indefinitely", where_.address,
                     where_.port, static_cast<double>(now - down_since_ns_) / 1e9, side_.disconnect_reason());
    }
}

void sender_link::closed(u32 connection, const std::string& why) {
    const std::lock_guard lock(mutex_);
    side_.closed(connection, why, now_ns());
}

void sender_link::message_received(u32 connection, std::span<const std::byte> bytes) {
    const auto m = decode(bytes);
    if (!m) return;
    const std::lock_guard lock(mutex_);
    side_.received(connection, *m, now_ns());
}

void sender_link::frame_sent(u32 connection, u64 ring_sequence) {
    const std::lock_guard lock(mutex_);
    side_.frame_sent(connection, ring_sequence);
}

}  // namespace carousel::hosts
