// check_words(): the protocol's rules, word by word, over a block in which no frame advances. The comment of
// each rule states the invariant that the rule checks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ring/check/block_check.hpp"
#include "ring/header_check.hpp"

namespace carousel::ring {
namespace {

class word_check {
public:
    word_check(const shm::control_block& c, const shm::control_block& made, const known_run& known)
        : c_(c), made_(made), known_(known) {}

    std::vector<finding> run() {
        for (u32 k = 0; k < std::min(made_.seats, shm::max_seats); ++k) jobs_of(k);
        for (u32 k = 0; k < std::min(made_.links, shm::max_links); ++k) link(k);
        for (u32 k = 0; k < std::min(made_.sources, shm::max_sources); ++k) source(k);
        for (u32 k = 0; k < std::min(made_.links, shm::max_links); ++k) {
            frame_at_tail(k);
            state_below_tail(k);
        }
        return std::move(all_);
    }

private:
    void add(std::string word, std::string what) {
        if (all_.size() < most_findings) all_.push_back({std::move(word), std::move(what)});
    }
    [[nodiscard]] const char* name_of_stage(u32 stage) const {
        return made_.stage[std::min(stage, shm::max_stages - 1)].name;
    }
    [[nodiscard]] const char* name_of_job(u32 job) const {
        return name_of_stage(
            made_.seat[std::min(made_.job_info[std::min(job, shm::max_jobs - 1)].seat, shm::max_seats - 1)]
                .stage);
    }
    [[nodiscard]] u32 stage_of_job(u32 job) const {
        const u32 seat = job < std::min(made_.jobs, shm::max_jobs) ? made_.job_info[job].seat : shm::none;
        return seat < shm::max_seats ? made_.seat[seat].stage : shm::none;
    }
    [[nodiscard]] job_word job(u32 k) const {
        return job_word::of(load(c_.job[std::min(k, shm::max_jobs - 1)]));
    }
    [[nodiscard]] u64 tail(u32 link) const { return load(c_.link[link].tail); }
    [[nodiscard]] bool end_is_number() const {
        return known_.end != end_unknown && known_.end != end_stopping;
    }
    /// No source can have begun this frame.
    [[nodiscard]] bool beyond_end(u64 ring_sequence) const {
        return end_is_number() && ring_sequence >= known_.end + known_.surplus;
    }

    // A tag is written only by a job that is OPEN, and the job word gets its next version only after the
    // job's tags are removed.
    void tag(const std::string& object, const char* tagged, u32 j, u32 version, u32 stage) {
        if (stage_of_job(j) != stage) {
            add(object,
                fmt::format("is {} by job {}, which is not a job of {}", tagged, j, name_of_stage(stage)));
            return;
        }
        const job_word w = job(j);
        if (w.state == job_state::damaged) return;
        if ((w.version & version_mask) != version || w.state == job_state::idle)
            add(object, fmt::format("is {} by job {} in its version {}, which is {} in version {}", tagged, j,
                                    version, w.state == job_state::idle ? "idle" : "at work",
                                    w.version & version_mask));
    }

    // A job word contains the epoch of an incarnation that exists or existed: the present one, or an earlier
    // one that is not reclaimed yet.
    void jobs_of(u32 seat) {
        const shm::seat_block& s = made_.seat[seat];
        for (u32 j = s.first_job; j < std::min(s.first_job + s.jobs, shm::max_jobs); ++j) {
            const job_word w = job(j);
            if (w.state == job_state::damaged)
                continue;  // check_parity reports words that are damaged by
                           // one bit
            const std::string object = fmt::format("job {} ({})", j, name_of_stage(s.stage));
            if (static_cast<u8>(w.state) > static_cast<u8>(job_state::aborted)) {
                add(object, fmt::format("is in the invalid state {}", static_cast<u32>(w.state)));
                continue;
            }
            if (known_.epochs.size() > seat && w.epoch != known_.epochs[seat] && w.epoch != 0 &&
                std::none_of(known_.processes.begin(), known_.processes.end(),
                             [&](const known_process& l) { return l.seat == seat && l.epoch == w.epoch; }))
                add(object, fmt::format("has epoch {}, which no process of its seat has", w.epoch));
            if (w.state == job_state::submitted) submitted(j, w, s.stage, object);
        }
    }

