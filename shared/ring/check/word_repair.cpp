#include "ring/check/repair.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ring/parameter_box.hpp"
#include "ring/recovery.hpp"
#include "ring/stream_end.hpp"
#include "shm/doorbell.hpp"
#include "shm/segment.hpp"

namespace carousel::ring {
namespace {

/// Returns the word of a place; null: the supervisor must not write this place.
template <typename Block>
auto* word_at(Block& c, const shm::control_block& made, const word_place& place) {
    using at_word = std::conditional_t<std::is_const_v<Block>, const word, word>;
    at_word* found = nullptr;
    if (place.kind != word_kind::header)
        for_each_word(c, made, [&](at_word& at, const word_place& here) {
            if (here == place) found = &at;
        });
    return found;
}

bool is_ready(const shm::control_block& c, u32 link, u32 slot) {
    return slot_word::of(load(c.link[link].slot[slot])).state == slot_state::ready;
}

/// A copy of the block in which values are tried, with the headers that the rules read.
shm::private_block copy_of(const shm::control_block& c, const shm::control_block& made) {
    shm::private_block copy = shm::make_private_block();
    shm::copy_words(*copy, c);
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k)
        std::memcpy(static_cast<void*>(copy->frames[k].header), static_cast<const void*>(c.frames[k].header),
                    std::min(made.link[k].slots, shm::max_slots) * sizeof(shm::frame_header));
    return copy;
}

class candidates {
public:
    candidates(const shm::control_block& c, const shm::control_block& made, const known_run& known,
               const damaged_word& w)
        : made_(made), known_(known), w_(w), copy_(copy_of(c, made)) {
        at_ = word_at(*copy_, made, w.at);
    }

    std::optional<u64> only_meaning() {
        if (at_ == nullptr) return std::nullopt;
        std::optional<u64> chosen, meant;
        for (unsigned bit = 0; bit < 64; ++bit) {
            const u64 value = w_.raw ^ u64 { 1 } << bit;
            at_->store(value, std::memory_order_relaxed);
            if (!is_possible(value)) continue;
            const u64 means = meaning(value);
            if (meant && *meant != means) return std::nullopt;
            meant = means;
            if (!chosen || is_plainer(value, *chosen)) chosen = value;
        }
        if (chosen && w_.at.kind == word_kind::job) return fresh(*chosen);
        return chosen;
    }

private:
    [[nodiscard]] slot_word slot_of(u32 link, u32 slot) const {
        return slot_word::of(load(copy_->link[link].slot[slot]));
    }

    bool is_possible(u64 value) {
        const bool of_itself = w_.at.kind == word_kind::lease      ? lease_is_possible(lease_word::of(value))
                               : w_.at.kind == word_kind::sequence ? number_is_possible(lease_word::of(value))
                               : w_.at.kind == word_kind::group    ? group_is_possible(group_word::of(value))
                               : w_.at.kind == word_kind::asset    ? asset_is_possible(asset_word::of(value))
                                                                   : true;
        return of_itself && check_known(*copy_, made_, known_).empty() &&
               check_words(*copy_, made_, known_).empty();
    }

    /// Returns true if frame n has been committed into that ring, or is below its tail.
    [[nodiscard]] bool is_in(u32 link, u64 n) const {
        return n < load(copy_->link[link].tail) || is_ready_frame(link, n);
    }

    // READY is set at one output after the other, always after COMMITTED, and DONE is set after the last
    // READY (S6, C20). So a frame that is READY only at some outputs is still LEASED, a frame that is WAIT is
    // READY at no output, and a frame that is DONE is READY at all outputs. A crash between two READY stores
    // leaves words that obey this rule, too; they stay unchanged until R2, because the job is COMMITTED.
    [[nodiscard]] bool agrees_with_outputs(const shm::stage_block& stage, u64 n, lease_state now) const {
        u32 outputs = 0, in = 0;
        for (u32 k = 0; k < std::min(stage.outputs, shm::max_outputs); ++k) {
            if (stage.output_link[k] >= shm::max_links) continue;
            ++outputs;
            in += is_in(stage.output_link[k], n) ? 1U : 0U;
        }
        if (outputs == 0 || now == lease_state::leased) return true;
        return in == (now == lease_state::wait ? 0 : outputs);
    }

