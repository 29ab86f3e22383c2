#include "ring/reentry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "ring/header_check.hpp"
#include "ring/link.hpp"
#include "ring/parameter_box.hpp"
#include "ring/topology.hpp"
#include "shm/sink.hpp"

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

bool has_state(const shm::stage_block& s) noexcept {
    return s.outputs > 0 && (s.flags & shm::stage_flag::state) != 0;
}

/// A stage's ring of states is its last output.
u32 ring_of_states(const shm::stage_block& s) noexcept {
    const u32 link = s.output_link[count_of(s.outputs, shm::max_outputs) - 1];
    return link < shm::max_links ? link : shm::max_links - 1;
}

bool is_ring_of_states(const shm::control_block& made, u32 link) noexcept {
    const shm::stage_block& s = made.stage[count_of(made.link[link].stage, shm::max_stages - 1)];
    return has_state(s) && ring_of_states(s) == link;
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
    // No process reads the memory of a tombstone's slot, unless it is the copy of a state.
    if (h.meta.is_tombstone() && !is_ring_of_states(made, link)) return number;
#ifndef CAROUSEL_BUG_STATUS_IGNORED
    const std::optional<device::status_word> found = status(link, slot);
    const bool agrees = found && found->ring_sequence == number && found->epoch == h.epoch &&
                        found->state == static_cast<u32>(device::status_state::ready);
    if (!agrees) return shm::no_number;
#endif  // seeded bug: memory that is not the frame's
    return number;
}