    // SUBMITTED comes after all leases and after FILL at all outputs. The leases and the FILL words remain
    // until COMMITTED (or ABORTED), because a slot becomes READY, or is quarantined, only after that.
    void submitted(u32 j, const job_word& w, u32 stage, const std::string& object) {
        const shm::stage_block& b = made_.stage[stage];
        const u64 version = w.version & version_mask;
        bool leased = false;
        if (b.source < shm::max_sources)
            for (const shm::word& at : c_.source[b.source].sequence_lease)
                leased = leased || lease_word::of(load(at)).tagged(j, version);
        for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i) {
            if (b.input_link[i] >= shm::max_links || b.input_group[i] >= shm::max_groups) continue;
            for (u32 k = 0; k < std::min(made_.link[b.input_link[i]].slots, shm::max_slots); ++k)
                leased = leased || lease_word::of(load(c_.link[b.input_link[i]].group[k][b.input_group[i]]))
                                       .tagged(j, version);
        }
        if (!leased)
            add(object, fmt::format("is submitted, but no frame is leased to it in its version {}", version));
        for (u32 o = 0; o < std::min(b.outputs, shm::max_outputs); ++o) {
            const u32 link = std::min(b.output_link[o], shm::max_links - 1);
            bool filled = false;
            for (u32 k = 0; !filled && k < std::min(made_.link[link].slots, shm::max_slots); ++k) {
                const slot_word w = slot_word::of(load(c_.link[link].slot[k]));
                filled = w.state == slot_state::fill && w.tagged(j, version);
            }
            if (!filled)
                add(object,
                    fmt::format(
                        "is submitted, but no slot of the ring of {} is filled by it in its version {}",
                        made_.link[link].name, version));
        }
    }

    void link(u32 k) {
        const shm::link_block &l = c_.link[k], &m = made_.link[k];
        for (u32 g = 0; g < shm::max_groups; ++g) {
            const group_state s = group_word::of(load(l.group_state[g])).state;
            if (s == group_state::damaged) continue;
            const bool right = g < std::min(m.blocking, shm::max_blocking)
                                   ? s == group_state::blocking || s == group_state::closed
                               : g >= shm::max_blocking ? s == group_state::absent || s == group_state::latest
                                                        : s == group_state::absent;
            if (!right)
                add(fmt::format("ring of {}: group_state {}", m.name, g),
                    fmt::format("is {}, which is not possible for this group", static_cast<u32>(s)));
        }
        std::map<u64, u32> seen;
        for (u32 n = 0; n < std::min(m.slots, shm::max_slots); ++n) slot(k, n, seen);
    }

    void slot(u32 k, u32 n, std::map<u64, u32>& seen) {
        const shm::link_block &l = c_.link[k], &m = made_.link[k];
        const slot_word w = slot_word::of(load(l.slot[n]));
        const std::string object = fmt::format("ring of {}: slot {}", m.name, n);
        switch (w.state) {
            case slot_state::damaged:
                return;
            case slot_state::free:
                break;
            case slot_state::fill:
                tag(object, "filled", w.job, w.version, m.stage);
                break;
            case slot_state::quarantined:
                tag(object, "quarantined", w.job, w.version, m.stage);
                break;
            case slot_state::ready:
                ready(k, n, w, object, seen);
                break;
            default:
                add(object, fmt::format("is in the invalid state {}", static_cast<u32>(w.state)));
        }
        if (w.state == slot_state::free && (w.job != 0 || w.version != 0))
            add(object, "is free, but names a job");
        for (u32 g = 0; g < shm::max_groups; ++g) {
            if (g >= std::min(m.blocking, shm::max_blocking) && g < shm::max_blocking) continue;
            const lease_word lease = lease_word::of(load(l.group[n][g]));
            if (lease.state == lease_state::damaged) continue;
            const std::string word = fmt::format("{}, group {}", object, g);
            const bool newer = lease.generation != w.generation &&
                               ((lease.generation - w.generation) & generation_mask) < (u64{1} << 23);
            if (newer)
                add(word, fmt::format("is of generation {}, which is newer than its slot's generation {}",
                                      lease.generation, w.generation));
            else if (lease.generation != w.generation)
                continue;  // stale: reads as WAIT
            else if (lease.state == lease_state::leased && g < shm::max_blocking)
                tag(word, "leased", lease.job, lease.version, m.group_stage[g]);
            else if (w.state != slot_state::ready && lease.state != lease_state::wait)
                add(word, "has been read, but its slot holds no frame yet");
        }
    }