    /// True if the frame in the slot is one that the group does not take: WAIT and SKIPPED mean the same.
    [[nodiscard]] bool is_untaken(u32 link, u32 slot, u32 group) const {
        return slot_of(link, slot).state == slot_state::ready &&
               !link_ref(*copy_, link).takes(group, load(copy_->frames[link].header[slot].ring_sequence));
    }

    // A word that is WAIT refers to no job.
    [[nodiscard]] bool lease_is_possible(const lease_word& w) const {
        const u32 link = w_.at.first, g = w_.at.third;
        const slot_word slot = slot_of(link, w_.at.second);
        if (w.state == lease_state::wait && (w.job != 0 || w.version != 0)) return false;
        if (w.generation != slot.generation && w.state == lease_state::leased) return false;
        if (slot.state != slot_state::ready) return true;
        const u64 n = load(copy_->frames[link].header[w_.at.second].ring_sequence);
        const lease_state now = w.seen_at(slot.generation).state;
        if (g >= shm::max_blocking)
            return now != lease_state::leased ||
                   (w.job == 0 && w.attempts == 0 && w.version == (n & version_mask));
        const shm::stage_block& stage =
            made_.stage[std::min(made_.link[link].group_stage[g], shm::max_stages - 1)];
        if (is_untaken(link, w_.at.second, g)) return now == lease_state::wait || now == lease_state::skipped;
        const bool may_skip =
            // the group may have been closed earlier
            (stage.flags & (shm::stage_flag::skips | shm::stage_flag::optional)) != 0 ||
            group_word::of(load(copy_->link[link].group_state[g])).state == group_state::closed;
        if (now == lease_state::skipped && !may_skip) return false;
        return agrees_with_outputs(stage, n, now);
    }

    [[nodiscard]] bool number_is_possible(const lease_word& w) const {
        const shm::source_block& q = made_.source[w_.at.first];
        if (q.link >= shm::max_links) return false;
        const u64 window = std::clamp(made_.link[q.link].window, 1U, shm::max_window),
                  t = load(copy_->link[q.link].tail), n = t + (w_.at.second + window - t % window) % window;
        if (w.state != lease_state::wait) return true;
        const bool done = w.generation == ((lap_of(q, n, window) + 1U) & generation_mask);
        return w.job == 0 && w.version == 0 && (!done || w.attempts == 0);
    }

    [[nodiscard]] bool group_is_possible(const group_word& w) const {
        return w_.at.second >= shm::max_blocking || (w.entry == 0 && w.joins == 0);
    }

    // EMPTY has no owner. If an asset is LOADING, its process exists or is not reclaimed yet; if an asset is
    // READY, its process has existed.
    [[nodiscard]] bool asset_is_possible(const asset_word& w) const {
        if (w.state == shm::asset_state::empty) return w.epoch == 0 && w.seat == 0;
        if (w.seat >= known_.epochs.size() || w.epoch == 0 || w.epoch > known_.epochs[w.seat]) return false;
        return w.state != shm::asset_state::loading ||
               std::any_of(known_.processes.begin(), known_.processes.end(),
                           [&](const known_process& p) { return p.seat == w.seat && p.epoch == w.epoch; });
    }

    // No reader holds the tail of a ring without groups, as most rings of states are: between two sweeps it
    // is anywhere up to the first frame that is not READY. A tail that is too low holds up frames, never
    // frees.
    [[nodiscard]] u64 swept(u32 link) const {
        u64 t = load(copy_->link[link].tail);
        while (is_ready_frame(link, t)) ++t;
        return t;
    }
    [[nodiscard]] bool is_ready_frame(u32 link, u64 n) const {
        for (u32 k = 0; k < std::min(made_.link[link].slots, shm::max_slots); ++k)
            if (is_ready(*copy_, link, k) && load(copy_->frames[link].header[k].ring_sequence) == n)
                return true;
        return false;
    }

