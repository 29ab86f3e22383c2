#include "session/status_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/clock.hpp"
#include "core/log.hpp"

namespace carousel::session {

bool differs_now(const device::mapping& of, const device::status_word* at,
                 const device::status_word& expected) noexcept {
    if (of.host_data() == nullptr) return false;
    const std::byte* word = of.host_data() + (reinterpret_cast<const std::byte*>(at) - of.data());
    const auto* now = reinterpret_cast<const volatile device::status_word*>(word);
    return now->ring_sequence != expected.ring_sequence || now->epoch != expected.epoch ||
           now->state != expected.state;
}

void torn_lines::report(u64 ring_sequence, u32 words, std::span<const torn_input> inputs) {
    unlogged_ += words;
    const u64 now = now_ns();
    if (now < next_ns_) return;
    next_ns_ = now + ns_per_s;
    const std::string count =
        unlogged_ > words ? fmt::format(" ({} such words since the previous line)", unlogged_) : "";
    unlogged_ = 0;
    const bool known = std::any_of(inputs.begin(), inputs.end(), [](const auto& i) { return i.differs; });
    std::string all;
    for (const torn_input& i : inputs) {
        const std::string name = fmt::format("the ring {}, which {} fills", i.ring, i.maker);
        if (known && i.differs)
            log::error("frame {} is torn: its status word in {}, changed under its lease{}", ring_sequence,
                       name, count);
        all += (all.empty() ? "" : ", or in ") + name;
    }
    if (!known)
        log::error("frame {} is torn: its status word in {}, changed under its lease{}", ring_sequence, all,
                   count);
}

status_words::status_words(shm::control_block& c, ring::worker& w, device::context& on,
                           std::span<const mapped_link> inputs, std::span<const mapped_link> outputs,
                           std::size_t frames)
    : control_(&c),
      worker_(&w),
      inputs_(inputs),
      outputs_(outputs),
      torn_(on.allocate_host(std::max<std::size_t>(1, frames) * sizeof(u32))),
      seen_(std::max<std::size_t>(1, frames)) {
    std::memset(torn_->host_data(), 0, seen_.size() * sizeof(u32));
}

device::status_step status_words::step(const ring::job& j, u32 frame, device::status_state state) const {
    static_assert(device::status_step::most_checks >= shm::max_inputs + 1 &&
                  device::status_step::most >= shm::max_outputs);
    device::status_step step;
    step.torn = reinterpret_cast<u32*>(torn_->data()) + frame;
    for (u32 i = 0; i < j.inputs && !j.is_tombstone(); ++i) {
        const shm::frame_header& h = worker_->input(i).header(j.input[i].index);
        step.expect(inputs_[i].status(j.input[i].index),
                    {j.ring_sequence, h.epoch, static_cast<u32>(device::status_state::ready)});
    }
    // A state that is overwritten while the next one is computed from it is found as a torn input is.
    if (j.previous)
        step.expect(outputs_.back().status(j.previous.index),
                    {j.ring_sequence - 1, j.previous_epoch, static_cast<u32>(device::status_state::ready)});
    step.value = {j.ring_sequence, worker_->epoch(), static_cast<u32>(state)};
    for (std::size_t k = 0; k < outputs_.size(); ++k) step.store_at(outputs_[k].status(j.output[k].index));
    return step;
}

void status_words::report(const ring::job& j, u32 frame) {
    const u32 now = reinterpret_cast<const volatile u32*>(torn_->host_data())[frame];
    const u32 words = now - seen_[frame];
    if (words == 0) return;
    seen_[frame] = now;
    worker_->stage().counters.torn.fetch_add(words, std::memory_order_relaxed);
    std::array<torn_input, shm::max_inputs + 1> of{};
    std::size_t count = 0;
    const auto add = [&](const mapped_link& in, u32 slot, u64 ring_sequence, u32 epoch) {
        const shm::link_block& ring = control_->link[in.index];
        const device::status_word expected{ring_sequence, epoch,
                                           static_cast<u32>(device::status_state::ready)};
        of[count++] = {ring.name, control_->stage[std::min(ring.stage, shm::max_stages - 1)].name,
                       differs_now(*in.memory, in.status(slot), expected)};
    };
    for (u32 i = 0; i < std::min<std::size_t>(j.inputs, inputs_.size()) && !j.is_tombstone(); ++i)
        add(inputs_[i], j.input[i].index, j.ring_sequence, worker_->input(i).header(j.input[i].index).epoch);
    if (j.previous) add(outputs_.back(), j.previous.index, j.ring_sequence - 1, j.previous_epoch);
    lines_.report(j.ring_sequence, words, std::span(of).first(count));
}

}  // namespace carousel::session
