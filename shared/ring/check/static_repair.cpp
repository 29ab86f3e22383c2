#include "ring/check/repair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "ring/check/block_check.hpp"
#include "ring/parameter_box.hpp"

namespace carousel::ring {
namespace {

class static_repairer {
public:
    template <typename T>
    void same(T& now, const T& then, const std::string& object, const char* field) {
        static_assert(std::is_trivially_copyable_v<T>);
        if (std::memcmp(&now, &then, sizeof then) == 0) return;
        auto* const to = reinterpret_cast<std::byte*>(&now);
        const auto* const from = reinterpret_cast<const std::byte*>(&then);
        for (std::size_t k = 0; k < sizeof then; ++k)
            if (to[k] != from[k]) to[k] = from[k];
        record(fmt::format("{}: {}", object, field));
    }
    /// Restores the fields of a table of the block that no process acts on (shm/control_block.hpp).
    template <typename Block, typename Fields>
    void restore(Block& now, const Block& then, const std::string& object, const Fields& fields) {
        const auto restore_one = [&](const auto& f) {
            if (f.then == shm::when_wrong::restore) same(now.*f.at, then.*f.at, object, f.name);
        };
        std::apply([&](const auto&... each) { (restore_one(each), ...); }, fields);
    }
    void record(std::string word) { repaired_.push_back(std::move(word)); }
    [[nodiscard]] std::vector<std::string> take() { return std::move(repaired_); }

private:
    std::vector<std::string> repaired_;
};

// An attaching process verifies version, bytes and uid, and refuses the block while these are wrong, so no
// process acts on a wrong value. The maker of the block stores the magic last; an attaching process reads it.
void repair_head(static_repairer& m, shm::control_block& c, const shm::control_block& made) {
    const std::string object = "the block's head";
    if (load(c.magic) != shm::control_magic) {
        c.magic.store(shm::control_magic, std::memory_order_release);
        m.record(object + ": magic");
    }
    m.restore(c, made, object, shm::head_fields);
}

u64 oldest_frame(const shm::control_block& made, const known_run& known) noexcept {
    u64 oldest = ~u64{0};
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u32 link = made.source[k].link;
        oldest = std::min(oldest, link < known.tails.size() ? known.tails[link] : made.first_ring_sequence);
    }
    return oldest;
}

void repair_sets(static_repairer& m, shm::parameter_box& now, const shm::parameter_box& then, u64 oldest) {
    const u64 raw = load(then.state);
    if (!intact(raw)) return;  // the supervisor itself does not know which of the sets are valid
    const u32 newest = parameter_state::of(raw).sets, used = sets_in_use(then, oldest);
    for (u32 back = used; back < shm::max_parameter_sets; ++back) {
        const u32 k = (newest - back) % shm::max_parameter_sets;
        m.same(now.set[k], then.set[k], "parameters", fmt::format("set {}, which no frame needs", k).c_str());
    }
}

/// True if a process of the stage can have stored the word.
bool is_possible(u64 raw, const shm::stage_block& s) {
    const wait_word w = wait_word::of(raw);
    if (raw != w.pack()) return false;
    const auto has = [&](const auto& links, u32 count) {
        return std::find(links, links + std::min<std::size_t>(count, std::size(links)), w.link) !=
               links + count;
    };
    switch (w.kind) {
        case wait_kind::frame:
            return s.source != shm::none ? w.link == shm::none : has(s.input_link, s.inputs);
        case wait_kind::free_slot:
            return has(s.output_link, s.outputs);
        default:
            return w.link == shm::none;
    }
}

// The word is written by CAS, because it belongs to its process, which may store another value at any time.
// If a value that the process has stored were replaced, the process would store it again only at its next
// wait; so a possible value is never replaced.
void repair_waits(static_repairer& m, shm::control_block& c, const shm::control_block& made,
                  const known_run& known) {
    for (const known_process& p : known.processes) {
        if (p.entry >= shm::max_incarnations || p.seat >= std::min(made.seats, shm::max_seats)) continue;
        word& at = c.entry[p.entry].waiting;
        const u64 raw = load(at);
        const u32 stage = std::min(made.seat[p.seat].stage, shm::max_stages - 1);
        if (is_possible(raw, made.stage[stage]) || !cas(at, raw, 0)) continue;
        m.record(fmt::format("entry {} ({}): waiting", p.entry, seat_name(made, p.seat)));
    }
}

/// A value that an entry's word may have had: the identity in that value, and the state that its bits show.
struct possible_entry {
    entry_word w;
    bool state_is_known = false;  ///< the wrong bit belongs to the identity
    bool named = false, alive = false, recorded = false;
    /// Returns the weight of the evidence for this value. A seat's word is written only by the supervisor and
    /// counts most. A live process counts less, because it could be another process of the run; the file
    /// counts least, because it may be older than the block.
    [[nodiscard]] u32 weight() const noexcept {
        return (named ? 4U : 0U) + (alive ? 2U : 0U) + (recorded ? 1U : 0U);
    }
    [[nodiscard]] bool same_place(const possible_entry& o) const noexcept {
        return w.epoch == o.w.epoch && w.seat == o.w.seat;
    }
};

/// Returns the fields that a word contains, although its parity is wrong.
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
        // If the candidates differ only in their pids and no process has any of these pids, the process has
        // ended, and it does not matter which of the pids it had.
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