    /// Two values with the same meaning are interchangeable.
    [[nodiscard]] u64 meaning(u64 value) const {
        switch (w_.at.kind) {
            case word_kind::lease: {
                const lease_word w =
                    lease_word::of(value).seen_at(slot_of(w_.at.first, w_.at.second).generation);
                const bool waits =
                    w.state == lease_state::wait && !is_untaken(w_.at.first, w_.at.second, w_.at.third);
                return w.state == lease_state::leased ? value : waits ? 0 : 1;
            }
            case word_kind::sequence: {
                const lease_word w = lease_word::of(value);
                return w.state == lease_state::leased ? value : u64{w.generation};
            }
            case word_kind::slot: {
                const slot_word w = slot_word::of(value);
                return w.state == slot_state::ready ? u64{w.generation} << 8U : value;
            }
            case word_kind::job: {
                const job_word w = job_word::of(value);
                return w.state == job_state::idle ? u64{w.epoch} << 8U : value;
            }
            case word_kind::tail:
                return made_.link[w_.at.first].blocking > 0 ? value : swept(w_.at.first);
            case word_kind::group:
                return group_word::of(value).state == group_state::absent ? 0 : value;
            case word_kind::asset:
                return asset_word::of(value).state == shm::asset_state::ready ? 2 : value;
            default:
                return value;
        }
    }

    /// Returns true if, of two values with the same meaning, `value` is the lower tail, or has fewer attempts
    /// or joins recorded.
    [[nodiscard]] bool is_plainer(u64 value, u64 than) const {
        if (w_.at.kind == word_kind::tail)
            return shm::tail_word::unpack(value) < shm::tail_word::unpack(than);
        if (w_.at.kind == word_kind::group) return group_word::of(value).joins < group_word::of(than).joins;
        if (w_.at.kind != word_kind::lease && w_.at.kind != word_kind::sequence) return false;
        return lease_word::of(value).attempts < lease_word::of(than).attempts;
    }

    // The version of an idle word may be any version that the job has not had recently, so a version is
    // chosen far from all versions that the job can have had.
    [[nodiscard]] static u64 fresh(u64 value) {
        job_word w = job_word::of(value);
        if (w.state == job_state::idle) w.version += (u64{1} << 34U) + (u64{1} << 22U);
        return w.pack();
    }

