#pragma once
// A run of the real ring code without processes: every participant is an object, every step of a stage is one
// call, and a seeded scheduler decides who goes next, who is killed, who wakes up as a zombie and when a late
// device write lands. What the protocol promises is checked at every delivery. Parameters are changed all the
// time. So the code that runs in production is what is tested, in hours of crashes a second.
//
// Pipeline: source -> middle (1 or 2 instances) -> two sinks, plus a latest reader that dawdles. With `fork`
// the source has a ring more, which a sink reads beside the middle's two.

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ring/helper.hpp"
#include "ring/latest.hpp"
#include "ring/recovery.hpp"
#include "ring/topology.hpp"
#include "ring/worker.hpp"

namespace carousel::test {

struct simulation_options {
    u64 seed = 1;
    u64 frames = 40;
    u32 instances = 1;
    u32 in_flight = 2;
    u32 window = 0;            ///< of both rings; 0: derived
    bool reach_moves = false;  ///< every process's own bound within its window goes up and down all the time
    bool fork = false;         ///< source and middle have two outputs, and a sink joins three of the four
    u32 kills = 12;
    ring::first_counters first;   ///< where the words' counters begin
    bool stop_early = false;      ///< END is unknown and a stop is asked for in mid-run
    u64 ends_at = ~u64{0};        ///< the source ends its stream before that frame
    bool keeps_stopping = false;  ///< control: END is not lowered from STOPPING
    bool mps = false;  ///< a kill cuts the device's work short, and the events behind it read as complete, as
                       ///< MPS's do
    bool kill_first = false;  ///< control: the kill comes before the revocation
    u32 flips = 0;  ///< bits that flip in words, one word at a time; the supervisor mends what it can
    bool flips_in_use = false;  ///< in words of frames in work alone
    bool interleaved =
        false;            ///< between a worker's reading of a lease word and its CAS another process moves
    u32 check_every = 0;  ///< holds the block against block_check.hpp after each so-many steps; 0: never
};

struct simulation_result {
    u64 lost = 0, repeated = 0, torn = 0, late = 0, disorder = 0;
    u64 mixed = 0;   ///< frames with another set of parameters than their number's
    u64 beyond = 0;  ///< deliveries of frames from END on
    u64 end = 0;     ///< END, once all is delivered
    bool stuck = false;
    u64 changes = 0;  ///< of the parameters
    u64 delivered = 0, helped = 0, seen_by_latest = 0, steps = 0;
    u32 kills_at[5] = {};
    u64 checks = 0;
    u64 interleavings = 0;     ///< with `interleaved`
    u64 repaired = 0;          ///< words whose flipped bit was made good by what the others say
    u64 repaired_of[14] = {};  ///< of these, by ring::word_kind
    u64 respelled = 0;         ///< of these: not what was there, but what means the same
    u64 remade = 0;            ///< nobody could tell: the word is put back by hand, for a block made anew
    std::string finding;       ///< the first one; the histories break no rule, so it is a false one
    [[nodiscard]] bool sound() const {
        return lost + repeated + torn + late + disorder + mixed + beyond == 0 && !stuck;
    }
};

[[nodiscard]] simulation_result simulate(const simulation_options& options);

/// How many of its usual histories a test goes through: a fifth under a sanitizer, which looks for accesses
/// that are none of the code's and takes ten times as long; every build without one tells of the protocol.
[[nodiscard]] constexpr u64 seeds(u64 usual) {
#ifdef CAROUSEL_SANITIZED
    return usual / 5;
#else
    return usual;
#endif
}

/// What a seed stands for in the histories of the ring and in their controls, which must be the same.
[[nodiscard]] inline simulation_options usual_history(u64 seed) {
    simulation_options o;
    o.seed = seed;
    o.instances = seed % 3 == 0 ? 2 : 1;
    o.in_flight = 1 + static_cast<u32>(seed % 4);
    o.kills = 4 + static_cast<u32>(seed % 20);
    return o;
}

}  // namespace carousel::test
