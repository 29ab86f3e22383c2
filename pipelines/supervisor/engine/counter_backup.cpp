#include "supervisor/engine/counter_backup.hpp"

#include <algorithm>
#include <cstring>

#include "ring/words.hpp"

namespace carousel::supervisor {
namespace {

/// Upper limit of a counter's growth between two samples: 137 s in ns, and far more frames than occur.
constexpr u64 longest_step = u64{1} << 37U;

void update(shm::stage_counters& kept, const shm::stage_counters& now) {
    static_assert(sizeof(shm::stage_counters) % sizeof(shm::word) == 0);
    const auto* from = reinterpret_cast<const shm::word*>(&now);
    auto* to = reinterpret_cast<shm::word*>(&kept);
    for (std::size_t k = 0; k < sizeof kept / sizeof(shm::word); ++k) {
        const u64 value = from[k].load(std::memory_order_relaxed),
                  before = to[k].load(std::memory_order_relaxed);
        if (value >= before && value - before < longest_step) to[k].store(value, std::memory_order_relaxed);
    }
}

void copy(shm::stage_counters& to, const shm::stage_counters& from) {
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
}

}  // namespace

void counter_backup::sample(const shm::control_block& c, u32 stages) {
    const bool first = !kept_;
    if (first) kept_ = std::make_unique<shm::stage_counters[]>(shm::max_stages);
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k) {
        if (first)
            copy(kept_[k], c.stage[k].counters);
        else
            update(kept_[k], c.stage[k].counters);
    }
}

void counter_backup::accept(const shm::control_block& c, u32 stages) noexcept {
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k)
        torn_[k] = ring::load(c.stage[k].counters.torn);
}

void counter_backup::restore(shm::control_block& fresh, const shm::control_block& old, u32 stages,
                             bool untrusted) {
    sample(old, stages);
    for (u32 k = 0; k < std::min(stages, shm::max_stages); ++k) copy(fresh.stage[k].counters, kept_[k]);
    for (u32 k = 0; untrusted && k < std::min(stages, shm::max_stages); ++k)
        fresh.stage[k].counters.torn.store(torn_[k], std::memory_order_relaxed);
}

}  // namespace carousel::supervisor
