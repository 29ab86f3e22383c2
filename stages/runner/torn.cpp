// Torn frames: status words that changed under a lease. The device counts them in a word of the frame's, for
// all of its inputs; which of these it was is seen where the CPU reaches the ring.
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

// In front of the word that gives the inputs back: nobody fills their slots meanwhile, who may. Where a
// helper has given them back already, a word can differ for that: then a ring more is named.
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
