#pragma once
// A run of the ring's own objects for a test of one rule: a control block of a plan, and workers on its
// seats.

#include <memory>

#include "ring/recovery.hpp"
#include "ring/topology.hpp"
#include "ring/worker.hpp"
#include "shm/segment.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

struct seated {
    ring::incarnation_id incarnation;
    std::unique_ptr<ring::worker> w;
};

struct bench {
    shm::private_block c = shm::make_private_block();

    explicit bench(ring::plan p) {
        for (ring::stage_plan& s : p.stages) s.slot_bytes = 256;
        ring::initialise(*c, p);
    }
    seated sit(u32 seat) const {
        seated s;
        const u32 before = ring::seat_word::of(ring::load(c->seat[seat].current)).epoch;
        s.incarnation = ring::appoint(*c, seat);
        REQUIRE(s.incarnation);
        (void)ring::revoke(*c, seat, 0);  // the incarnation that the words of a fresh block belong to
        (void)ring::revoke(*c, seat, before);
        REQUIRE(ring::claim(*c, s.incarnation) == ring::claim_result::ok);
        REQUIRE(ring::go_live(*c, s.incarnation));
        s.w =
            std::make_unique<ring::worker>(*c, s.incarnation.seat, s.incarnation.entry, s.incarnation.epoch);
        return s;
    }
    seated die(const seated& dead, ring::blame why, u32 in_flight) const {
        ring::doom(*c, dead.incarnation.entry);
        seated successor = sit(dead.incarnation.seat);
        REQUIRE(ring::revoke(*c, dead.incarnation.seat, dead.incarnation.epoch));
        (void)ring::requeue(*c, dead.incarnation.seat, dead.incarnation.epoch, why, in_flight);
        fence(dead, why);
        return successor;
    }
    /// The end of a retirement: the process has ended.
    void fence(const seated& dead, ring::blame why = ring::blame::none) const {
        ring::mark_fenced(*c, dead.incarnation.entry);
        (void)ring::requeue(*c, dead.incarnation.seat, dead.incarnation.epoch, why, 0);
        REQUIRE(ring::reclaim(*c, dead.incarnation.seat, dead.incarnation.epoch));
    }
    [[nodiscard]] ring::job_word job(u32 k) const { return ring::job_word::of(ring::load(c->job[k])); }
    [[nodiscard]] ring::slot_word slot(u32 link, u32 k) const {
        return ring::slot_word::of(ring::load(c->link[link].slot[k]));
    }
    [[nodiscard]] ring::lease_word lease(u32 link, u32 slot, u32 group) const {
        return ring::lease_word::of(ring::load(c->link[link].group[slot][group]));
    }
};

/// Passes one frame through the worker's stage; returns its ring sequence.
inline u64 pass(ring::worker& w, u32 in_flight = 0) {
    ring::job j;
    REQUIRE(w.begin(j, in_flight) == ring::outcome::ok);
    REQUIRE(w.submit(j));
    REQUIRE(w.commit(j));
    REQUIRE(w.complete(j));
    return j.ring_sequence;
}

/// source -> sink.
inline ring::plan chain() {
    ring::plan p;
    p.stages = {{"source", {}, true}, {"sink", {0}, false}};
    return p;
}

/// source -> middle -> sink.
inline ring::plan chain_of_three() {
    ring::plan p;
    p.stages = {{"source", {}, true}, {"middle", {0}, true}, {"sink", {1}, false}};
    return p;
}

/// A source with two rings -> a sink that joins them.
inline ring::plan fork_and_join() {
    ring::plan p;
    p.stages = {{"source", {}, true}, {"join", {0, 0}, false}};
    p.stages[0].more = {{"source.depth", 0, 256}};
    p.stages[1].input_outputs = {0, 1};
    return p;
}

}  // namespace carousel::test
