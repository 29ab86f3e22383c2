// One ring by its words: what advances the tail, what frees a buffer, and which readers pin it.

#include "ring/latest.hpp"
#include "ring/stream_end.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {
bool contains_free(const bench& b, u32 link) {
    for (u32 k = 0; k < b.c->link[link].slots; ++k)
        if (b.slot(link, k).state == slot_state::free) return true;
    return false;
}
}  // namespace

TEST_CASE("the tail waits for every blocking group, and a buffer below it is free at once") {
    plan p;
    p.stages = {{"source", {}, true}, {"left", {0}, false}, {"right", {0}, false}};
    bench b(p);
    const seated source = b.sit(0), left = b.sit(1), right = b.sit(2);
    CHECK(pass(*source.w) == 0);
    CHECK(pass(*left.w) == 0);
    CHECK(b.c->link[0].tail.load() == 0);
    CHECK(b.slot(0, 0).state == slot_state::ready);
    CHECK(pass(*right.w) == 0);
    CHECK(b.c->link[0].tail.load() == 1);
    CHECK(b.slot(0, 0) == slot_word{2, 0, 0, slot_state::free});
}

TEST_CASE("a group whose optional stage has failed permanently is skipped, and the frames are counted") {
    plan p;
    p.stages = {{"source", {}, true}, {"left", {0}, false}, {"right", {0}, false}};
    bench b(p);
    const seated source = b.sit(0), left = b.sit(1);
    CHECK(pass(*source.w) == 0);
    CHECK(pass(*left.w) == 0);
    CHECK(b.c->link[0].tail.load() == 0);
    CHECK(close_group(*b.c, 0, 1));
    CHECK_FALSE(close_group(*b.c, 0, 1));
    CHECK(b.c->link[0].tail.load() == 1);
    CHECK(b.c->link[0].skipped[1].load() == 1);
}

TEST_CASE("the tail waits for a reopened group, which gets all later frames") {
    plan p;
    p.stages = {{"source", {}, true}, {"left", {0}, false}, {"right", {0}, false}};
    bench b(p);
    const seated source = b.sit(0), left = b.sit(1), right = b.sit(2);
    close_group(*b.c, 0, 1);
    CHECK(pass(*source.w) == 0);
    CHECK(pass(*left.w) == 0);
    CHECK(b.c->link[0].tail.load() == 1);
    open_group(*b.c, 0, 1);
    CHECK(pass(*source.w) == 1);
    CHECK(pass(*left.w) == 1);
    CHECK(b.c->link[0].tail.load() == 1);
    CHECK(pass(*right.w) == 1);
    CHECK(b.c->link[0].tail.load() == 2);
    CHECK(b.c->link[0].skipped[1].load() == 1);
}

TEST_CASE("a lease of a viewer may last as long as its own ring allows") {
    plan p;
    p.stages = {{"source", {}, true}, {"sink", {0, 0}, false}};
    p.stages[0].more = {{"source.depth", 0, 256, 5000}};
    p.stages[1].input_outputs = {0, 1};
    p.latest_lease_ns = 1000;
    bench b(p);
    const seated source = b.sit(0);
    latest_reader first(*b.c, 0, shm::max_incarnations), second(*b.c, 1, shm::max_incarnations);
    CHECK(pass(*source.w) == 0);
    REQUIRE(first.acquire());
    REQUIRE(second.acquire());
    const auto since = [&](u32 link, const latest_reader& r) {
        return b.c->link[link].lease_since_ns[r.group()].load();
    };
    CHECK(revoke_stale_leases(*b.c, 0, since(0, first) + 1000));
    CHECK_FALSE(revoke_stale_leases(*b.c, 1, since(1, second) + 4999));
    CHECK(revoke_stale_leases(*b.c, 1, since(1, second) + 5000));
    CHECK_FALSE(second.release());
}