    // A READY slot lies in the window (or below the tail, where it waits to be freed), and each frame is in
    // only one slot.
    void ready(u32 k, u32 n, const slot_word& w, const std::string& object, std::map<u64, u32>& seen) {
        const shm::link_block& m = made_.link[k];
        const shm::frame_header& h = c_.frames[k].header[n];
        const u64 ring_sequence = h.ring_sequence.load(std::memory_order_relaxed), t = tail(k);
        if (ring_sequence == shm::no_number) return;  // check_parity
        if (stage_of_job(w.job) != m.stage)
            add(object, fmt::format("was made by job {}, which is not a job of {}", w.job, m.name));
        // A slot becomes READY only after its job is COMMITTED; the slots of a job's outputs become READY one
        // by one.
        if (const job_word maker = job(w.job);
            (maker.version & version_mask) == w.version &&
            (maker.state == job_state::open || maker.state == job_state::submitted ||
             maker.state == job_state::aborted))
            add(object,
                fmt::format("is ready, but its job {} has not committed version {}", w.job, w.version));
        // A rebuild enters the state before the first frame.
        const u64 first = made_.first_ring_sequence;
        const u64 oldest = is_ring_of_states(k) && first > 0 ? first - 1 : first;
        if (ring_sequence < oldest || (ring_sequence >= t && ring_sequence - t >= m.window))
            add(object + ": header.ring_sequence",
                fmt::format("is {}, the ring is at {} with a window of {}", ring_sequence, t, m.window));
        else if (beyond_end(ring_sequence))
            add(object + ": header.ring_sequence",
                fmt::format("is {}, which is beyond the end of the run ({})", ring_sequence, known_.end));
        if (const auto [other, fresh] = seen.try_emplace(ring_sequence, n); !fresh)
            add(object + ": header.ring_sequence",
                fmt::format("is {}, the same as in slot {}, but a frame can't be in two slots", ring_sequence,
                            other->second));
        if (!is_sealed(h, made_.parameters.bytes))
            add(fmt::format("{}: header of frame {}", object, ring_sequence),
                "has changed since its producer sealed it");
        for (u32 g = 0; ring_sequence < t && g < std::min(m.blocking, shm::max_blocking); ++g) {
            const lease_state passed =
                lease_word::of(load(c_.link[k].group[n][g])).seen_at(w.generation).state;
            if (passed == lease_state::wait || passed == lease_state::leased)
                add(fmt::format("{}, group {}", object, g),
                    fmt::format("has not passed frame {}, but the ring is at {}", ring_sequence, t));
        }
        for (u32 g = 0; g < std::min(m.blocking, shm::max_blocking); ++g) {
            const u32 every =
                std::max(made_.stage[std::min(m.group_stage[g], shm::max_stages - 1)].every, 1U);
            const lease_state had = lease_word::of(load(c_.link[k].group[n][g])).seen_at(w.generation).state;
            if (ring_sequence % every != 0 && (had == lease_state::leased || had == lease_state::done))
                add(fmt::format("{}, group {}", object, g),
                    fmt::format("has taken frame {}, but its stage takes only multiples of {}", ring_sequence,
                                every));
        }
        if (h.meta.is_tombstone() && h.meta.tombstone_stage >= made_.stages)
            add(object + ": header.tombstone_stage",
                fmt::format("names stage {}, but there are only {}", h.meta.tombstone_stage, made_.stages));
        if (h.metadata_bytes > shm::max_metadata_bytes)
            add(object + ": header.metadata_bytes", fmt::format("is {}, but there is room for only {}",
                                                                h.metadata_bytes, shm::max_metadata_bytes));
        if (static_cast<u32>(h.meta.clock) > static_cast<u32>(shm::capture_clock::recorded))
            add(object + ": header.clock",
                fmt::format("is {}, which is not a valid clock", static_cast<u32>(h.meta.clock)));
    }

    // The word of a number n in [T, T+N) is WAIT or LEASED at the lap of n; if n is done, the word is WAIT at
    // the next lap. The word is still LEASED at the previous lap if a helper has committed that frame and its
    // owner has not completed it yet.
    void source(u32 k) {
        const shm::source_block& q = made_.source[k];
        if (q.link >= shm::max_links) return;
        const u64 n = std::clamp(made_.link[q.link].window, 1U, shm::max_window), t = tail(q.link);
        for (u64 number = t; number < t + n; ++number) {
            const lease_word w = lease_word::of(load(c_.source[k].sequence_lease[number % n]));
            if (w.state == lease_state::damaged) continue;
            const std::string object = fmt::format("source {}: number {}", name_of_stage(q.stage), number);
            const u64 lap = lap_of(q, number, n);
            if (w.state != lease_state::wait && w.state != lease_state::leased)
                add(object, fmt::format("is in state {}, but a number can only be waiting or leased",
                                        static_cast<u32>(w.state)));
            else if (w.state == lease_state::leased && w.generation == ((lap - 1) & generation_mask) &&
                     job(w.job).state == job_state::committed)
                tag(object, "leased", w.job, w.version, q.stage);
            else if (w.generation != lap &&
                     (w.generation != ((lap + 1) & generation_mask) || w.state == lease_state::leased))
                add(object,
                    fmt::format("is in lap {}, but can only be in lap {} or later", w.generation, lap));
            else if (w.state == lease_state::leased)
                tag(object, "leased", w.job, w.version, q.stage);
            if (w.state == lease_state::leased && w.generation == lap && beyond_end(number))
                add(object,
                    fmt::format("is leased, although it is beyond the end of the run ({})", known_.end));
        }
    }

