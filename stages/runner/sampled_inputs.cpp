#include "stages/runner/sampled_inputs.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "frame/metadata.hpp"

namespace carousel::stages {
namespace {

/// The clock of process() runs during the copy, so that a copy that hangs on a hung GPU has the deadline of
/// process().
class copy_clock {
public:
    explicit copy_clock(shm::incarnation& entry) : entry_(&entry) { store(now_ns()); }
    ~copy_clock() { store(0); }
    copy_clock(const copy_clock&) = delete;
    copy_clock& operator=(const copy_clock&) = delete;

private:
    void store(u64 ns) {
        const shm::block_open open;
        entry_->processing_since_ns.store(ns, std::memory_order_release);
    }
    shm::incarnation* entry_;
};

}  // namespace

sampled_input::sampled_input(runtime& r, u32 index)
    : runtime_(&r),
      index_(index),
      queue_(r.context().make_queue()),
      reader_(r.control(), r.sampled_input(index).index, r.context()) {}

// Each incarnation joins the group as a new member. All places may be taken (also by viewers), or the
// predecessor's place may not be free yet; in both cases the stage continues without the input and tries
// again later.
bool sampled_input::join() {
    const bool joined = reader_.joined() || reader_.join(runtime_->incarnation().entry);
    if (!joined && !full_logged_)
        log::warning(
            "all {} places for latest readers of the ring {} are taken: this stage receives no frames of "
            "that ring",
            shm::max_latest, runtime_->attached().sampled[index_].stage);
    full_logged_ = !joined;
    return joined;
}

// A copy is overwritten only if neither a frame in progress nor the frame that begins next reads it. Frames
// that have completed keep their copies until their lane is used again, so this thread needs no lock for
// this check.
sampled_copy& sampled_input::spare(std::span<const std::unique_ptr<frame_in_work>> frames) {
    const auto is_in_use = [&](const sampled_copy* c) {
        return c == current_ || std::any_of(frames.begin(), frames.end(),
                                            [&](const auto& f) { return f->sampled_input[index_] == c; });
    };
    const auto at =
        std::find_if(copies_.begin(), copies_.end(), [&](const auto& c) { return !is_in_use(c.get()); });
    if (at != copies_.end()) return **at;
    copies_.push_back(std::make_unique<sampled_copy>());
    copies_.back()->memory = runtime_->context().allocate(runtime_->sampled_input(index_).slot_bytes);
    return *copies_.back();
}

void sampled_input::take(std::span<const std::unique_ptr<frame_in_work>> frames) {
    if (!join() || !reader_.acquire()) return;
    sampled_copy* to = nullptr;
    if (!reader_.is_tombstone()) {
        const copy_clock clock(runtime_->entry());
        to = &spare(frames);
        copy(*to);
    }
    const session::read_result result = reader_.release();
    if (result == session::read_result::whole) current_ = to;
    if (result != session::read_result::torn) return;
    log::error("frame {} of the sampled input {} is torn: its status word changed under a lease",
               reader_.slot().ring_sequence, runtime_->attached().sampled[index_].stage);
    const shm::block_open open;
    runtime_->stage_block().counters.torn.fetch_add(1, std::memory_order_relaxed);
}

// Returns only when the copy is complete, because the caller releases the lease after this call.
void sampled_input::copy(sampled_copy& to) {
    const mapped_link& ring = runtime_->sampled_input(index_);
    const frame_format& format = runtime_->sampled_input_format(index_);
    std::byte* const from = ring.slot(reader_.slot().index);
    ring::copy_facts(reader_.header(), runtime_->control().parameters.bytes, to.facts);
    to.facts.ring_sequence = reader_.slot().ring_sequence;
    reader_.read(*queue_, from, [&] {
        if (to.facts.used_in_part() == nullptr) return queue_->copy(to.memory->data(), from, ring.slot_bytes);
        for (std::size_t k = 0; k < format.planes.size(); ++k) {
            const plane in_use = ring::used_plane(format, k, to.facts.used);
            queue_->copy(to.memory->data() + in_use.offset, from + in_use.offset, in_use.bytes());
        }
    });
}

sampled_inputs::sampled_inputs(runtime& r) {
    for (u32 k = 0; k < r.sampled_inputs(); ++k) all_.push_back(std::make_unique<sampled_input>(r, k));
}

void sampled_inputs::assign(frame_in_work& f, ring::worker& w) const noexcept {
    for (u32 k = 0; k < all_.size(); ++k) {
        const sampled_copy* const copy = all_[k]->current();
        f.sampled_input[k] = copy;
        w.note_sampled_frame(k, copy != nullptr ? copy->facts.ring_sequence : shm::no_sampled_frame);
    }
}

void sampled_inputs::wait_for_copies(frame_in_work& f, std::span<const std::unique_ptr<frame_in_work>> frames,
                                     u64 patience_ns) {
    constexpr auto pause = std::chrono::milliseconds(2);
    for (const u64 until = now_ns() + patience_ns; now_ns() < until; std::this_thread::sleep_for(pause)) {
        bool all = true;
        for (u32 k = 0; k < all_.size(); ++k) {
            if (f.sampled_input[k] != nullptr) continue;
            all_[k]->take(frames);
            f.sampled_input[k] = all_[k]->current();
            all = all && f.sampled_input[k] != nullptr;
        }
        if (all) return;
    }
}

}  // namespace carousel::stages