TEST_CASE("a frame that a sink does not take passes it without a wait, and is counted") {
    plan p;
    p.stages = {{"source", {}, true}, {"left", {0}, false}, {"right", {0}, false}};
    p.stages[2].every = 3;
    bench b(p);
    const seated source = b.sit(0), left = b.sit(1), right = b.sit(2);
    for (u64 n = 0; n < 6; ++n) CHECK(pass(*source.w) == n);
    CHECK(pass(*right.w) == 0);
    u64 next = 0;
    CHECK(right.w->peek(0, next) == outcome::ok);
    CHECK(next == 3);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*left.w) == n);
    CHECK(b.c->link[0].tail.load() == 3);  // frames 1 and 2, and not frame 3
    CHECK(b.c->link[0].skipped[1].load() == 2);
    CHECK(pass(*right.w) == 3);
    for (u64 n = 3; n < 6; ++n) CHECK(pass(*left.w) == n);
    CHECK(b.c->link[0].tail.load() == 6);
    CHECK(b.c->link[0].skipped[1].load() == 4);
    job j;
    CHECK(right.w->begin(j, 0) == outcome::empty);
}

TEST_CASE(
    "a frame that a sink takes is neither closed nor freed if its header shows one that it does not take") {
    plan p = chain();
    p.stages[1].every = 3;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 0; n < 4; ++n) CHECK(pass(*source.w) == n);
    CHECK(pass(*sink.w) == 0);
    REQUIRE(b.c->link[0].tail.load() == 3);
    u32 slot = 0;
    while (b.slot(0, slot).state != slot_state::ready) REQUIRE(++slot < b.c->link[0].slots);
    b.c->frames[0].header[slot].ring_sequence.store(1);
    link_ref(*b.c, 0).sweep();
    CHECK(b.slot(0, slot).state == slot_state::ready);
    CHECK(b.lease(0, slot, 0).state == lease_state::wait);
    CHECK(b.c->link[0].skipped[0].load() == 2);
}

TEST_CASE("a successor of a sink that takes each third frame gets the frame that it died over") {
    plan p = chain();
    p.stages[1].every = 3;
    bench b(p);
    const seated source = b.sit(0);
    seated sink = b.sit(1);
    for (u64 n = 0; n < 5; ++n) CHECK(pass(*source.w) == n);
    CHECK(pass(*sink.w) == 0);
    job j;
    REQUIRE(sink.w->begin(j, 0) == outcome::ok);
    CHECK(j.ring_sequence == 3);
    CHECK(b.c->link[0].tail.load() == 3);
    const seated successor = b.die(sink, blame::none, 1);
    CHECK(pass(*successor.w) == 3);
    CHECK(b.c->link[0].tail.load() == 5);
}

TEST_CASE("a frame that passed one input while its group was closed passes all inputs") {
    for (const u32 opened_first : {0U, 1U}) {
        INFO("input " << opened_first);
        plan p;
        p.stages = {
            {"source", {}, true}, {"middle", {0}, true}, {"other", {0, 1}, false}, {"port", {0, 1}, false}};
        p.stages[3].skips = true;
        bench b(p);
        const seated source = b.sit(0), middle = b.sit(1), other = b.sit(2);
        const shm::stage_block& port_stage = b.c->stage[3];
        const u32 closed = 1 - opened_first;
        close_group(*b.c, port_stage.input_link[closed], port_stage.input_group[closed]);
        CHECK(pass(*source.w) == 0);
        CHECK(pass(*middle.w) == 0);
        CHECK(pass(*other.w) == 0);
        open_group(*b.c, port_stage.input_link[closed], port_stage.input_group[closed]);
        CHECK(b.c->link[port_stage.input_link[closed]].tail.load() == 1);
        CHECK(b.c->link[port_stage.input_link[opened_first]].tail.load() == 0);
        const seated port = b.sit(3);
        CHECK(port.w->peek(0) == outcome::empty);
        CHECK(b.c->link[port_stage.input_link[opened_first]].tail.load() == 1);
        CHECK(pass(*source.w) == 1);
        CHECK(pass(*middle.w) == 1);
        CHECK(pass(*port.w) == 1);
        CHECK(pass(*other.w) == 1);
        for (const u32 link : {0U, 1U}) CHECK(b.c->link[link].tail.load() == 2);
    }
}

