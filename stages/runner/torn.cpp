// Torn frames: status words that changed under a lease. The device counts them in one word per frame, for all
// of its inputs; if the CPU can access the ring, the affected input is determined.
#include <algorithm>
#include <array>
#include <cstring>

#include "stages/runner/stage_runner.hpp"

namespace carousel::stages {

void stage_runner::map_torn_words() {
    const std::size_t bytes = std::max<std::size_t>(1, frames_.size()) * sizeof(u32);
    torn_ = runtime_->context().allocate_host(bytes);
    std::memset(torn_->host_data(), 0, bytes);
    auto* at = reinterpret_cast<u32*>(torn_->data());
    for (const auto& f : frames_) f->torn = at++;
}

// Runs before the job word that releases the inputs, so no process with a right to their slots fills them
// meanwhile. If a helper has released them already, a word may differ because of that; then one ring too many
// is named.
void stage_runner::log_torn_reads(frame_in_work& f) {
    const auto word = reinterpret_cast<std::byte*>(f.torn) - torn_->data();
    const u32 seen = *reinterpret_cast<volatile u32*>(torn_->host_data() + word), words = seen - f.torn_seen;
    if (words == 0) return;
    f.torn_seen = seen;
    worker_.stage().counters.torn.fetch_add(words, std::memory_order_relaxed);
    std::array<torn_input, shm::max_inputs> of{};
    const std::size_t count = std::min<std::size_t>(f.job.inputs, of.size());
    for (u32 i = 0; i < count; ++i) {
        const mapped_link& in = runtime_->input(i);
        const u32 slot = f.job.input[i].index;
        const shm::link_block& ring = runtime_->control().link[in.index];
        const device::status_word expected{f.job.ring_sequence, worker_.input(i).header(slot).epoch,
                                           static_cast<u32>(device::status_state::ready)};
        of[i] = {ring.name, runtime_->control().stage[std::min(ring.stage, shm::max_stages - 1)].name,
                 differs_now(*in.memory, in.status(slot), expected)};
    }
    torn_lines_.report(f.job.ring_sequence, words, std::span(of).first(count));
}

}  // namespace carousel::stages
