#pragma once
// All authoritative words of a block, one after the other, each with its place, for code that checks or
// repairs them. The set of words is taken from `made` (the supervisor's copy), never from the block itself.
//
// Any process that maps the block may call this; it changes nothing. Makes at most a few thousand reads.

#include <algorithm>
#include <string>

#include "ring/words.hpp"

namespace carousel::ring {

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

}  // namespace carousel::ring