TEST_CASE("with an outdated view of a refilled slot no frame passes the other inputs") {
    plan p;
    p.stages = {
        {"source", {}, true}, {"middle", {0}, true}, {"other", {0, 1}, false}, {"port", {0, 1}, false}};
    p.stages[3].skips = true;
    bench b(p);
    const seated source = b.sit(0), middle = b.sit(1), other = b.sit(2);
    const shm::stage_block& stage = b.c->stage[3];
    std::optional<link_ref> input[shm::max_inputs];
    for (u32 i = 0; i < 2; ++i) input[i].emplace(*b.c, stage.input_link[i]);
    CHECK(pass(*source.w) == 0);
    CHECK(pass(*middle.w) == 0);
    ready_map ready[shm::max_inputs];
    input[0]->read_ready(ready[0]);
    const slot_ref outdated = ready[0].at[0];
    for (u32 i = 0; i < 2; ++i) close_group(*b.c, stage.input_link[i], stage.input_group[i]);
    CHECK(pass(*other.w) == 0);
    for (u32 i = 0; i < 2; ++i) open_group(*b.c, stage.input_link[i], stage.input_group[i]);
    u64 refilled = 0;  // the frame that is in that slot now
    for (u64 n = 1; refilled == 0 && n < 8; ++n) {
        REQUIRE(source.w->peek(0) == outcome::ok);
        REQUIRE(pass(*source.w) == n);
        REQUIRE(pass(*middle.w) == n);
        input[0]->read_ready(ready[0]);
        if (ready[0].at[n - ready[0].tail].index == outdated.index) refilled = n;
    }
    REQUIRE(refilled != 0);
    input[1]->read_ready(ready[1]);
    // As read by a process that stopped between reading the slot word of the old frame and the header of the
    // new one.
    ready[0].at[refilled - ready[0].tail] = {outdated.index, outdated.word, refilled};
    let_partial_frames_pass(stage, input, ready);
    u64 raw = 0;
    const slot_ref& slot = ready[1].at[refilled - ready[1].tail];
    CHECK(input[1]->lease(slot, stage.input_group[1], raw).state == lease_state::wait);
}

TEST_CASE("only the job that has filled a slot makes it READY") {
    bench b(chain());
    link_ref link(*b.c, 0);
    const slot_ref s = link.claim(3, 9);
    REQUIRE(s);
    CHECK_FALSE(link.mark_ready(s.index, 3, 10));
    CHECK_FALSE(link.mark_ready(s.index, 4, 9));
    CHECK(b.slot(0, s.index).state == slot_state::fill);
    CHECK(link.mark_ready(s.index, 3, 9));
    CHECK_FALSE(link.mark_ready(s.index, 3, 9));
}

TEST_CASE("a viewer's lease pins its slot, until it is given back or has become stale") {
    plan p = chain();
    p.latest_lease_ns = 1000;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    latest_reader viewer(*b.c, 0, shm::max_incarnations);
    REQUIRE(viewer.joined());
    CHECK(pass(*source.w) == 0);
    const slot_ref held = viewer.acquire();
    REQUIRE(held);
    CHECK(pass(*sink.w) == 0);
    CHECK(b.c->link[0].tail.load() == 1);
    CHECK(b.slot(0, held.index).state == slot_state::ready);  // pinned
    const u64 since = b.c->link[0].lease_since_ns[viewer.group()].load();
    CHECK(since > 0);
    SECTION("given back") {
        CHECK(viewer.release());
        CHECK(b.slot(0, held.index).state == slot_state::free);
    }
    SECTION("stale") {
        const auto frozen = [](u64 from) { return from + 500; };  // time in which the run was stopped
        CHECK_FALSE(revoke_stale_leases(*b.c, 0, since + 1499, frozen));
        CHECK_FALSE(revoke_stale_leases(*b.c, 0, since + 999));
        CHECK(b.slot(0, held.index).state == slot_state::ready);
        CHECK(revoke_stale_leases(*b.c, 0, since + 1000));
        CHECK(b.slot(0, held.index).state == slot_state::free);
        CHECK(b.c->link[0].skipped[viewer.group()].load() == 1);
        CHECK_FALSE(viewer.release());  // the data that it has read is discarded
    }
}

