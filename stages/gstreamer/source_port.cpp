#include "stages/gstreamer/source_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"

namespace carousel::gstreamer {
namespace {

/// Time in ns after which a frame that elements downstream still hold is copied and committed: far below each
/// sensible frame_timeout_ms.
constexpr u64 longest_lease_ns = 250 * ns_per_ms;
constexpr auto lease_poll = std::chrono::milliseconds(25);
/// Longest single wait in ns for an element that has the slot itself mapped.
constexpr u64 mapped_patience_ns = 50 * ns_per_ms;
constexpr u64 mapped_warning_ns = ns_per_s;

/// Returns nothing for an entry of another kind, which any stage may set; returns 0 for a time before 0.
std::optional<u64> pts_of(const frame_metadata& metadata) {
    try {
        const std::optional<i64> ns = metadata.get<i64>("pts_ns");
        return ns ? std::optional<u64>(static_cast<u64>(std::max<i64>(*ns, 0))) : std::nullopt;
    } catch (const config_error&) {
        return std::nullopt;
    }
}

open_run open_for(const source_options& options) {
    open_options how;
    how.device = options.every ? "" : "cpu";
    how.wait_s = options.wait_s;
    return carousel::open(options.pipeline, how);
}

}  // namespace

source_port::source_port(const source_options& options) : run_(open_for(options)) {
    fps_ = run_->fps();
    if (!options.every) {
        latest_.emplace(run_->latest(options.ring));
        layout_ = layout_of(latest_->format());
        return;
    }
    reader_.emplace(run_->reader(run_->reading_port(options.ring)));
    layout_ = layout_of(reader_->format());
    lease_thread_ = std::thread([this] { end_old_leases(); });
}

// A frame that was handed over is committed if no element uses the slot itself any more. Otherwise it goes to
// the port's next program, and the port stays open until the last element has unmapped the slot.
source_port::~source_port() {
    {
        const std::lock_guard alone(mutex_);
        stopping_ = true;
    }
    stop_.notify_all();
    if (lease_thread_.joinable()) lease_thread_.join();
    try {
        if (leased_ != nullptr && is_handed_over_.load(std::memory_order_acquire))
            (void)end_lease(mapped_warning_ns);
        if (leased_ == nullptr || !last_.memory || last_.memory->release(mapped_warning_ns)) return;
        last_.memory->keep(std::make_shared<std::pair<std::optional<open_run>, std::optional<reader_port>>>(
            std::move(run_), std::move(reader_)));
    } catch (const std::exception&) {  // the run gives the frame to the port's next program
    }
}

source_port::result source_port::next(picture& out, f64 timeout_s) {
    const std::lock_guard alone(mutex_);
    return latest_ ? next_of_newest(out, timeout_s) : next_of_all(out, timeout_s);
}

source_port::result source_port::next_of_newest(picture& out, f64 timeout_s) {
    latest_frame* f = latest_->next(timeout_s);
    if (f == nullptr) return latest_->ended() ? result::ended : result::nothing;
    const input_payload& planes = f->planes();
    out.layout = layout_of(f->format(), planes.used());
    out.memory =
        std::make_shared<frame_memory>(planes.slot() + out.layout.first, out.layout.bytes, f->memory());
    out.frame_number = f->frame_number();
    out.capture_ns = f->meta().live_capture_ns();
    out.born_ns = f->born_ns();
    out.time_s = f->time_s();
    out.follows_gap = next_ != 0 && f->ring_sequence() != next_;
    if (next_ != 0 && f->ring_sequence() > next_)
        dropped_.fetch_add(f->ring_sequence() - next_, std::memory_order_relaxed);
    next_ = f->ring_sequence() + 1;
    return result::picture;
}

source_port::result source_port::next_of_all(picture& out, f64 timeout_s) {
    if (leased_ != nullptr && !is_handed_over_.load(std::memory_order_acquire)) {  // a flush has discarded it
        out = last_;
        return result::picture;
    }
    if (leased_ != nullptr && !end_lease(mapped_patience_ns)) return result::nothing;
    reader_frame* f = reader_->next(timeout_s);
    if (f == nullptr) return reader_->ended() ? result::ended : result::nothing;
    if (f->ring_sequence() < next_) {  // given to this program again, because its commit had been refused
        commit(*f);
        return result::nothing;
    }
    const input_payload planes = f->input();
    picture p;
    p.layout = layout_of(reader_->format(), planes.used());
    const std::byte* data = planes.slot() + p.layout.first;
    if (f->where() == device_kind::cpu) {
        p.memory = std::make_shared<frame_memory>(data, p.layout.bytes);
    } else {
        std::vector<std::byte> copy(p.layout.bytes);
        f->queue().copy(copy.data(), data, copy.size());
        f->queue().drain();
        p.memory = std::make_shared<frame_memory>(std::move(copy));
    }
    p.frame_number = f->frame_number();
    p.capture_ns = f->capture_ns();
    p.born_ns = f->born_ns();
    p.time_s = f->time_s();
    p.pts_ns = pts_of(f->metadata());
    leased_ = f;
    leased_since_ns_ = now_ns();
    is_handed_over_.store(false, std::memory_order_release);
    out = last_ = std::move(p);
    return result::picture;
}

// Returns false if the frame is still leased, because an element has its slot mapped.
bool source_port::end_lease(u64 wait_ns) {
    constexpr long own = 1;  // further references belong to GStreamer's memory objects
    if (last_.memory.use_count() > own && !last_.memory->release(wait_ns)) {
        if (now_ns() - leased_since_ns_ > mapped_warning_ns && warning_.empty())
            warning_ = fmt::format(
                "frame {} is mapped by an element downstream for more than 1 s: the run waits for it, and "
                "gives the "
                "frame to another program after frame_timeout_ms; insert `queue` or `videoconvert` before "
                "that element",
                last_.frame_number);
        return false;
    }
    next_ = leased_->ring_sequence() + 1;
    commit(*leased_);
    leased_ = nullptr;
    last_ = {};
    return true;
}

void source_port::commit(reader_frame& frame) {
    try {
        frame.commit();
    } catch (const port_revoked& e) {
        leased_ = nullptr;
        last_ = {};
        warning_ = e.what();
    }
}

void source_port::end_old_leases() {
    std::unique_lock alone(mutex_);
    while (!stop_.wait_for(alone, lease_poll, [this] { return stopping_; })) {
        if (leased_ == nullptr || !is_handed_over_.load(std::memory_order_acquire) ||
            now_ns() - leased_since_ns_ < longest_lease_ns)
            continue;
        try {
            (void)end_lease(0);
        } catch (const error& e) {  // for example a full disk: tried again, here or for the next frame
            warning_ = e.what();
        }
    }
}

std::string source_port::take_warning() {
    const std::lock_guard alone(mutex_);
    return std::exchange(warning_, {});
}

}  // namespace carousel::gstreamer