    // Called if no seat and no process matches; then only job words may still contain the entry's epoch.
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

u32 sets_in_use(const shm::parameter_box& made, u64 oldest) noexcept {
    const u32 newest = parameter_state::of(load(made.state)).sets;
    for (u32 back = 0; back < readable_sets; ++back)
        if (made.set[(newest - back) % shm::max_parameter_sets].from <= oldest) return back + 1;
    return readable_sets;
}

std::vector<std::string> repair_static(shm::control_block& c, const shm::control_block& made,
                                       const known_run& known) {
    static_repairer m;
    repair_head(m, c, made);
    for (u32 k = 0; k < std::min(made.stages, shm::max_stages); ++k)
        m.restore(c.stage[k], made.stage[k], "stage " + stage_name(made, k), shm::stage_fields);
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k)
        m.restore(c.link[k], made.link[k], "ring of " + std::string(made.link[k].name), shm::link_fields);
    for (u32 k = 0; k < std::min(made.seats, shm::max_seats); ++k)
        m.restore(c.seat[k], made.seat[k], "seat of " + seat_name(made, k), shm::seat_fields);
    for (u32 k = 0; k < std::min(made.assets, shm::max_assets); ++k)
        m.restore(c.asset[k], made.asset[k], "asset " + std::string(made.asset[k].name), shm::asset_fields);
    for (u32 k = 0; k < std::min<std::size_t>(made.seats, known.paused.size()); ++k)
        if (const u64 paused = known.paused[k] ? 1 : 0; load(c.seat[k].paused) != paused) {
            c.seat[k].paused.store(paused, std::memory_order_release);
            m.record("seat of " + seat_name(made, k) + ": held");
        }
    repair_waits(m, c, made, known);
    repair_sets(m, c.parameters, made.parameters, oldest_frame(made, known));
    std::vector<std::string> all = m.take();
    for (std::string& word : repair_start_times(c, made, known)) all.push_back(std::move(word));
    return all;
}

std::vector<std::string> repair_start_times(shm::control_block& c, const shm::control_block& made,
                                            const known_run& known) {
    std::vector<std::string> repaired;
    for (const known_process& p : known.processes) {
        if (!p.ready || p.start_time == 0 || p.entry >= shm::max_incarnations) continue;
        const entry_word w = entry_word::of(load(c.entry[p.entry].identity));
        const bool is_its = (w.state == entry_state::live || w.state == entry_state::standby ||
                             w.state == entry_state::doomed) &&
                            w.seat == p.seat && w.epoch == p.epoch && w.pid == p.pid;
        if (!is_its || load(c.entry[p.entry].start_time) == p.start_time) continue;
        c.entry[p.entry].start_time.store(p.start_time, std::memory_order_release);
        repaired.push_back(fmt::format("entry {} ({}): start_time", p.entry,
                                       seat_name(made, std::min(p.seat, shm::max_seats - 1))));
    }
    return repaired;
}

std::optional<u64> adopted_entry(const shm::control_block& c, u32 entry, const entry_evidence& evidence) {
    if (entry >= shm::max_incarnations || intact(load(c.entry[entry].identity))) return std::nullopt;
    return unidentified_entry(c, entry, evidence).value();
}

}  // namespace carousel::ring