/// True if a process may still write to the slot.
bool may_be_in_use(const shm::word& slot) noexcept {
    const slot_state at = slot_word::of(load(slot)).state;
    return at != slot_state::free && at != slot_state::ready;
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

/// What is known of a run that is rebuilt, and the positions that follow from it.
class reentry {
public:
    reentry(const shm::control_block& old, const shm::control_block& made, const reentry_limits& limits,
            const status_reader& status)
        : old_(&old),
          made_(&made),
          limits_(&limits),
          links_(count_of(made.links, shm::max_links)),
          stages_(count_of(made.stages, shm::max_stages)) {
        for (u32 k = 0; k < links_; ++k) proved_.push_back(find_proved(old, made, k, status));
        find_made();
    }

    // The positions only fall, and none falls below `first`, so the loop ends. Where all positions are
    // `first` nothing enters, which is always a valid result.
    kept_frames find() {
        kept_frames kept;
        done_.clear();
        for (u32 k = 0; k < stages_; ++k) {
            bool read = false;
            for_each_output(made_->stage[k], [&](u32 link) { read = read || is_read(link); });
            const u64 most = std::max(limits_->first, limits_->end);
            done_.push_back(shm::is_sink(made_->stage[k]) ? delivered_below(k)
                            : read                        ? most
                                                          : made_below_[k]);
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (u32 k = stages_; k-- > 0;) {
                for_each_output(made_->stage[k], [&](u32 link) {
                    if (is_read(link)) changed |= lower(k, reach(k, link));
                });
                for_each_input(made_->stage[k], [&](u32 link, u32) {
                    if (!is_absent(k)) changed |= lower(k, done_[maker_of(link)]);
                });
                if (has_state(made_->stage[k]))
                    changed |= lower(k, state_below(k, std::min(done_[k], made_below_[k])));
            }
        }
        for (u32 k = 0; k < stages_; ++k)
            if (has_state(made_->stage[k]) && !can_begin(k, done_[k])) kept.without_state = k;
        kept.done_below = done_;
        kept.unknown = unknown_;
        for (u32 k = 0; k < links_; ++k) {
            const u64 made_below = done_[maker_of(k)];
            kept.tail.push_back(std::min(slowest_reader(k).value_or(made_below), made_below));
            std::vector<u32>& slots = kept.slots.emplace_back();
            for (u64 n = kept.tail[k]; n < made_below; ++n) slots.push_back(slot_of(k, n));
            const bool below = is_ring_of_states(*made_, k) && kept.tail[k] > limits_->origin;
            kept.state.push_back(below ? slot_of(k, kept.tail[k] - 1) : shm::none);
        }
        return kept;
    }

private:
    [[nodiscard]] u32 maker_of(u32 link) const noexcept {
        return count_of(made_->link[link].stage, stages_ - 1);
    }
    [[nodiscard]] bool is_made_once(u32 stage) const noexcept {
        return stage < limits_->made_once.size() && limits_->made_once[stage];
    }
    [[nodiscard]] u64 delivered_below(u32 stage) const noexcept {
        return stage < limits_->delivered_below.size() ? limits_->delivered_below[stage] : limits_->first;
    }
    [[nodiscard]] u64 recorded_below(u32 stage) const noexcept {
        return stage < limits_->recorded_below.size()
                   ? std::max(limits_->first, limits_->recorded_below[stage])
                   : delivered_below(stage);
    }
    [[nodiscard]] bool is_absent(u32 stage) const noexcept {
        return shm::is_sink(made_->stage[stage]) && delivered_below(stage) == shm::no_number;
    }
    [[nodiscard]] u32 slot_of(u32 link, u64 number) const {
        const auto at = proved_[link].find(number);
        return at == proved_[link].end() ? shm::none : at->second;
    }
    /// True if a stage with a state can begin this frame: the state before it is in memory.
    [[nodiscard]] bool can_begin(u32 stage, u64 number) const {
#ifdef CAROUSEL_BUG_STATE_ASSUMED
        return number > 0 || stage < stages_;  // seeded bug: a frame begins without the state before it
#endif
        return number == limits_->origin || proved_[ring_of_states(made_->stage[stage])].contains(number - 1);
    }
    /// The last frame up to `at` that a stage with a state can begin; `first`: there is none.
    [[nodiscard]] u64 state_below(u32 stage, u64 at) const {
        while (at > limits_->first && !can_begin(stage, at)) --at;
        return at;
    }
    bool lower(u32 stage, u64 to) noexcept {
        if (to >= done_[stage]) return false;
        done_[stage] = to;
        return true;
    }
    template <typename F>
    void for_each_reader(u32 link, F&& fn) const {
        for (u32 k = 0; k < stages_; ++k)
            for_each_input(made_->stage[k], [&](u32 input, u32) {
                if (input == link && !is_absent(k)) fn(k);
            });
    }
    [[nodiscard]] bool is_read(u32 link) const {
        bool read = false;
        for_each_reader(link, [&](u32) { read = true; });
        return read;
    }
    /// The position of the slowest reader of a ring; empty if no ring waits for a reader.
    [[nodiscard]] std::optional<u64> slowest_reader(u32 link) const {
        std::optional<u64> slowest;
        for_each_reader(link, [&](u32 k) {
#ifndef CAROUSEL_BUG_FASTEST_READER
            slowest = std::min(slowest.value_or(done_[k]), done_[k]);
#else
            slowest = std::max(slowest.value_or(0), done_[k]);  // seeded bug
#endif
        });
        return slowest;
    }

    /// Finds, for each stage, the number below which it has made every frame, as far as memory and the sinks'
    /// accounts show it.
    void find_made() {
        for (u32 k = 0; k < stages_; ++k) {
            const bool sink = shm::is_sink(made_->stage[k]) && !is_absent(k);
            made_below_.push_back(sink ? recorded_below(k) : limits_->first);
        }
        unknown_.assign(links_, false);
        for (bool changed = true; changed;) {
            changed = false;
            for (u32 k = 0; k < links_; ++k) {
                u64& at = made_below_[maker_of(k)];
                u64 to = at;
                if (!proved_[k].empty()) to = std::max(to, proved_[k].rbegin()->first + 1);
                for_each_reader(k, [&](u32 reader) { to = std::max(to, made_below_[reader]); });
                to = std::min(to, std::max(limits_->first, limits_->end));
                changed = changed || to > at;
                at = std::max(at, to);
            }
        }
        for (u32 k = 0; k < stages_; ++k)
            if (is_made_once(k)) count_unproved(k);
    }

    // A READY slot without proof, in the source's ring or one downstream of it, is a frame that the source
    // has made. Its number is trusted only where it follows those that are known.
    void count_unproved(u32 source) {
        u64& below = made_below_[source];
        std::map<u64, u32> numbers;  // number -> link
        for (u32 link = 0; link < links_; ++link) {
            if (!is_upstream(source, maker_of(link))) continue;
            for (u32 slot = 0; slot < count_of(made_->link[link].slots, shm::max_slots); ++slot) {
                const slot_state at = slot_word::of(load(old_->link[link].slot[slot])).state;
                if (at != slot_state::ready && at != slot_state::damaged) continue;
                const u64 number =
                    old_->frames[link].header[slot].ring_sequence.load(std::memory_order_relaxed);
                if (slot_of(link, number) == slot) continue;
                if (at == slot_state::ready && number != shm::no_number) numbers.emplace(number, link);
                const bool near = number != shm::no_number && number < below + shm::max_slots;
                if (at == slot_state::damaged || !near) unknown_[link] = true;
            }
        }
        while (numbers.contains(below) && below < limits_->end) ++below;
        // A number that does not follow may be wrong itself.
        for (const auto& [number, link] : numbers)
            if (number >= below && number < limits_->end) unknown_[link] = true;
    }
    [[nodiscard]] bool is_upstream(u32 source, u32 stage) const {
        bool is = source == stage;
        for_each_input(made_->stage[stage],
                       [&](u32 link, u32) { is = is || is_upstream(source, maker_of(link)); });
        return is;
    }

    /// True if the frame is in the ring and stays in its window if the tail falls to the frame.
    [[nodiscard]] bool is_held(u32 link, u64 number) const {
        return proved_[link].contains(number) &&
               made_below_[maker_of(link)] <= number + made_->link[link].window;
    }
    [[nodiscard]] bool can_make(u32 stage, u64 number) const {
        if (!has_state(made_->stage[stage])) return has_inputs_for(stage, number);
        for (u64 at = number; has_inputs_for(stage, at); --at) {
            if (can_begin(stage, at)) return true;
            if (at <= limits_->first) return false;
        }
        return false;
    }
    [[nodiscard]] bool has_inputs_for(u32 stage, u64 number) const {
        bool has = made_->stage[stage].inputs > 0 || !is_made_once(stage);
        for_each_input(made_->stage[stage], [&](u32 link, u32) {
            has = has && (is_held(link, number) || can_make(maker_of(link), number));
        });
        return has;
    }
    /// True if this stage, or one downstream of it, has a state after this frame and none from which it could
    /// make the frame again.
    [[nodiscard]] bool is_fixed(u32 stage, u64 number) const {
        for (u32 k = 0; k < stages_; ++k) {
            if (!has_state(made_->stage[k]) || !is_upstream(stage, k)) continue;
            if (number < state_below(k, made_below_[k]) && !can_begin(k, state_below(k, number))) return true;
        }
        return false;
    }
    /// The number below which this stage, or one upstream of it, has made every frame and may be unable to
    /// make it again: a program, or a stage with a state.
    [[nodiscard]] u64 made_once_below(u32 stage) const {
        const bool once = is_made_once(stage) || has_state(made_->stage[stage]);
        u64 below = once ? made_below_[stage] : 0;
        for_each_input(made_->stage[stage],
                       [&](u32 link, u32) { below = std::max(below, made_once_below(maker_of(link))); });
        return below;
    }
    [[nodiscard]] bool is_lost(u32 stage, u32 link, u64 number) const {
#ifndef CAROUSEL_BUG_LOST_AGAIN
        if (proved_[link].contains(number)) return false;
        return is_fixed(stage, number) || (number < made_once_below(stage) && !can_make(stage, number));
#else
        return number < made_once_below(stage) && can_make(stage, number) &&
               link > links_;  // seeded bug: a number that a program has used is used again
#endif
    }
    /// The first frame from the slowest reader's position on that the ring lacks.
    [[nodiscard]] u64 reach(u32 stage, u32 link) const {
        const u64 tail = *slowest_reader(link);
        u64 at = tail;
        while (at < tail + made_->link[link].window &&
               (proved_[link].contains(at) || is_lost(stage, link, at)))
            ++at;
        return at;
    }

    const shm::control_block *old_, *made_;
    const reentry_limits* limits_;
    u32 links_, stages_;
    std::vector<proved_slots> proved_;
    std::vector<u64> made_below_, done_;  ///< by stage
    std::vector<bool> unknown_;           ///< by link
};

/// A slot of the new block that holds no frame and is not in `kept`.
u32 spare_slot(const shm::link_block& l, const kept_frames& kept, u32 link) {
    const std::vector<u32>& slots = kept.slots[link];
    for (u32 k = 0; k < count_of(l.slots, shm::max_slots); ++k)
        if (slot_word::of(load(l.slot[k])).state == slot_state::free && k != kept.state[link] &&
            std::find(slots.begin(), slots.end(), k) == slots.end())
            return k;
    return shm::none;
}

void write_tombstone(shm::control_block& fresh, u32 link, u32 slot, u64 number, u64 now) {
    const u32 stage = fresh.link[link].stage;
    shm::frame_header& h = fresh.frames[link].header[slot];
    std::memset(static_cast<void*>(&h), 0, sizeof h);
    h.meta = {};
    h.meta.frame_number = number;
    h.meta.time_s = static_cast<f64>(number) / (fresh.fps > 0 ? fresh.fps : 60.0);
    h.meta.born_ns = h.claimed_ns = h.submitted_ns = now;
    h.meta.tombstone_stage = stage;
    h.meta.tombstone_reason = static_cast<u32>(exit_code::shared_memory);
    const shm::parameter_set& set = newest_parameters(fresh.parameters);
    h.meta.parameter_number = set.number;
    std::memcpy(h.parameters, set.value, count_of(fresh.parameters.bytes, shm::max_parameter_bytes));
    h.ring_sequence.store(number, std::memory_order_relaxed);
    h.maker_seat = fresh.stage[stage].first_seat;
    h.epoch = fresh.seat[h.maker_seat].first_epoch;
    seal(h, fresh.parameters.bytes);
}

/// Makes one frame READY in the new block; `from`: its slot in the old block, or shm::none for a lost frame.
void enter_frame(shm::control_block& fresh, const shm::control_block& old, const kept_frames& kept, u32 link,
                 u64 number, u32 from, u64 now) {
    shm::link_block& l = fresh.link[link];
    const u32 job = fresh.seat[fresh.stage[l.stage].first_seat].first_job;
    // READY names the job that made the frame: a version that no job of this block has ever had
    const u64 version = job_word::of(load(fresh.job[job])).version - 1;
    const bool lost = from == shm::none;
    const u32 slot = lost ? spare_slot(l, kept, link) : from;
    if (slot == shm::none)
        throw shm_error(fmt::format("the ring {} has no buffer for the place of a lost frame", l.name));
    const u32 generation = slot_word::of(load(l.slot[slot])).generation;
    if (lost)
        write_tombstone(fresh, link, slot, number, now);
    else
        std::memcpy(static_cast<void*>(&fresh.frames[link].header[slot]),
                    static_cast<const void*>(&old.frames[link].header[slot]), sizeof(shm::frame_header));
    l.committed_ns[slot].store(lost ? now : load(old.link[link].committed_ns[slot]),
                               std::memory_order_relaxed);
    l.slot[slot].store(
        slot_word{generation, job, static_cast<u32>(version & version_mask), slot_state::ready}.pack(),
        std::memory_order_relaxed);
    for (u32 s = 0; s < kept.done_below.size(); ++s)
        for_each_input(fresh.stage[s], [&](u32 input, u32 group) {
            if (input != link || number >= kept.done_below[s]) return;
#ifndef CAROUSEL_BUG_READ_AGAIN
            // a stage with `every` has taken only its own frames
            const bool had = link_ref(fresh, link).takes(group, number);
            const lease_state passed = had ? lease_state::done : lease_state::skipped;
            l.group[slot][group].store(lease_word{generation, 0, 0, 0, passed}.pack(),
                                       std::memory_order_relaxed);
#endif  // seeded bug: a reader gets a frame that it has passed on already
        });
}

}  // namespace