    const shm::control_block& made_;
    const known_run& known_;
    const damaged_word& w_;
    shm::private_block copy_;
    word* at_ = nullptr;
};

/// The incarnation that holds the seat, according to the supervisor's own data; null if there is none.
const known_process* current_of(const known_run& known, u32 seat) {
    for (const known_process& p : known.processes)
        if (p.seat == seat && p.current) return &p;
    return nullptr;
}

// Two facts bound the value: the supervisor knows how many sets it has published, and a source that has read
// the set for a frame number has begun that frame. Sources wait while the word is damaged, so after a short
// time every check determines the same value, however fast the rings are.
std::optional<u64> parameters_value(const shm::control_block& c, const shm::control_block& made, u64 raw) {
    const u64 known = load(made.parameters.state);
    const std::optional<u64> unbegun = first_unbegun(c);
    if (!intact(known) || !unbegun) return std::nullopt;
    const parameter_state then = parameter_state::of(known);
    const auto is = repaired_state(raw, then.sets, then.horizon, std::max(*unbegun, then.horizon));
    return is ? std::optional(is->pack()) : std::nullopt;
}

// An identity is restored only if the supervisor knows that its incarnation exists. An entry that was not
// given to any process becomes UNUSED. If words still contain the entry's epoch, the epoch is read from those
// words, and the entry's event handles are no longer queried.
std::optional<u64> entry_value(const known_run& known, const damaged_word& w) {
    std::optional<u64> only;
    bool given = known.processes.empty();
    for (const known_process& p : known.processes) {
        if (p.entry != w.at.first) continue;
        given = true;
        for (unsigned bit = 0; bit < 64; ++bit) {
            const entry_word e = entry_word::of(w.raw ^ u64{1} << bit);
            if (e.seat != p.seat || e.epoch != p.epoch || e.pid != p.pid) continue;
            const bool unborn = (p.pid == 0 || !p.ready) && e.state == entry_state::starting,
                       born = p.pid != 0 && e.state == entry_state::live;
            const bool right = p.standby   ? e.state == entry_state::standby
                               : p.current ? unborn || born
                                           : e.state == entry_state::doomed || e.state == entry_state::fenced;
            if (!right) continue;
            if (only) return std::nullopt;
            only = e.pack();
        }
    }
    return given ? only : entry_word{}.pack();
}

// A job in progress holds the frame that it names; an idle job names no frame.
std::optional<u64> sequence_value(const shm::control_block& c, const shm::control_block& made, u32 job) {
    const job_word j = job_word::of(load(c.job[job]));
    if (j.state == job_state::damaged) return std::nullopt;
    if (j.state == job_state::idle) return shm::sequence_word::pack(0);
    std::optional<u64> only;
    const u64 version = j.version & version_mask;
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k)
        for (u32 n = 0; n < std::min(made.link[k].slots, shm::max_slots); ++n)
            for (u32 g = 0; g < std::min(made.link[k].blocking, shm::max_blocking); ++g)
                if (lease_word::of(load(c.link[k].group[n][g])).tagged(job, version))
                    only = load(c.frames[k].header[n].ring_sequence.raw());
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u32 link = std::min(made.source[k].link, shm::max_links - 1);
        const u64 window = std::clamp(made.link[link].window, 1U, shm::max_window),
                  t = load(c.link[link].tail);
        for (u64 n = t; n < t + window; ++n)
            if (lease_word::of(load(c.source[k].sequence_lease[n % window])).tagged(job, version))
                only = shm::sequence_word::pack(n);
    }
    return only && intact(*only) ? only : std::nullopt;
}

}  // namespace

std::vector<damaged_word> damaged_words(const shm::control_block& c, const shm::control_block& made) {
    std::vector<damaged_word> all;
    for_each_word(c, made, [&](const word& at, const word_place& place) {
        const u64 raw = load(at);
        if (intact(raw) || all.size() >= most_findings) return;
        if (place.kind == word_kind::header && !is_ready(c, place.first, place.second)) return;
        all.push_back({place, raw});
    });
    return all;
}

std::optional<u64> repaired_value(const shm::control_block& c, const shm::control_block& made,
                                  const known_run& known, const damaged_word& w) {
    switch (w.at.kind) {
        case word_kind::end:
            return shm::end_word::pack(known.end);
        case word_kind::claim:  // the source writes its claim again
            return no_claim;
        case word_kind::seat: {
            const known_process* p = current_of(known, w.at.first);
            return p != nullptr ? std::optional(seat_word{p->epoch, p->entry}.pack()) : std::nullopt;
        }
        case word_kind::parameters:
            return parameters_value(c, made, w.raw);
        case word_kind::entry:
            return entry_value(known, w);
        case word_kind::header:
            return std::nullopt;
        default:
            break;
    }
    // The rules can be applied only if every other word is intact.
    if (damaged_words(c, made).size() != 1) return std::nullopt;
    if (w.at.kind == word_kind::ring_sequence) return sequence_value(c, made, w.at.first);
    return candidates(c, made, known, w).only_meaning();
}

bool write_back(shm::control_block& c, const shm::control_block& made, const damaged_word& w,
                u64 value) noexcept {
    word* at = word_at(c, made, w.at);
    if (at == nullptr || !cas(*at, w.raw, value)) return false;
    for (u32 k = 0; k < std::min(made.stages, shm::max_stages); ++k) shm::ring(c.stage[k].doorbell);
    return true;
}

}  // namespace carousel::ring
