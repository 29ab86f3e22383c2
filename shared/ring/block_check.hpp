#pragma once
// What is impossible in a control block: a process that writes where it must not may have hit any word of it.
// The checks compare a block with what was written when it was made, with what the supervisor knows by
// itself, and with the protocol's rules; each finding names the word, whose it is, and what can't be about
// it. Pure functions over a const block: they read each word once, check every index, and change nothing.
//
// Who may call: the supervisor's thread; tests. Which check may run when:
//   check_static  any time: static parts are written before the block is published and never again, sets of
//                 parameters by the caller alone;
//   check_known   any time, by the only one who changes these words (END, seats, entries, the growth of
//                 tails);
//   check_parity  any time: which words are damaged by one bit;
//   check_words   when nothing moves. In a running pipeline a frame that moves between two reads looks like
//                 damage; what stands through several looks is none (supervisor/engine/word_audit.hpp).
// A block without findings may still be damaged (a frame's own copy of its parameters, a counter): these are
// the rules that it can be held against.

#include <string>
#include <vector>

#include "ring/words.hpp"

namespace carousel::ring {

struct finding {
    std::string word;  ///< whose and which: "ring of vertex: tail"
    std::string what;  ///< "is 4711, beyond the end of the run (600)"
    [[nodiscard]] std::string text() const { return word + " " + what; }
    bool operator==(const finding&) const = default;
};

/// An incarnation that the supervisor has started, or knows to have been there.
struct known_process {
    u32 seat = shm::none, entry = shm::none, epoch = 0;
    u32 pid = 0;           ///< 0: not known
    bool current = false;  ///< sits on its seat: the seat's word names it
    bool standby = false;
    bool ready = false;  ///< it has said that it is LIVE, or could take over
    u64 start_time = 0;  ///< with the pid it names the process for good; 0: not known
};

/// What the supervisor knows without reading the block.
struct known_run {
    u64 end = end_unknown;  ///< as it was set: unknown, stopping or a number
    u64 surplus = 0;  ///< frames from END on that may be in work or in rings: a source has ended its stream
    std::vector<u64> tails;    ///< by link, seen last; empty: none yet
    u64 miscounted = ~u64{0};  ///< frames that `committed` of a ring may lack: each of an incarnation that
                               ///< ended between mark and count
    std::vector<u32> epochs;   ///< by seat: the present one; empty: not known
    std::vector<bool> paused;  ///< by seat: `carousel stop` has stopped it; empty: not known
    std::vector<known_process> processes;  ///< of all seats, the dead and unfenced among them
};

inline constexpr std::size_t most_findings = 16;

/// `made`: a copy of the block as it was published, whose parameters' sets and state are brought up to date
/// behind each change.
[[nodiscard]] std::vector<finding> check_static(const shm::control_block& c, const shm::control_block& made);
[[nodiscard]] std::vector<finding> check_known(const shm::control_block& c, const shm::control_block& made,
                                               const known_run& known);
[[nodiscard]] std::vector<finding> check_parity(const shm::control_block& c, const shm::control_block& made);
[[nodiscard]] std::vector<finding> check_words(const shm::control_block& c, const shm::control_block& made,
                                               const known_run& known);

}  // namespace carousel::ring
