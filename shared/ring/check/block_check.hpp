#pragma once
// Checks for impossible states in a control block: a wild write may have hit any word of it. The checks
// compare a block with what was written when it was made, with what the supervisor knows by itself, and with
// the protocol's rules; each finding names the word, its owner, and the contradiction. Pure functions over a
// const block: they read each word once, check every index, and change nothing.
//
// Callers: the supervisor's thread; tests. When each check may run:
//   check_static  any time: static parts are written before the block is published and never again, sets of
//                 parameters by the caller alone;
//   check_known   any time, by the only process that changes these words (END, seats, entries) or that has
//                 recorded their growth (tails);
//   check_parity  any time: which words are damaged by one bit;
//   check_words   when nothing moves. In a running pipeline a frame that moves between two reads looks like
//                 damage; only a finding that persists over several checks is damage
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
    bool current = false;  ///< holds its seat: the seat's word names it
    bool standby = false;
    bool ready = false;  ///< it has reported that it is LIVE, or could take over
    u64 start_time = 0;  ///< with the pid, identifies the process uniquely; 0: not known
};

/// What the supervisor knows without reading the block.
struct known_run {
    u64 end = end_unknown;  ///< as it was set: unknown, stopping or a number
    u64 surplus = 0;  ///< frames from END on that may be in work or in rings: a source has ended its stream
    std::vector<u64> tails;    ///< by link, as last seen; empty: none yet
    u64 miscounted = ~u64{0};  ///< frames that `committed` of a ring may lack: marked READY by a process that
                               ///< was interrupted or ended before it counted them
    std::vector<u32> epochs;   ///< by seat: the present epoch; empty: not known
    std::vector<bool> paused;  ///< by seat: `carousel stop` has stopped it; empty: not known
    std::vector<known_process> processes;  ///< of all seats, including dead and unfenced ones
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
