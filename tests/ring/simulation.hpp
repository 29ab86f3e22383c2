#pragma once
// A run of the real ring code without processes: every participant is an object, every step of a stage is one
// call, and a seeded scheduler decides which participant moves next, is killed or wakes up as a zombie, and
// when a late device write lands. The protocol's guarantees are checked at every delivery. Parameters are
// changed all the time. So the production code itself is tested, with hours of crashes per second.
//
// Pipeline: source -> middle (1 or 2 instances) -> two sinks, plus a slow latest reader. With `fork` the
// source has one more ring, which a sink reads in addition to the middle's two.

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
    bool reach_moves = false;  ///< every process's own limit within its window goes up and down all the time
    bool fork = false;         ///< source and middle have two outputs, and a sink joins three of the four
    u32 every = 1;             ///< the sink on the left takes only each N-th frame
    u32 kills = 12;
    ring::first_counters first;   ///< initial values of the words' counters
    bool stop_early = false;      ///< END is unknown and a stop is requested in mid-run
    u64 ends_at = ~u64{0};        ///< the source ends its stream before that frame
    bool keeps_stopping = false;  ///< control: END is not lowered from STOPPING
    bool mps = false;  ///< a kill cuts the device's work short, and the events after it read as complete, as
                       ///< under MPS
    /// ends of MPS domains: all processes end at once, and the events of their unfinished work read as
    /// complete before any word is revoked; successors are in the next domain
    bool domain_ends = false;
    bool kill_first = false;  ///< control: the kill precedes the revocation
    u32 flips = 0;  ///< bits that flip in words, one word at a time; the supervisor repairs what it can
    bool flips_in_use = false;  ///< only in words of frames in progress
    bool interleaved =
        false;  ///< between a worker's read of a lease word and its CAS another process makes a step
    u32 check_every = 0;  ///< checks the block against block_check.hpp after every N steps; 0: never
};

struct simulation_result {
    u64 lost = 0, repeated = 0, torn = 0, late = 0, disorder = 0;
    u64 mixed = 0;   ///< frames with a set of parameters other than the one of their number
    u64 beyond = 0;  ///< deliveries of frames from END on
    u64 end = 0;     ///< END, once all frames are delivered
    bool stuck = false;
    u64 changes = 0;  ///< changes of the parameters
    u64 delivered = 0, helped = 0, seen_by_latest = 0, steps = 0;
    u32 kills_at[5] = {};
    u64 checks = 0, domain_ends = 0;
    u64 interleavings = 0;     ///< with `interleaved`
    u64 repaired = 0;          ///< words whose flipped bit was repaired from what the other words say
    u64 repaired_of[14] = {};  ///< of `repaired`, by ring::word_kind
    u64 respelled = 0;         ///< of `repaired`: not the original value, but an equivalent one
    u64 remade = 0;       ///< not repairable: the word is restored by the test instead of a rebuilt block
    std::string finding;  ///< the first finding; the histories break no rule, so it is a false positive
    [[nodiscard]] bool sound() const {
        return lost + repeated + torn + late + disorder + mixed + beyond == 0 && !stuck;
    }
};

[[nodiscard]] simulation_result simulate(const simulation_options& options);

/// The share of its usual histories that a test runs: a fifth under a sanitizer, which looks for invalid
/// accesses and takes ten times as long; every build without a sanitizer tests the protocol.
[[nodiscard]] constexpr u64 seeds(u64 usual) {
#ifdef CAROUSEL_SANITIZED
    return usual / 5;
#else
    return usual;
#endif
}

/// The options that a seed determines, in the histories of the ring and in their controls; both must be the
/// same.
[[nodiscard]] inline simulation_options usual_history(u64 seed) {
    simulation_options o;
    o.seed = seed;
    o.instances = seed % 3 == 0 ? 2 : 1;
    o.in_flight = 1 + static_cast<u32>(seed % 4);
    o.kills = 4 + static_cast<u32>(seed % 20);
    return o;
}

}  // namespace carousel::test
