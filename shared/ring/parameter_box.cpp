#include "ring/parameter_box.hpp"

#include <algorithm>
#include <cstring>

#include "core/crash_point.hpp"
#include "shm/block_guard.hpp"

namespace carousel::ring {
namespace {

u32 index_of(u32 sets) noexcept { return sets % shm::max_parameter_sets; }

void fill(shm::parameter_set& s, std::span<const std::byte> values, u64 from, u64 number) noexcept {
    s.from = from;
    s.number = number;
    std::memset(s.value, 0, sizeof s.value);
    if (!values.empty()) std::memcpy(s.value, values.data(), std::min(values.size(), sizeof s.value));
}

}  // namespace

void initialise_parameters(shm::parameter_box& box, std::span<const std::byte> values, u64 first,
                           u64 number) noexcept {
    box.bytes = static_cast<u32>(std::min<std::size_t>(values.size(), shm::max_parameter_bytes));
    for (shm::parameter_set& s : box.set) fill(s, values, first, number);
    box.state.store(parameter_state{0, first}.pack(), std::memory_order_release);
}

const shm::parameter_set* parameters_for(shm::parameter_box& box, u64 ring_sequence) noexcept {
    if (!await_repair(box.state)) return nullptr;
    u64 raw = load(box.state);
    for (parameter_state s = parameter_state::of(raw); s.horizon <= ring_sequence;
         raw = load(box.state), s = parameter_state::of(raw)) {
        if (!intact(raw)) return nullptr;  // damaged again
#ifdef CAROUSEL_BUG_HORIZON_STAYS
        break;  // seeded bug: a set is given to a number without a CAS that records the number
#else
        const shm::block_open open;
        if (cas(box.state, raw, parameter_state{s.sets, ring_sequence + 1}.pack()))
            crash_here(crash_point::parameters_chosen);
#endif
    }
    // The horizon is now above this number, and sets that are published from now on apply only from the
    // horizon or a later frame on.
    raw = load(box.state);
    if (!intact(raw)) return nullptr;
    const u32 newest = parameter_state::of(raw).sets;
    const shm::parameter_set* found = &box.set[index_of(newest)];
    for (u32 k = 0; k < readable_sets; ++k) {
        found = &box.set[index_of(newest - k)];
        if (found->from <= ring_sequence) break;
    }
    return found;
}

std::optional<u64> publish(shm::parameter_box& box, std::span<const std::byte> values, u64 oldest) noexcept {
    for (;;) {
        const u64 raw = load(box.state);
        if (!intact(raw))
            return std::nullopt;  // a change applies from the horizon on, and a damaged state has no valid
                                  // horizon
        const parameter_state s = parameter_state::of(raw);
        // After this change `readable_sets` sets can be read. The oldest of these sets must still apply to
        // the oldest frame. A place that no change has filled yet contains the first set.
        if (box.set[index_of(s.sets + 1 - (readable_sets - 1))].from > oldest) return std::nullopt;
        fill(box.set[index_of(s.sets + 1)], values, s.horizon, box.set[index_of(s.sets)].number + 1);
        crash_here(crash_point::parameters_filled);
        if (cas(box.state, raw, parameter_state{s.sets + 1, s.horizon}.pack())) return s.horizon;
    }
}

std::optional<parameter_state> repaired_state(u64 damaged, u32 sets, u64 lowest, u64 highest) noexcept {
    std::optional<parameter_state> found;
    for (unsigned bit = 0; bit < 64; ++bit) {
        const parameter_state s = parameter_state::of(damaged ^ u64{1} << bit);
        if (s.sets != sets || s.horizon < lowest || s.horizon > highest) continue;
        if (!found || s.horizon > found->horizon) found = s;
    }
    return found;
}

const shm::parameter_set& newest_parameters(const shm::parameter_box& box) noexcept {
    return box.set[index_of(parameter_state::of(load(box.state)).sets)];
}

}  // namespace carousel::ring
