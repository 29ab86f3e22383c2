#pragma once
// Checks for impossible states in a control block: a wild write may have changed any word of it. The checks
// compare a block with the data that was written when it was made, with the supervisor's own data, and with
// the protocol's rules; each finding names the word, its owner, and the contradiction. Pure functions over a
// const block: they read each word once, check every index, and change nothing.
//
// Called by the supervisor's thread and by tests. Each check may run at the following times: check_static any
// time, because static parts are written before the block is published and never again, and sets of
// parameters only by the caller;
//   check_known   any time, by the only process that changes these words (END, seats, entries) or that has
//                 recorded their growth (tails);
//   check_parity  any time: which words are damaged by one bit;
//   check_words   when nothing moves. In a running pipeline a frame that advances between two reads can
//   appear as damage; only a finding that persists over several checks is damage
//                 (supervisor/engine/word_audit.hpp).
// A block without findings may still be damaged (a frame's own copy of its parameters, a counter): the checks
// cover only these rules.

#include <string>
#include <vector>

#include "ring/words.hpp"

namespace carousel::ring {

struct finding {
    std::string word;  ///< the word and its owner: "ring of vertex: tail"
    std::string what;  ///< "is 4711, beyond the end of the run (600)"
    [[nodiscard]] std::string text() const { return word + " " + what; }
    bool operator==(const finding&) const = default;
};

/// An incarnation that the supervisor has started, or knows to have existed.
struct known_process {
    u32 seat = shm::none, entry = shm::none, epoch = 0;
    u32 pid = 0;           ///< 0: not known
    bool current = false;  ///< the incarnation holds its seat: the seat's word names it
    bool standby = false;
    bool ready = false;  ///< it has reported that it is LIVE, or ready to take over
    u64 start_time = 0;  ///< with the pid, identifies the process uniquely; 0: not known
};

/// The data that the supervisor has without reading the block.
struct known_run {
    u64 end = end_unknown;  ///< END as it was set: unknown, stopping or a number
    u64 surplus = 0;  ///< number of frames from END on that may be in progress or in rings, because a source
                      ///< has ended its stream
    std::vector<u64> tails;    ///< by link, as last observed; empty: none yet
    u64 miscounted = ~u64{0};  ///< number of frames that may be missing from `committed` of a ring, because
                               ///< they were marked READY by a process that was interrupted or ended before
                               ///< it counted them
    std::vector<u32> epochs;   ///< by seat: the present epoch; empty: not known
    std::vector<bool> paused;  ///< by seat: `carousel stop` has paused it; empty: not known
    std::vector<known_process> processes;  ///< processes of all seats, including dead and unfenced ones
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

}  // namespace carousel::ring