u64 kept_frames::count() const noexcept {
    u64 sum = 0;
    for (const std::vector<u32>& of : slots)
        sum += of.size() - static_cast<u64>(std::count(of.begin(), of.end(), shm::none));
    return sum;
}

std::vector<u64> kept_frames::lost() const {
    std::set<u64> numbers;
    for (std::size_t k = 0; k < slots.size(); ++k)
        for (std::size_t n = 0; n < slots[k].size(); ++n)
            if (slots[k][n] == shm::none) numbers.insert(tail[k] + n);
    return {numbers.begin(), numbers.end()};
}

kept_frames find_kept_frames(const shm::control_block& old, const shm::control_block& made,
                             const reentry_limits& limits, const status_reader& status) {
    return reentry(old, made, limits, status).find();
}

void enter_frames(shm::control_block& fresh, const shm::control_block& old, const kept_frames& kept,
                  u64 now) {
    if (kept.done_below.empty()) return;
    for (u32 k = 0; k < kept.tail.size(); ++k) {
        shm::link_block& l = fresh.link[k];
        l.tail.store(kept.tail[k], std::memory_order_relaxed);
        l.committed.store(kept.tail[k] + kept.slots[k].size() - fresh.first_ring_sequence,
                          std::memory_order_relaxed);
        for (u64 n = 0; n < kept.slots[k].size(); ++n)
            enter_frame(fresh, old, kept, k, kept.tail[k] + n, kept.slots[k][n], now);
#ifndef CAROUSEL_BUG_STATE_LEFT_OUT
        if (kept.state[k] != shm::none)
            enter_frame(fresh, old, kept, k, kept.tail[k] - 1, kept.state[k], now);
#endif  // seeded bug: the state below the tail is gone
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

// Only the port's own stage fills its ring, so each slot that is neither FREE nor READY may be in use by the
// process, whichever tag it has. R2 and R4 have run in the old block, if its words were intact.
void enter_unfenced(shm::control_block& fresh, const shm::control_block& old, const incarnation_id& who,
                    const std::vector<bool>& replaced) {
    const shm::seat_block& seat = fresh.seat[who.seat];
    const entry_word was = entry_word::of(load(old.entry[who.entry].identity));
    fresh.entry[who.entry].identity.store(
        entry_word{was.state == entry_state::damaged ? 1 : was.pid, who.epoch, who.seat, entry_state::doomed}
            .pack(),
        std::memory_order_relaxed);
    const u32 job = seat.first_job + seat.jobs - 1;
    const u64 version = job_word::of(load(fresh.job[job])).version;
    bool holds = false;
    for_each_output(fresh.stage[seat.stage], [&](u32 link) {
        if (link < replaced.size() && replaced[link]) return;
        for (u32 k = 0; k < count_of(fresh.link[link].slots, shm::max_slots); ++k) {
            if (!may_be_in_use(old.link[link].slot[k])) continue;
            const u32 generation = slot_word::of(load(fresh.link[link].slot[k])).generation;
            fresh.link[link].slot[k].store(
                slot_word{generation, job, static_cast<u32>(version & version_mask), slot_state::quarantined}
                    .pack(),
                std::memory_order_relaxed);
            holds = true;
        }
    });
    if (holds)
        fresh.job[job].store(job_word{version, who.epoch, job_state::aborted}.pack(),
                             std::memory_order_relaxed);
}

std::vector<bool> find_crowded(const shm::control_block& old, const shm::control_block& made,
                               std::span<const incarnation_id> unfenced) {
    std::vector<bool> crowded(count_of(made.links, shm::max_links));
    for (const incarnation_id& who : unfenced)
        for_each_output(made.stage[made.seat[who.seat].stage], [&](u32 link) {
            u32 held = 0;
            for (u32 k = 0; k < count_of(made.link[link].slots, shm::max_slots); ++k)
                held += may_be_in_use(old.link[link].slot[k]) ? 1U : 0U;
            if (link < crowded.size() && held > made.link[link].slots - made.link[link].window)
                crowded[link] = true;
        });
    return crowded;
}

// A process sees by the seat's word that it is revoked, so this word is first.
void abort_all(shm::control_block& old, const incarnation_id& who) noexcept {
    shm::seat_block& s = old.seat[count_of(who.seat, shm::max_seats - 1)];
    s.current.store(seat_word{next_epoch(who.epoch), shm::none}.pack(), std::memory_order_release);
    for (u32 j = s.first_job; j < count_of(s.first_job + s.jobs, shm::max_jobs); ++j)
        old.job[j].store(job_word{0, 0, job_state::aborted}.pack(), std::memory_order_release);
}

u32 epoch_above(const shm::control_block& old, const shm::control_block& made,
                std::span<const u32> known) noexcept {
    // Epochs wrap: the newest is that with the most steps from the first of the old block. Those of frames
    // that entered the old block are older than its first epoch.
    const u32 base = made.seat[0].first_epoch;
    u32 newest = base;
    const auto consider = [&](u32 epoch) {
        const u32 steps = epochs_between(base, epoch);
        if (epoch != 0 && steps < epoch_mask / 2 && steps > epochs_between(base, newest)) newest = epoch;
    };
    for (const u32 epoch : known) consider(epoch);
    for (u32 k = 0; k < count_of(made.seats, shm::max_seats); ++k)
        consider(seat_word::of(load(old.seat[k].current)).epoch);
    for (u32 k = 0; k < count_of(made.links, shm::max_links); ++k)
        for (u32 slot = 0; slot < count_of(made.link[k].slots, shm::max_slots); ++slot)
            if (const shm::frame_header& h = old.frames[k].header[slot];
                slot_word::of(load(old.link[k].slot[slot])).state == slot_state::ready &&
                is_sealed(h, made.parameters.bytes))
                consider(static_cast<u32>(h.epoch & epoch_mask));
    return newest;
}

}  // namespace carousel::ring
