// Groups and claims of an optional sink, over a control block in which the test damages words.
#include "supervisor/processes/port_seats.hpp"

#include "ledger/ledger.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "tests/pipelines/supervisor/processes/idle_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

/// source -> sink, extra; the sinks are optional. `other` is a second source.
struct run_with_optional_sinks : test::idle_run {
    run_with_optional_sinks() : idle_run("optional") {
        add_source("source");
        for (const char* name : {"sink", "extra"}) {
            stage_spec& spec = add_stage(name).spec;
            spec.input_indices = {0};
            spec.optional = true;
        }
        add_source("other");
        begin();
        for (u32 k = 0; k < 3; ++k) set(k, seat_state::running);
    }
    [[nodiscard]] shm::word& group() const {
        return block->link[0].group_state[block->stage[2].input_group[0]];
    }
    [[nodiscard]] ring::group_state group_now() const {
        return ring::group_word::of(ring::load(group())).state;
    }
    [[nodiscard]] telemetry::frame_claims claims() const {
        return telemetry::frame_claims::load(telemetry::ledger_path(setup.directory, "extra"));
    }
    void damage(std::atomic<u64>& word) const { word.fetch_xor(u64{1} << 20U); }
};

using ring::group_state;

}  // namespace

TEST_CASE("an optional sink's claim is resumed only after its group is open, despite damage") {
    const run_with_optional_sinks r;
    r.set(2, seat_state::failed);
    settle_absent_readers(*r.table);
    REQUIRE(r.group_now() == group_state::closed);
    REQUIRE(r.claims().suspended());
    const u64 closed = ring::load(r.group());
    r.group().fetch_xor(u64{1} << 20U);
    r.set(2, seat_state::running);
    settle_absent_readers(*r.table);
    CHECK(r.claims().suspended());
    r.group().store(closed);  // the repair
    settle_absent_readers(*r.table);
    CHECK(r.group_now() == group_state::blocking);
    CHECK_FALSE(r.claims().suspended());
    r.group().store(closed);  // a repair of a word that was CLOSED a moment ago
    settle_absent_readers(*r.table);
    CHECK(r.group_now() == group_state::blocking);
}

TEST_CASE("a damaged tail neither suspends nor resumes a claim") {
    const run_with_optional_sinks r;
    shm::tail_word& tail = r.block->link[0].tail;
    tail.store(40);
    r.damage(tail.raw());
    r.set(2, seat_state::failed);
    settle_absent_readers(*r.table);
    CHECK(r.group_now() == group_state::blocking);
    CHECK(r.claims().includes(0));
    CHECK_FALSE(r.claims().suspended());
    r.damage(tail.raw());  // the repair
    settle_absent_readers(*r.table);
    CHECK(r.group_now() == group_state::closed);
    CHECK(r.claims().includes(39));
    CHECK_FALSE(r.claims().includes(40));
    tail.store(70);
    r.damage(tail.raw());
    r.set(2, seat_state::running);
    settle_absent_readers(*r.table);
    CHECK(r.claims().suspended());
    r.damage(tail.raw());
    settle_absent_readers(*r.table);
    CHECK(r.claims().first_from(40) == 70);
}

TEST_CASE("a paused seat without a process that is taken down is published as no longer paused") {
    const run_with_optional_sinks r;
    r.set(1, seat_state::backoff);
    r.table->seats[1]->machine.restore_paused(true);
    r.block->seat[1].paused.store(1);
    (void)take_seat_down(*r.table, *r.table->seats[1]);
    CHECK_FALSE(r.table->seats[1]->machine.paused());
    CHECK(ring::load(r.block->seat[1].paused) == 0);
}

TEST_CASE("a run that continues after damage starts its last optional sink, not one that was left out") {
    const run_with_optional_sinks r;
    r.set(2, seat_state::failed);
    settle_absent_readers(*r.table);
    REQUIRE(r.claims().suspended());
    r.table->fail("sink", "exit code 3", 1);
    r.set(1, seat_state::failed);
    r.take_all_entries();
    resume_all(*r.table, true);
    CHECK_FALSE(r.table->failure);
    CHECK(r.table->seats[1]->machine.state() == seat_state::starting);
    CHECK(r.table->seats[2]->machine.state() == seat_state::failed);
    CHECK_FALSE(r.table->ledgers.claim_suspended(1));
    CHECK(ring::group_word::of(ring::load(r.block->link[0].group_state[r.block->stage[1].input_group[0]]))
              .state == group_state::blocking);
}

TEST_CASE("a seat whose restart is delayed accepts the process that a rebuild starts") {
    const run_with_optional_sinks r;
    r.set(1, seat_state::backoff);
    r.table->seats[1]->start_wanted = true;
    r.table->paused = r.table->memory_there = true;
    r.take_all_entries();
    resume_all(*r.table, false);
    CHECK(r.table->seats[1]->machine.state() == seat_state::starting);
}

TEST_CASE("an optional sink that is back has a claim on every frame that its source has not completed") {
    const run_with_optional_sinks r;
    r.set(2, seat_state::failed);
    settle_absent_readers(*r.table);
    REQUIRE_FALSE(r.claims().includes(0));
    r.block->link[0].slot[0].store(ring::slot_word{0, 0, 0, ring::slot_state::ready}.pack());
    r.block->frames[0].header[0].ring_sequence.store(0);
    REQUIRE(r.block->source[1].link == 1);  // the other source is ahead
    for (u32 number = 0; number < 3; ++number)
        r.block->source[1].sequence_lease[number].store(
            ring::lease_word{0, 0, 5, 0, ring::lease_state::leased}.pack());
    r.set(2, seat_state::running);
    settle_absent_readers(*r.table);
    CHECK_FALSE(r.claims().includes(0));
    CHECK(r.claims().includes(1));
}
