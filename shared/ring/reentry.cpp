#include "ring/reentry.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "ring/header_check.hpp"
#include "ring/parameter_box.hpp"
#include "ring/topology.hpp"

namespace carousel::ring {
namespace {

u32 count_of(u32 value, u32 most) noexcept { return std::min(value, most); }

/// Calls fn(link, group) for each blocking input of a stage.
template <typename F>
void for_each_input(const shm::stage_block& s, F&& fn) {
    for (u32 i = 0; i < count_of(s.inputs, shm::max_inputs); ++i)
        if (s.input_link[i] < shm::max_links && s.input_group[i] < shm::max_blocking)
            fn(s.input_link[i], s.input_group[i]);
}

template <typename F>
void for_each_output(const shm::stage_block& s, F&& fn) {
    for (u32 o = 0; o < count_of(s.outputs, shm::max_outputs); ++o)
        if (s.output_link[o] < shm::max_links) fn(s.output_link[o]);
}

/// The number of the frame that the slot proves; no_number: it proves none.
u64 proved_number(const shm::control_block& old, const shm::control_block& made, u32 link, u32 slot,
                  const status_reader& status) {
    const slot_state at = slot_word::of(load(old.link[link].slot[slot])).state;
#ifndef CAROUSEL_BUG_FILLED_ENTERS
    if (at != slot_state::ready) return shm::no_number;
#else
    if (at != slot_state::ready && at != slot_state::fill) return shm::no_number;  // seeded bug
#endif
    const shm::frame_header& h = old.frames[link].header[slot];
    const u64 number = h.ring_sequence.load(std::memory_order_relaxed);
    if (number == shm::no_number) return number;
#ifndef CAROUSEL_BUG_UNSEALED_ENTERS
    if (!is_sealed(h, made.parameters.bytes)) return shm::no_number;
#endif  // seeded bug: a header that has changed
    if (h.maker_seat >= count_of(made.seats, shm::max_seats) ||
        made.seat[h.maker_seat].stage != made.link[link].stage)
        return shm::no_number;
#ifndef CAROUSEL_BUG_STATUS_IGNORED
    const std::optional<device::status_word> found = status(link, slot);
    const bool agrees = found && found->ring_sequence == number && found->epoch == h.epoch &&
                        found->state == static_cast<u32>(device::status_state::ready);
    if (!agrees) return shm::no_number;
#endif  // seeded bug: memory that is not the frame's
    return number;
}

using proved_slots = std::map<u64, u32>;  ///< number -> slot

proved_slots find_proved(const shm::control_block& old, const shm::control_block& made, u32 link,
                         const status_reader& status) {
    proved_slots all;
    std::vector<u64> twice;
    for (u32 slot = 0; slot < count_of(made.link[link].slots, shm::max_slots); ++slot) {
        const u64 number = proved_number(old, made, link, slot, status);
        if (number != shm::no_number && !all.try_emplace(number, slot).second) twice.push_back(number);
    }
    for (const u64 number : twice) all.erase(number);
    return all;
}

/// The position of the slowest reader of a ring; empty if the ring has no blocking reader.
std::optional<u64> slowest_reader(const shm::control_block& made, u32 link,
                                  const std::vector<u64>& done_below) {
    std::optional<u64> slowest;
    for (u32 k = 0; k < done_below.size(); ++k)
        for_each_input(made.stage[k], [&](u32 input, u32) {
#ifndef CAROUSEL_BUG_FASTEST_READER
            if (input == link) slowest = std::min(slowest.value_or(done_below[k]), done_below[k]);
#else
            if (input == link) slowest = std::max(slowest.value_or(0), done_below[k]);  // seeded bug
#endif
        });
    return slowest;
}

}  // namespace

u64 kept_frames::count() const noexcept {
    u64 sum = 0;
    for (const std::vector<u32>& of : slots) sum += of.size();
    return sum;
}

// The positions only fall, and none falls below `first`, so the loop ends. Where all positions are `first`
// nothing enters, which is always a valid result.
kept_frames find_kept_frames(const shm::control_block& old, const shm::control_block& made, u64 first,
                             u64 end, const status_reader& status) {
    const u32 links = count_of(made.links, shm::max_links), stages = count_of(made.stages, shm::max_stages);
    std::vector<proved_slots> proved;
    for (u32 k = 0; k < links; ++k) proved.push_back(find_proved(old, made, k, status));
    kept_frames kept;
    std::vector<u64>& done = kept.done_below;
    for (u32 k = 0; k < stages; ++k) {
        bool read = false;
        for_each_output(made.stage[k], [&](u32 link) { read = read || made.link[link].blocking != 0; });
        done.push_back(read ? std::max(first, end) : first);
    }
    const auto lower = [](u64& at, u64 to) { return to < at ? (at = to, true) : false; };
    for (bool changed = true; changed;) {
        changed = false;
        for (u32 k = stages; k-- > 0;) {
            for_each_output(made.stage[k], [&](u32 link) {
                const std::optional<u64> tail = slowest_reader(made, link, done);
                if (!tail) return;
                u64 reach = *tail;
                while (reach < *tail + made.link[link].window && proved[link].contains(reach)) ++reach;
                changed |= lower(done[k], reach);
            });
            for_each_input(made.stage[k], [&](u32 link, u32) {
                changed |= lower(done[k], done[count_of(made.link[link].stage, stages - 1)]);
            });
        }
    }
    for (u32 k = 0; k < links; ++k) {
        const u64 made_below = done[count_of(made.link[k].stage, stages - 1)];
        kept.tail.push_back(slowest_reader(made, k, done).value_or(made_below));
        std::vector<u32>& slots = kept.slots.emplace_back();
        for (u64 n = kept.tail[k]; n < made_below; ++n) slots.push_back(proved[k].at(n));
    }
    return kept;
}

void enter_frames(shm::control_block& fresh, const shm::control_block& old, const kept_frames& kept) {
    for (u32 k = 0; k < kept.tail.size(); ++k) {
        shm::link_block& l = fresh.link[k];
        const u32 job = fresh.seat[fresh.stage[l.stage].first_seat].first_job;
        // READY names the job that made the frame: a version that no job of this block has ever had
        const u64 version = job_word::of(load(fresh.job[job])).version - 1;
        l.tail.store(kept.tail[k], std::memory_order_relaxed);
        l.committed.store(kept.tail[k] + kept.slots[k].size() - fresh.first_ring_sequence,
                          std::memory_order_relaxed);
        for (u64 n = 0; n < kept.slots[k].size(); ++n) {
            const u32 slot = kept.slots[k][n];
            const u32 generation = slot_word::of(load(l.slot[slot])).generation;
            std::memcpy(static_cast<void*>(&fresh.frames[k].header[slot]),
                        static_cast<const void*>(&old.frames[k].header[slot]), sizeof(shm::frame_header));
            l.committed_ns[slot].store(load(old.link[k].committed_ns[slot]), std::memory_order_relaxed);
            l.slot[slot].store(
                slot_word{generation, job, static_cast<u32>(version & version_mask), slot_state::ready}
                    .pack(),
                std::memory_order_relaxed);
            for (u32 s = 0; s < kept.done_below.size(); ++s)
                for_each_input(fresh.stage[s], [&](u32 input, u32 group) {
                    if (input != k || kept.tail[k] + n >= kept.done_below[s]) return;
#ifndef CAROUSEL_BUG_READ_AGAIN
                    l.group[slot][group].store(lease_word{generation, 0, 0, 0, lease_state::done}.pack(),
                                               std::memory_order_relaxed);
#endif  // seeded bug: a reader gets a frame that it has passed on already
                });
        }
    }
#ifndef CAROUSEL_BUG_NUMBERS_AGAIN
    // P1 for the numbers that are done: a change applies from the horizon on, and these frames have their
    // sets.
    parameter_state parameters = parameter_state::of(load(fresh.parameters.state));
    for (u32 k = 0; k < count_of(fresh.sources, shm::max_sources); ++k)
        parameters.horizon = std::max(parameters.horizon, kept.done_below[fresh.source[k].stage]);
    fresh.parameters.state.store(parameters.pack(), std::memory_order_relaxed);
    for (u32 k = 0; k < count_of(fresh.sources, shm::max_sources); ++k)
        begin_numbers(fresh, k, kept.done_below[fresh.source[k].stage]);
#endif  // seeded bug: a source makes a frame that is in its ring
}

u32 epoch_above(const shm::control_block& old, const shm::control_block& made) noexcept {
    u32 highest = 0;
    for (u32 k = 0; k < count_of(made.seats, shm::max_seats); ++k)
        highest = std::max(highest, seat_word::of(load(old.seat[k].current)).epoch);
    for (u32 k = 0; k < count_of(made.links, shm::max_links); ++k)
        for (u32 slot = 0; slot < count_of(made.link[k].slots, shm::max_slots); ++slot)
            if (const shm::frame_header& h = old.frames[k].header[slot];
                slot_word::of(load(old.link[k].slot[slot])).state == slot_state::ready &&
                is_sealed(h, made.parameters.bytes))
                highest = std::max(highest, static_cast<u32>(h.epoch & epoch_mask));
    return highest;
}

}  // namespace carousel::ring
