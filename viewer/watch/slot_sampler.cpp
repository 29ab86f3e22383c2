#include "viewer/watch/slot_sampler.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/words.hpp"

namespace carousel::viewer {
namespace {

using carousel::session::slot_content;
using carousel::session::slot_copy_result;

// In a fast ring a frame stays in its slot for less than a millisecond, so several attempts are made. The
// first two limits also bound the time for which the destructor waits.
constexpr u64 supervisor_patience_ns = 300 * ns_per_ms, slot_patience_ns = 300 * ns_per_ms;
constexpr std::chrono::microseconds slot_poll_every{500};

}  // namespace

/// A ring whose memory is mapped in this process.
struct slot_sampler::opened_ring {
    std::string name;
    std::unique_ptr<device::context> context;
    std::unique_ptr<device::queue> queue;
    std::unique_ptr<carousel::session::slot_copier> copier;
    std::unique_ptr<device::mapping> room;  ///< host memory for one picture
    u64 room_bytes = 0;
};

std::string describe_slot(const carousel::session::slot_stamp& s, u32 slot, u32 reused) {
    const std::string name = fmt::format("slot {}", slot);
    if (reused > 0 && s.content == slot_content::frame)
        return fmt::format(
            "{} was reused during each of {} copies: frames leave it faster than they can be copied", name,
            reused);
    switch (s.content) {
        case slot_content::frame:
            return fmt::format("{} holds frame {}, but its status word does not match: the frame is damaged",
                               name, s.facts.ring_sequence);
        case slot_content::tombstone:
            return fmt::format("{} holds the tombstone of frame {}: it has no picture", name,
                               s.facts.ring_sequence);
        case slot_content::free:
            if (ring::slot_word::of(s.word).generation == 0)
                return fmt::format("{} is free: no frame has been in it", name);
            return fmt::format("{} is free: frame {} was the last one in it", name, s.facts.ring_sequence);
        case slot_content::filling:
            return fmt::format("{} is being filled: its frame is complete after the commit", name);
        case slot_content::quarantined:
            return fmt::format("{} is quarantined: its writer died and may still be writing", name);
        case slot_content::damaged:
            break;
    }
    return fmt::format("{}: its word or its frame's header is damaged", name);
}

slot_sampler::slot_sampler(std::shared_ptr<const run::mapped_block> block, std::string socket_path)
    : block_(std::move(block)), socket_path_(std::move(socket_path)), thread_([this] { loop(); }) {}

slot_sampler::~slot_sampler() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void slot_sampler::request(slot_choice of) {
    {
        const std::lock_guard lock(mutex_);
        wanted_ = std::move(of);
        ready_.reset();
    }
    wake_.notify_all();
}

std::optional<slot_sample> slot_sampler::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ready_, std::nullopt);
}

bool slot_sampler::is_obsolete() {
    const std::lock_guard lock(mutex_);
    return stop_ || wanted_;
}

void slot_sampler::loop() {
    for (;;) {
        slot_choice of;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return stop_ || wanted_; });
            if (stop_) return;
            of = *std::exchange(wanted_, std::nullopt);
        }
        slot_sample found;
        try {
            found = sample(of);
        } catch (const std::exception& e) {
            ring_.reset();
            found.text = e.what();
        }
        found.of = std::move(of);
        const std::lock_guard lock(mutex_);
        if (!wanted_) ready_ = std::move(found);
    }
}

// The kind of the ring's memory determines the device: host memory is read by the CPU, even if a GPU fills
// it.
void slot_sampler::open(const std::string& ring) {
    if (ring_ && ring_->name == ring) return;
    ring_.reset();
    const shm::control_block& c = block_->observed->block();
    auto opened = std::make_unique<opened_ring>();
    opened->name = ring;
    run::mapped_ring from = run::map_ring(c, socket_path_, ring, supervisor_patience_ns);
    device::device_id id;
    if (from.memory.kind != device::memory_kind::memfd) {
        id.kind = device::device_kind::cuda;
        id.uuid = from.memory.uuid.empty() ? from.device.uuid : from.memory.uuid;
    }
    opened->context = device::open(id, 1);
    opened->queue = opened->context->make_queue();
    opened->copier = std::make_unique<carousel::session::slot_copier>(c, std::move(from), *opened->context);
    ring_ = std::move(opened);
}

slot_sample slot_sampler::sample(const slot_choice& of) {
    open(of.ring);
    const run::mapped_ring& from = ring_->copier->ring();
    const std::optional<plane_picture> picture = picture_of(from.format, of.plane);
    slot_sample out;
    out.about.stage = from.stage;
    if (!picture) {
        out.text = fmt::format(
            "no picture: {} writes {}, which has no plane{} with rows and columns of 1 to 4 "
            "values",
            from.stage, from.format.describe(), of.plane.empty() ? "" : fmt::format(" \"{}\"", of.plane));
        return out;
    }
    if (!ring_->room || ring_->room_bytes < picture->bytes) {
        ring_->room = ring_->context->allocate_host(picture->bytes);
        ring_->room_bytes = picture->bytes;
    }
    const u64 until = now_ns() + slot_patience_ns;
    carousel::session::slot_stamp s;
    u32 discarded = 0;
    slot_copy_result result = slot_copy_result::no_frame;
    for (;;) {
        s = ring_->copier->stamp(of.slot);
        result = ring_->copier->copy(*ring_->queue, of.slot, s, ring_->room->data(), picture->offset,
                                     picture->bytes);
        if (result == slot_copy_result::whole || s.content == slot_content::tombstone || is_obsolete()) break;
        if (result == slot_copy_result::reused) ++discarded;
        if (now_ns() >= until) break;
        if (result != slot_copy_result::reused) std::this_thread::sleep_for(slot_poll_every);
    }
    if (result != slot_copy_result::whole) {
        out.text = describe_slot(s, of.slot, result == slot_copy_result::reused ? discarded : 0);
        return out;
    }
    out.whole = true;
    out.about.plane = picture->name;
    out.about.type = picture->kind == picture_kind::nv12 ? "NV12" : ring::name_of(picture->type);
    out.about.width = picture->width;
    out.about.height = picture->height;
    out.about.ring_sequence = s.facts.ring_sequence;
    out.about.carried = carried_by(s.facts, from.format, now_ns());
    out.rgba.resize(std::size_t{picture->width} * picture->height * 4);
    out.about.scale = to_rgba(*picture, ring_->room->host_data(), out.rgba.data(), of.style,
                              picture->used_of(from.format, s.facts.used));
    out.text = fmt::format("frame {} in slot {}", s.facts.ring_sequence, of.slot);
    if (of.ring_sequence != 0 && of.ring_sequence != s.facts.ring_sequence)
        out.text += fmt::format("; frame {} had left the slot", of.ring_sequence);
    return out;
}

}  // namespace carousel::viewer