TEST_CASE("a slot is closed to viewers before it is free") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    latest_reader viewer(*b.c, 0, shm::max_incarnations);
    CHECK(pass(*source.w) == 0);
    CHECK(pass(*source.w) == 1);
    CHECK(pass(*sink.w) == 0);
    CHECK(b.lease(0, 0, viewer.group()).state == lease_state::skipped);
    CHECK(b.c->link[0].skipped[viewer.group()].load() == 1);
}

TEST_CASE("the newest frame stays for a late viewer until it was read or a newer one exists") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    latest_reader viewer(*b.c, 0, shm::max_incarnations);
    for (u64 n = 0; n < 3; ++n) {
        CHECK(pass(*source.w) == n);
        CHECK(pass(*sink.w) == n);
    }
    CHECK(b.c->link[0].tail.load() == 3);
    CHECK(b.c->link[0].skipped[viewer.group()].load() == 2);
    const slot_ref newest = viewer.acquire();
    REQUIRE(newest);
    CHECK(newest.ring_sequence == 2);
    CHECK(viewer.release());
    CHECK(b.slot(0, newest.index).state == slot_state::free);
    CHECK_FALSE(viewer.acquire());
    latest_reader second(*b.c, 0, shm::max_incarnations);
    CHECK(pass(*source.w) == 3);
    CHECK(pass(*sink.w) == 3);
    REQUIRE(viewer.acquire());
    CHECK(viewer.release());
    const slot_ref seconds = second.acquire();  // the first group has had it, the second has not
    REQUIRE(seconds);
    CHECK(seconds.ring_sequence == 3);
}

TEST_CASE("a frame that is kept for a viewer is released when the viewer detaches") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    auto viewer = std::make_unique<latest_reader>(*b.c, 0, shm::max_incarnations);
    latest_reader stays(*b.c, 0, shm::max_incarnations);
    CHECK(pass(*source.w) == 0);
    REQUIRE(stays.acquire());
    CHECK(stays.release());
    CHECK(pass(*sink.w) == 0);
    REQUIRE(b.slot(0, 0).state == slot_state::ready);
    viewer.reset();
    CHECK(link_ref(*b.c, 0).sweep());
    CHECK(b.slot(0, 0).state == slot_state::free);
}

TEST_CASE("a successor after a death gets the newest frame that its predecessor had") {
    bench b(chain());
    const seated source = b.sit(0);
    CHECK(pass(*source.w) == 0);
    for (u32 round = 0; round < shm::max_latest; ++round) {
        latest_reader viewer(*b.c, 0, shm::max_incarnations);
        const slot_ref newest = viewer.acquire();
        REQUIRE(newest.index != shm::none);
        CHECK(newest.ring_sequence == 0);
        CHECK(viewer.release());
    }
}