    /// Returns the READY slot of a frame, or none.
    [[nodiscard]] u32 ready_slot(u32 link, u64 ring_sequence) const {
        for (u32 n = 0; n < std::min(made_.link[link].slots, shm::max_slots); ++n)
            if (slot_word::of(load(c_.link[link].slot[n])).state == slot_state::ready &&
                c_.frames[link].header[n].ring_sequence.load(std::memory_order_relaxed) == ring_sequence)
                return n;
        return shm::none;
    }

    // The frame at a ring's tail is in the ring, in progress, or not yet begun. A frame that its producer has
    // completed is in the ring.
    void frame_at_tail(u32 k) {
        const shm::link_block& m = made_.link[k];
        const u64 t = tail(k);
        if ((end_is_number() && t >= known_.end) || ready_slot(k, t) != shm::none) return;
        const shm::stage_block& maker = made_.stage[std::min(m.stage, shm::max_stages - 1)];
        for (u32 s = maker.first_seat; s < std::min(maker.first_seat + maker.seats, shm::max_seats); ++s)
            for (u32 j = made_.seat[s].first_job;
                 j < std::min(made_.seat[s].first_job + made_.seat[s].jobs, shm::max_jobs); ++j)
                if (job(j).state != job_state::idle && load(c_.job_info[j].ring_sequence) == t) return;
        const std::string object = fmt::format("ring of {}: frame {}", m.name, t);
        if (maker.source < shm::max_sources) {
            // number t uses the word with the index t % n, where n is the window of the first output
            const u64 n = std::clamp(made_.link[std::min(maker.output_link[0], shm::max_links - 1)].window,
                                     1U, shm::max_window);
            const lease_word w = lease_word::of(load(c_.source[maker.source].sequence_lease[t % n]));
            if (w.generation == ((lap_of(made_.source[maker.source], t, n) + 1U) & generation_mask))
                add(object, "is finished by its source, but is in no slot");
            return;
        }
        for (u32 i = 0; i < std::min(maker.inputs, shm::max_inputs); ++i) {
            const u32 from = maker.input_link[i];
            if (from >= shm::max_links || maker.input_group[i] >= shm::max_blocking) continue;
            if (tail(from) > t) {
                add(object, fmt::format("is missing: the ring of {}, from which it comes, is at {}",
                                        made_.link[from].name, tail(from)));
                return;
            }
            const u32 slot = ready_slot(from, t);
            if (slot == shm::none) continue;
            const lease_word w = lease_word::of(load(c_.link[from].group[slot][maker.input_group[i]]))
                                     .seen_at(slot_word::of(load(c_.link[from].slot[slot])).generation);
            if (w.state == lease_state::done)
                add(object, fmt::format("is missing, although {} has finished it", maker.name));
        }
    }

    [[nodiscard]] bool is_ring_of_states(u32 k) const {
        const shm::stage_block& maker = made_.stage[std::min(made_.link[k].stage, shm::max_stages - 1)];
        return (maker.flags & shm::stage_flag::state) != 0 && maker.outputs > 0 &&
               maker.output_link[std::min(maker.outputs, shm::max_outputs) - 1] == k;
    }

    // In a ring of states, the slot of T - 1 is not freed: the next state is computed from it. A rebuild may
    // enter without it a ring whose reader is slower, where the next state is there already.
    void state_below_tail(u32 k) {
        const shm::link_block& m = made_.link[k];
        const u64 t = tail(k);
        if (!is_ring_of_states(k) || t <= made_.first_ring_sequence || ready_slot(k, t - 1) != shm::none ||
            ready_slot(k, t) != shm::none)
            return;
        for (u32 n = 0; n < std::min(m.slots, shm::max_slots); ++n)
            if (!intact(load(c_.link[k].slot[n])) ||
                c_.frames[k].header[n].ring_sequence.load(std::memory_order_relaxed) == shm::no_number)
                return;  // it may be in that slot
        add(fmt::format("ring of {}: state {}", m.name, t - 1),
            "is missing, but the next one is computed from it");
    }

    const shm::control_block& c_;
    const shm::control_block& made_;
    const known_run& known_;
    std::vector<finding> all_;
};

}  // namespace

std::vector<finding> check_words(const shm::control_block& c, const shm::control_block& made,
                                 const known_run& known) {
    return word_check(c, made, known).run();
}

}  // namespace carousel::ring
