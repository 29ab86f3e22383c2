#pragma once
// Flips bits in the words of a simulated run, one word at a time, and runs the supervisor's check on them.

#include <optional>
#include <random>
#include <vector>

#include "core/errors.hpp"
#include "ring/check/repair.hpp"
#include "ring/worker.hpp"
#include "simulation.hpp"

namespace carousel::test {

class simulated_flips {
public:
    struct flipped {
        ring::damaged_word w;
        u64 truth = 0;
        shm::word* at = nullptr;
        std::optional<u64> value = {};
        u32 checks = 0;
    };

    void seed(u64 seed) { random_.seed(seed); }
    [[nodiscard]] bool is_time() { return random_() % 40 == 0; }
    [[nodiscard]] const std::optional<flipped>& now() const { return now_; }
    [[nodiscard]] bool hides_a_seat() const {
        return now_ &&
               (now_->w.at.kind == ring::word_kind::seat || now_->w.at.kind == ring::word_kind::entry);
    }

    /// `in_use`: a word that a job has tagged, or that job's word, if there is one.
    void flip(shm::control_block& c, const shm::control_block& made, bool in_use) {
        std::vector<flipped> all, used;
        ring::for_each_word(c, made, [&](shm::word& at, const ring::word_place& place) {
            if (place.kind == ring::word_kind::header) return;
            all.push_back({{place, 0}, ring::load(at), &at});
            if (in_use && is_in_use(place.kind, all.back().truth)) used.push_back(all.back());
        });
        const std::vector<flipped>& of = used.empty() ? all : used;
        now_ = of[random_() % of.size()];
        // END is one word among hundreds, so it is chosen more often.
        if (used.empty() && random_() % 2 == 0) now_ = one_of_a_kind(all);
        now_->w.raw = now_->truth ^ u64 { 1 } << random_() % 64;
        now_->at->store(now_->w.raw);
    }

    // As the engine does in its ticks: a value is written once two consecutive checks agree on it.
    void repair(shm::control_block& c, const shm::control_block& made, const ring::known_run& known,
                simulation_result& result) {
        flipped& f = *now_;
        if (ring::load(*f.at) != f.w.raw) return now_.reset();  // a claim that was written again, or END
        const std::optional<u64> value = ring::repaired_value(c, made, known, f.w);
        if (value && value == f.value) {
            CAROUSEL_ASSERT(ring::write_back(c, made, f.w, *value));
            ++result.repaired;
            ++result.repaired_of[static_cast<std::size_t>(f.w.at.kind)];
            if (*value != f.truth) ++result.respelled;
            return now_.reset();
        }
        f.value = value;
        if (++f.checks < 4) return;
        ring::cas(*f.at, f.w.raw, f.truth);
        ++result.remade;
        now_.reset();
    }

private:
    static bool is_in_use(ring::word_kind kind, u64 raw) {
        switch (kind) {
            case ring::word_kind::slot: {
                const auto s = ring::slot_word::of(raw).state;
                return s == ring::slot_state::fill || s == ring::slot_state::quarantined;
            }
            case ring::word_kind::lease:
            case ring::word_kind::sequence:
                return ring::lease_word::of(raw).state == ring::lease_state::leased;
            case ring::word_kind::job:
                return ring::job_word::of(raw).state != ring::job_state::idle;
            default:
                return false;
        }
    }

    flipped one_of_a_kind(const std::vector<flipped>& all) {
        std::vector<flipped> kind;
        while (kind.empty()) {
            const auto wanted = static_cast<ring::word_kind>(random_() % ring::word_kinds);
            for (const flipped& f : all)
                if (f.w.at.kind == wanted) kind.push_back(f);
        }
        return kind[random_() % kind.size()];
    }

    std::optional<flipped> now_;
    std::mt19937_64 random_;
};

enum class phase { filled, submitted, written, committed, ended, done };
/// A frame in progress in a simulated process.
struct work {
    ring::job j;
    phase at = phase::filled;
    u32 written = 0;  ///< outputs
};

/// The owner of a damaged word waits (ring::cas_after_repair): in the simulation it takes no step.
inline bool waits_for_repair(const shm::control_block& c, ring::worker& w, const ring::job& j) {
    using ring::intact, ring::load;
    bool waits = !intact(load(c.job[j.index]));
    for (u32 k = 0; k < w.outputs(); ++k)
        waits = waits || !intact(load(w.output(k).block().slot[j.output[k].index]));
    for (u32 k = 0; k < j.inputs; ++k)
        waits = waits || !intact(load(w.input(k).block().group[j.input[k].index][w.stage().input_group[k]]));
    if (j.sequence_index != shm::none)
        waits = waits || !intact(load(c.source[w.stage().source].sequence_lease[j.sequence_index]));
    return waits;
}

/// A member that released its frame while the word was damaged has left a lease, which expires eventually.
inline void revoke_forgotten_leases(shm::control_block& c, u32 link, u32 group, u32 kept_slot) {
    for (u32 k = 0; k < c.link[link].slots; ++k) {
        shm::word& at = c.link[link].group[k][group];
        const u64 raw = ring::load(at);
        const ring::lease_word w = ring::lease_word::of(raw);
        if (w.state == ring::lease_state::leased && k != kept_slot)
            ring::cas(at, raw, ring::lease_word{w.generation, 0, 0, 0, ring::lease_state::skipped}.pack());
    }
}

}  // namespace carousel::test