TEST_CASE("an older frame is not kept when the newest has gone") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    latest_reader holds(*b.c, 0, shm::max_incarnations), waits(*b.c, 0, shm::max_incarnations);
    CHECK(pass(*source.w) == 0);
    const slot_ref older = holds.acquire();
    REQUIRE(older);
    CHECK(pass(*source.w) == 1);
    CHECK(pass(*sink.w) == 0);
    REQUIRE(waits.acquire());
    CHECK(waits.release());
    // It passes the newest frame without having checked it, as does a reader whose lease was revoked.
    const u32 newest = 1 - older.index;
    b.c->link[0].group[newest][holds.group()].store(
        lease_word{b.slot(0, newest).generation, 0, 0, 0, lease_state::skipped}.pack());
    CHECK(pass(*sink.w) == 1);
    CHECK(b.slot(0, newest).state == slot_state::free);
    CHECK(b.lease(0, older.index, waits.group()).state == lease_state::wait);
    CHECK(holds.release());
    CHECK(b.slot(0, older.index).state == slot_state::free);
}

TEST_CASE("older frames make room before the newest, which is then kept") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    auto holds = std::make_unique<latest_reader>(*b.c, 0, shm::max_incarnations);
    const latest_reader waits(*b.c, 0, shm::max_incarnations);
    CHECK(pass(*source.w) == 0);
    REQUIRE(holds->acquire());
    CHECK(pass(*source.w) == 1);
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*sink.w) == 1);
    link_ref link(*b.c, 0);
    for (u32 k = 2; k < link.slots(); ++k) REQUIRE(link.claim(3, k));
    CHECK_FALSE(link.has_free_slot());
    holds.reset();  // one sweep
    CHECK(b.slot(0, 0).state == slot_state::free);
    CHECK(b.slot(0, 1).state == slot_state::ready);
}

TEST_CASE("a frame that is kept for a viewer gives way where no other slot is free") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    latest_reader viewer(*b.c, 0, shm::max_incarnations);
    CHECK(pass(*source.w) == 0);
    CHECK(pass(*sink.w) == 0);
    const slot_word kept = b.slot(0, 0);
    REQUIRE(kept.state == slot_state::ready);
    link_ref link(*b.c, 0);
    for (u32 k = 1; k < link.slots(); ++k) {
        CHECK_FALSE(link.sweep());
        CHECK(b.slot(0, 0) == kept);
        REQUIRE(link.claim(3, k));
    }
    CHECK_FALSE(link.has_free_slot());
    CHECK(link.sweep());
    CHECK(b.slot(0, 0) == kept.freed());
    CHECK(b.lease(0, 0, viewer.group()).state == lease_state::skipped);
}

TEST_CASE("a viewer takes the newest frame, and no frame twice") {
    bench b(chain());
    const seated source = b.sit(0);
    latest_reader viewer(*b.c, 0, shm::max_incarnations);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    slot_ref s = viewer.acquire();
    REQUIRE(s);
    CHECK(s.ring_sequence == 2);
    CHECK(viewer.release());
    CHECK_FALSE(viewer.acquire());
    CHECK(pass(*source.w) == 3);
    s = viewer.acquire();
    CHECK(s.ring_sequence == 3);
}

TEST_CASE("places for viewers are freed when members leave or are dismissed, with their leases") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    for (u32 k = 0; k < 3 * shm::max_latest; ++k) {
        const latest_reader passing(*b.c, 0, shm::max_incarnations);
        REQUIRE(passing.joined());
    }
    for (u32 k = 0; k < 3 * shm::max_latest; ++k) {  // each dies with a leased frame
        auto* dead = new latest_reader(*b.c, 0, k);  // NOLINT: a dead process runs no destructor
        REQUIRE(dead->joined());
        CHECK(pass(*source.w) == k);
        const slot_ref held = dead->acquire();
        REQUIRE(held);
        CHECK(pass(*sink.w) == k);
        CHECK(b.slot(0, held.index).state == slot_state::ready);
        dismiss_latest(*b.c, k);
        CHECK(b.slot(0, held.index).state == slot_state::free);
        CHECK_FALSE(dead->release());
        operator delete(dead);
    }
    CHECK(contains_free(b, 0));
}
