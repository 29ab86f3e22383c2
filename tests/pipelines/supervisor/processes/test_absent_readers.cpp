// Groups and claims of an optional sink, over a control block in which the test damages words.
#include "supervisor/processes/port_seats.hpp"

#include <memory>

#include "core/clock.hpp"
#include "ledger/ledger.hpp"
#include "ring/topology.hpp"
#include "supervisor/processes/seat_commands.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

/// source -> sink, extra; the sinks are optional. `other` is a second source.
struct run_with_optional_sinks {
    scratch_folder folder;
    run_setup setup;
    std::unique_ptr<shm::control_block> block = std::make_unique<shm::control_block>();
    event_loop loop;
    console out{-1, false, false};
    memory_store memory;
    std::unique_ptr<process_table> table;

    run_with_optional_sinks() {
        setup.name = "optional";
        setup.directory = folder.path.string();
        for (const char* name : {"source", "sink", "extra", "other"}) {
            stage_setup st;
            st.spec.name = name;
            if (setup.stages.size() == 1 || setup.stages.size() == 2) st.spec.input_indices = {0};
            st.spec.optional = !st.spec.input_indices.empty();
            setup.stages.push_back(st);
        }
        for (const u32 source : {0U, 3U}) {
            setup.stages[source].format = {{"type", "t"}};
            setup.stages[source].slot_bytes = 512;
        }
        ring::initialise(*block, plan_of(setup));
        table = std::make_unique<process_table>(setup, loop, out);
        table->attach_to(*block, memory);
        for (u32 k = 0; k < 3; ++k) set(k, seat_state::running);
    }
    void set(u32 stage, seat_state state) const { table->seats[stage]->machine.resume(state, now_ns(), 0); }
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
    // No process is started in this test: all entries are taken.
    for (shm::incarnation& e : r.block->entry)
        e.identity.store(ring::entry_word{1, 1, 0, ring::entry_state::live}.pack());
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
    // No process is started in this test: all entries are taken.
    for (shm::incarnation& e : r.block->entry)
        e.identity.store(ring::entry_word{1, 1, 0, ring::entry_state::live}.pack());
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
