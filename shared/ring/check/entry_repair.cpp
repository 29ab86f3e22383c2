#include "ring/check/entry_repair.hpp"

#include <algorithm>

namespace carousel::ring {
namespace {

/// A value that an entry's word may have had: its identity, and the state shown by its bits.
struct possible_entry {
    entry_word w;
    bool state_is_known = false;  ///< the wrong bit belongs to the identity
    bool named = false, alive = false, recorded = false;
    /// Returns the weight of the evidence for this value. A seat's word is the supervisor's own; a live
    /// process could be another process of the run; the file may be older than the block.
    [[nodiscard]] u32 weight() const noexcept {
        return (named ? 4U : 0U) + (alive ? 2U : 0U) + (recorded ? 1U : 0U);
    }
    [[nodiscard]] bool same_place(const possible_entry& o) const noexcept {
        return w.epoch == o.w.epoch && w.seat == o.w.seat;
    }
};

/// Returns the fields of a word whose parity is wrong.
entry_word unchecked(u64 w) noexcept { return entry_word::of(with_parity(w & ~(u64{1} << 3U), 3)); }

class unidentified_entry {
public:
    unidentified_entry(const shm::control_block& c, u32 entry, const entry_evidence& evidence)
        : c_(c), entry_(entry), evidence_(evidence), raw_(load(c.entry[entry].identity)) {}

    [[nodiscard]] std::optional<u64> value() {
        for (u32 k = 0; k < std::min(c_.seats, shm::max_seats); ++k)
            if (!intact(load(c_.seat[k].current)))
                return std::nullopt;  // the damaged word may name this
                                      // entry
        collect();
        if (all_.empty()) return std::nullopt;
        u32 most = 0;
        for (const possible_entry& p : all_) most = std::max(most, p.weight());
        std::erase_if(all_, [&](const possible_entry& p) { return p.weight() < most; });
        if (most == 0) return unowned();
        // If only the pids differ and no process has one of them, the process has ended, whichever pid it
        // had.
        const bool gone = std::none_of(all_.begin(), all_.end(), [](const auto& p) { return p.alive; });
        for (const possible_entry& p : all_)
            if (!p.same_place(all_.front()) || (!gone && p.w.pid != all_.front().w.pid)) return std::nullopt;
        // A process that claims an entry stores its start time next.
        if (gone && load(c_.entry[entry_].start_time) == 0)
            for (const possible_entry& p : all_)
                if (p.w.pid == 0) return with_state(p).pack();
        return with_state(all_.front()).pack();
    }

private:
    // The first candidate is the word as found, except for its state; if none of the processes is alive, this
    // candidate's pid is used.
    void collect() {
        constexpr unsigned first_of_identity = 4;
        add(unchecked(raw_), false);
        for (unsigned bit = first_of_identity; bit < 64; ++bit)
            add(entry_word::of(raw_ ^ u64{1} << bit), true);
    }

    void add(const entry_word& w, bool state_is_known) {
        possible_entry p{w, state_is_known};
        if (w.seat >= std::min(c_.seats, shm::max_seats) || !fits(p)) return;
        const seat_word sits = seat_word::of(load(c_.seat[w.seat].current));
        p.named = sits.entry == entry_ && sits.epoch == w.epoch;
        if (w.epoch != 0 && !p.named && (sits.epoch == w.epoch || belongs_to_another(w))) return;
        p.alive = w.pid != 0 && evidence_.is_ours && evidence_.is_ours(w.pid);
        p.recorded =
            std::any_of(evidence_.recorded.begin(), evidence_.recorded.end(), [&](const known_process& k) {
                return k.entry == entry_ && k.seat == w.seat && k.epoch == w.epoch && k.pid == w.pid;
            });
        all_.push_back(p);
    }

    // A standby has no epoch; every other incarnation has one.
    [[nodiscard]] static bool fits(const possible_entry& p) noexcept {
        const entry_word& w = p.w;
        if (!p.state_is_known) return true;
        switch (w.state) {
            case entry_state::unused:
                return w.epoch == 0 && w.pid == 0 && w.seat == 0;
            case entry_state::standby:
                return w.epoch == 0;
            case entry_state::starting:
            case entry_state::live:
                return w.epoch != 0;
            case entry_state::doomed:
            case entry_state::fenced:
                return true;
            default:
                return false;
        }
    }

    /// Each epoch of a seat belongs to only one entry.
    [[nodiscard]] bool belongs_to_another(const entry_word& w) const {
        for (u32 k = 0; k < shm::max_incarnations; ++k) {
            const entry_word o = entry_word::of(load(c_.entry[k].identity));
            if (k != entry_ && o.state != entry_state::unused && o.state != entry_state::damaged &&
                o.seat == w.seat && o.epoch == w.epoch)
                return true;
        }
        return false;
    }

    /// Returns true if a job word of that seat contains the epoch, or is damaged and may contain it.
    [[nodiscard]] bool is_referenced(const entry_word& w) const {
        const shm::seat_block& s = c_.seat[w.seat];
        for (u32 j = s.first_job; j < std::min(s.first_job + s.jobs, shm::max_jobs); ++j)
            if (const u64 raw = load(c_.job[j]); !intact(raw) || job_word::of(raw).epoch == w.epoch)
                return true;
        return false;
    }

    // No seat and no process matches: only job words with the entry's epoch may be left.
    [[nodiscard]] std::optional<u64> unowned() {
        std::erase_if(all_, [&](const possible_entry& p) { return p.w.epoch == 0 || !is_referenced(p.w); });
        if (all_.empty()) return entry_word{}.pack();
        for (const possible_entry& p : all_)
            if (!p.same_place(all_.front())) return std::nullopt;
        return all_.front().w.with(entry_state::doomed).pack();
    }

    [[nodiscard]] entry_word with_state(const possible_entry& p) const {
        if (p.w.epoch == 0) return p.w.with(entry_state::standby);
        if (p.named) {
            const bool live = p.w.pid != 0 && load(c_.entry[entry_].live_since_ns) != 0;
            return p.w.with(live ? entry_state::live : entry_state::starting);
        }
        return p.w.with(p.alive || is_referenced(p.w) ? entry_state::doomed : entry_state::fenced);
    }

    const shm::control_block& c_;
    const u32 entry_;
    const entry_evidence& evidence_;
    const u64 raw_;
    std::vector<possible_entry> all_;
};

}  // namespace

std::optional<u64> adopted_entry(const shm::control_block& c, u32 entry, const entry_evidence& evidence) {
    if (entry >= shm::max_incarnations || intact(load(c.entry[entry].identity))) return std::nullopt;
    return unidentified_entry(c, entry, evidence).value();
}

}  // namespace carousel::ring
