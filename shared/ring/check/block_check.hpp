#pragma once
// Checks for impossible states in a control block: a wild write may have changed any word of it. The checks
// compare a block with the data that was written when it was made, with the supervisor's own data, and with
// the protocol's rules; each finding names the word, its owner, and the contradiction. The checks are pure
// functions over a const block: they read each word once, check every index, and change nothing.
// Called by the supervisor's thread and by tests. Each check may run at the following times:
//   check_static  At any time: static parts are written before the block is published and never again, and
//                 sets of parameters are written only by the caller.
//   check_known   At any time, by the only process that changes these words (END, seats, entries) or that has
//                 recorded their growth (tails).
//   check_parity  At any time; it finds the words that are damaged by one bit.
//   check_words   When no frame advances. In a running pipeline a frame that advances between two reads can
//                 appear as damage; only a finding that persists over several checks is damage
//                 (supervisor/engine/block_custodian.hpp).
// The checks cover only these rules, so a block without findings may still be damaged, for example in a
// counter or in a frame's own copy of its parameters.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ring/words.hpp"
#include "shm/control_block.hpp"

namespace carousel::ring {

struct finding {
    std::string word;  ///< the word and its owner: "ring of vertex: tail"
    std::string what;  ///< "is 4711, which is beyond the end of the run (600)"
    [[nodiscard]] std::string text() const { return word + " " + what; }
    bool operator==(const finding&) const = default;
};

/// An incarnation that the supervisor has started, or knows to have existed.
struct known_process {
    u32 seat = shm::none, entry = shm::none, epoch = 0;
    u32 pid = 0;           ///< 0: not known
    bool current = false;  ///< the incarnation holds its seat: the seat's word names it
    bool standby = false;
    bool ready = false;  ///< the incarnation has reported that it is LIVE, or that it is ready to take over
    u64 start_time = 0;  ///< pid and start time together identify the process; 0: not known
};

/// The data that the supervisor has without reading the block.
struct known_run {
    u64 end = end_unknown;  ///< the value to which END was set: unknown, stopping or a number
    u64 surplus = 0;  ///< number of frames that are not below END and may still be in progress or in rings,
                      ///< because a source has ended its stream
    std::vector<u64> tails;  ///< the last observed tail of each link; empty: none observed yet
    u64 miscounted =
        ~u64{0};  ///< number of frames by which a ring's `committed` may be too low: a process marked these
                  ///< frames READY and was interrupted or ended before it counted them
    std::vector<u32> epochs;   ///< the present epoch of each seat; empty: not known
    std::vector<bool> paused;  ///< for each seat, whether `carousel stop` has paused it; empty: not known
    std::vector<known_process> processes;  ///< processes of all seats, including dead processes and processes
                                           ///< that are not fenced yet
};

inline constexpr std::size_t most_findings = 16;

/// `made`: a copy of the block as it was published; its parameter sets and their state are updated after each
/// change.
[[nodiscard]] std::vector<finding> check_static(const shm::control_block& c, const shm::control_block& made);
[[nodiscard]] std::vector<finding> check_known(const shm::control_block& c, const shm::control_block& made,
                                               const known_run& known);
[[nodiscard]] std::vector<finding> check_parity(const shm::control_block& c, const shm::control_block& made);
[[nodiscard]] std::vector<finding> check_words(const shm::control_block& c, const shm::control_block& made,
                                               const known_run& known);

// All authoritative words of a block, one after the other, each with its place, for code that checks or
// repairs them. The set of words is taken from `made` (the supervisor's copy), never from the block itself.
// Any process that maps the block may call this; it changes nothing. Makes at most a few thousand reads.

enum class word_kind : u8 {
    end,
    parameters,
    tail,
    group,          ///< (ring, group)
    slot,           ///< (ring, slot)
    lease,          ///< (ring, slot, group)
    header,         ///< (ring, slot): the sequence in the header
    sequence,       ///< (source, index)
    claim,          ///< (source)
    seat,           ///< (seat)
    entry,          ///< (entry)
    job,            ///< (job)
    ring_sequence,  ///< (job): the sequence of the frame that the job works on
    asset,          ///< (asset)
};
inline constexpr u32 word_kinds = 14;

struct word_place {
    word_kind kind = word_kind::end;
    u32 first = 0, second = 0, third = 0;
    bool operator==(const word_place&) const = default;
};

/// Returns the name of the word, for messages: "ring of vertex: slot 3, group 1"
[[nodiscard]] std::string name_of(const shm::control_block& made, const word_place& at);

/// Calls fn(word, place) for each word. `Block`: a control_block, const or not.
template <typename Block, typename F>
void for_each_word(Block& c, const shm::control_block& made, F&& fn) {
    using enum word_kind;
    fn(c.end.raw(), word_place{end});
    fn(c.parameters.state, word_place{parameters});
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k) {
        auto& l = c.link[k];
        fn(l.tail.raw(), word_place{tail, k});
        const u32 blocking = std::min(made.link[k].blocking, shm::max_blocking);
        const auto in_use = [&](u32 g) { return g < blocking || g >= shm::max_blocking; };
        for (u32 g = 0; g < shm::max_groups; ++g)
            if (in_use(g)) fn(l.group_state[g], word_place{group, k, g});
        for (u32 n = 0; n < std::min(made.link[k].slots, shm::max_slots); ++n) {
            fn(l.slot[n], word_place{slot, k, n});
            for (u32 g = 0; g < shm::max_groups; ++g)
                if (in_use(g)) fn(l.group[n][g], word_place{lease, k, n, g});
            fn(c.frames[k].header[n].ring_sequence.raw(), word_place{header, k, n});
        }
    }
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u32 from = std::min(made.source[k].link, shm::max_links - 1);
        for (u32 n = 0; n < std::min(made.link[from].window, shm::max_window); ++n)
            fn(c.source[k].sequence_lease[n], word_place{sequence, k, n});
        fn(c.source[k].ended, word_place{claim, k});
    }
    for (u32 k = 0; k < std::min(made.seats, shm::max_seats); ++k) fn(c.seat[k].current, word_place{seat, k});
    for (u32 k = 0; k < shm::max_incarnations; ++k) fn(c.entry[k].identity, word_place{entry, k});
    for (u32 k = 0; k < std::min(made.jobs, shm::max_jobs); ++k) {
        fn(c.job[k], word_place{job, k});
        fn(c.job_info[k].ring_sequence.raw(), word_place{ring_sequence, k});
    }
    for (u32 k = 0; k < std::min(made.assets, shm::max_assets); ++k)
        fn(c.asset[k].state, word_place{asset, k});
}

// The names that messages about words use for stages and seats.

/// `made` is the supervisor's own copy of the block as it was made; `stage` may be any number, also an
/// invalid one.
[[nodiscard]] inline std::string stage_name(const shm::control_block& made, u32 stage) {
    return stage < std::min(made.stages, shm::max_stages) ? std::string(made.stage[stage].name)
                                                          : fmt::format("stage {}", stage);
}

/// "vertex", or "vertex.1" if the stage has several seats.
[[nodiscard]] inline std::string seat_name(const shm::control_block& made, u32 seat) {
    const shm::seat_block& s = made.seat[std::min(seat, shm::max_seats - 1)];
    const bool several = s.stage < shm::max_stages && made.stage[s.stage].seats > 1;
    return several ? fmt::format("{}.{}", stage_name(made, s.stage), s.instance) : stage_name(made, s.stage);
}

}  // namespace carousel::ring
