#include "viewer/watch/tap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/used_extents.hpp"
#include "shm/doorbell.hpp"

namespace carousel::viewer {

tap::tap(shm::control_block& c, const std::string& socket_path, const std::string& stage, interop_maker make,
         picture_way way) {
    run::lent_ring ring = run::borrow_ring(c, socket_path, stage);
    stage_ = ring.stage;
    take_picture_format(ring);
    open_device(ring, make, way);
    newest_ = std::make_unique<run::newest_frame>(c, std::move(ring), *context_);
    thread_ = std::thread([this] { loop(); });
}

tap::~tap() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void tap::take_picture_format(const run::lent_ring& ring) {
    const std::optional<plane_picture> shown = picture_of(ring.format);
    if (!shown)
        throw config_error(fmt::format(
            "{} puts out {}: no plane of it has rows and columns of one value a pixel, or of 8 bit colours",
            stage_, ring.format.describe()));
    shown_ = *shown;
    format_ = ring.format;
    height_ = shown_.height;
    width_ = shown_.width;
    offset_ = shown_.plane.offset;
}

// The ring's memory decides: host memory is read by the CPU also where a GPU fills it.
void tap::open_device(const run::lent_ring& ring, interop_maker make, picture_way way) {
    const bool gpu = ring.memory.kind != device::memory_kind::memfd;
    device::device_id id;
    if (gpu) {
        // A viewer in the MPS domain would share the stages' fate, and they its.
        ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent-outside-mps", 1);
        id.kind = device::device_kind::cuda;
        id.uuid = ring.memory.uuid.empty() ? ring.device.uuid : ring.memory.uuid;
    }
    context_ = device::open(id, 1);
    queue_ = context_->make_queue();
    const u64 bytes = u64{width_} * height_ * 4;
    std::string why_not = "there is no GL";
    if (way == picture_way::copy) why_not = "asked for with --path copy";
    if (!gpu) why_not = "the ring lies in host memory";
    if (!shown_.is_rgba())
        why_not = fmt::format("the plane {} is made a picture by the CPU", shown_.plane.name);
    if (gpu && shown_.is_rgba() && make != nullptr && way != picture_way::copy)
        interop_ = make(id, bytes, why_not);
    if (way == picture_way::interop && !interop_)
        throw config_error(fmt::format("no CUDA-GL interop (--path interop): {}", why_not));
    for (auto* to : {&front_, &ready_, &back_})
        *to = interop_ ? context_->allocate(bytes) : context_->allocate_host(bytes);
    if (!shown_.is_rgba()) raw_ = context_->allocate_host(shown_.plane.bytes());
    if (interop_) window_queue_ = context_->make_queue();
    path_ = !gpu       ? "plain upload (host memory)"
            : interop_ ? "CUDA-GL interop"
                       : fmt::format("copy through host memory ({})", why_not);
}

// Of a picture that stays on the GPU all is shown: only its table says what is in use.
picture_part tap::used_part(const shm::used_extents& used) const {
    std::size_t k = 0;
    while (k < format_.planes.size() && format_.planes[k].name != shown_.plane.name) ++k;
    if (!ring::is_used_in_part(used, k)) return {};
    return {static_cast<u32>(ring::used_extent(shown_.plane, k, 1, used)),
            static_cast<u32>(ring::used_extent(shown_.plane, k, 0, used))};
}

// Copies the newest frame into back_. True: it is whole and lies in ready_.
bool tap::take_one() {
    run::newest_frame::about what;
    const bool taken =
        newest_->take(*queue_, (raw_ ? raw_ : back_)->data(), offset_, shown_.plane.bytes(), what);
    const picture_part used = taken ? used_part(what.used) : picture_part();
    if (taken && raw_) (void)to_rgba(shown_, raw_->host_data(), back_->host_data(), used);
    if (taken && !raw_ && !interop_ && used.width != ~0U)
        blacken_unused(width_, height_, used, back_->host_data());
    const std::lock_guard lock(mutex_);
    losses_ = newest_->losses();
    if (!taken) return false;
    std::swap(back_, ready_);
    ready_sequence_ = what.sequence;
    ready_carried_ = carried_by(what, format_, now_ns());
    ready_ms_ = static_cast<f64>(what.took_ns) / 1e6;
    fresh_ = true;
    wanted_ = false;
    return true;
}

void tap::loop() {
    shm::doorbell_word& bell = newest_->bell();
    try {
        for (;;) {
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [this] { return stop_ || wanted_; });
                if (stop_) return;
            }
            const u32 seen = shm::ticket(bell);
            if (!take_one()) shm::wait(bell, seen, 20 * ns_per_ms);
        }
    } catch (const std::exception& e) {
        const std::lock_guard lock(mutex_);
        failure_ = e.what();
    }
}

bool tap::poll() {
    {
        const std::lock_guard lock(mutex_);
        if (!failure_.empty()) throw device_error(failure_);
        if (!fresh_) return false;
        std::swap(front_, ready_);
        sequence_ = ready_sequence_;
        copy_ms_ = ready_ms_;
        carried_ = std::move(ready_carried_);
        fresh_ = false;
        wanted_ = true;
    }
    wake_.notify_all();
    return true;
}

void tap::refresh() {
    {
        const std::lock_guard lock(mutex_);
        fresh_ = false;
        wanted_ = true;
    }
    wake_.notify_all();
}

discarded tap::losses() {
    const std::lock_guard lock(mutex_);
    return losses_;
}

void tap::show(unsigned texture) {
    if (!interop_) return;
    interop_->copy(*window_queue_, front_->data());
    interop_->show(texture, width_, height_);
}

}  // namespace carousel::viewer
