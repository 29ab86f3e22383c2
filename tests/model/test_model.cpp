// The slot protocol, explored exhaustively in small pipelines.
//
// Modelled: the words J, S, C, Q, T, END and every CAS on them as a step of its own, so that a process may
// stop forever, be killed, or continue as a zombie between any two; the GPU, whose writes land at any time
// until the fence; per-slot events that read as complete if they were never recorded for this frame; commits
// by an observing consumer; a supervisor that dies between any two of its CASes; plain blocking groups,
// groups of reading stages (instances, several jobs in flight, joins, sinks in order), stages with two
// outputs and forks whose branches join again; latest members that join, leave, stop forever and lose their
// lease; sources whose numbers are leased words, over several laps; the end in two phases; frames that kill,
// and tombstone frames; which process may take a seat (seat_model.hpp); which parameters a frame has
// (parameter_model.hpp); what a header contains (header_model.hpp); the state of a stage (state_model.hpp);
// which frames enter the words of a rebuild (reentry_model.hpp); checkpoints (checkpoint_model.hpp); a bit
// that flips in any word (rules_damage.cpp), which its parity shows and the supervisor repairs: the reasoning
// of the repair is left out, it finds the original value.
//
// Safety, in every state: nothing is read while it is incomplete or overwritten while it is leased (TORN), no
// frame is committed or READY twice (REPEATED), no revoked incarnation commits (LATE), no live one finds
// itself revoked (SPURIOUS), sinks commit in order (ORDER), no innocent frame is abandoned (INNOCENT).
// Liveness, from every state, by only live processes and the supervisor: all is delivered and nothing leaks
// (STUCK), also with every viewer stopped forever (VIEWER-BLOCKS) and, where buffers are counted, although no
// kill ever completes (WAITS-FOR-FENCE).
//
// Left out: weak memory (every step is visible to all at once; ring/words.hpp argues the orders); the wrap of
// generations, versions and epochs (one byte each here, never full; laps can be compared modulo a power of
// two); time (a deadline is a fault that may come at any moment); doorbells (a process that can make a step
// eventually makes it); the status word in GPU memory (it detects and is never authoritative).
//
// Each clause that a test leaves out and each seeded bug is a switch in setup.hpp. carousel-model-check runs
// any set-up by name.

#include "checkpoint_model.hpp"
#include "header_model.hpp"
#include "parameter_model.hpp"
#include "reentry_model.hpp"
#include "seat_model.hpp"
#include "state_model.hpp"
#include "test_support.hpp"

using namespace carousel::model;

TEST_CASE("the protocol as written holds in every small set-up of one stage") {
    check_entries(holding_entries(), effort::everyday, true);
}

TEST_CASE("an omitted clause or a seeded bug is detected as the failure that it causes") {
    check_entries(failing_entries(), effort::everyday, false);
}

TEST_CASE("a helper may perform all of step 6 but need not") {
    check_entries(failing_entries(), effort::everyday, true);
}

TEST_CASE("buffers and job words beyond these sizes are not needed") {
    check_entries(sizing_entries(), effort::everyday, true);
}

TEST_CASE("fewer buffers or job words make a live stage wait for a dead one") {
    check_entries(sizing_entries(), effort::everyday, false);
}

TEST_CASE("reading stages, joins, sinks, the end and tombstone frames hold") {
    check_entries(pipeline_entries(), effort::everyday, true);
}

TEST_CASE("bugs of reading stages, joins, sinks, the end and tombstone frames are detected") {
    check_entries(pipeline_entries(), effort::everyday, false);
}

TEST_CASE("stages with two outputs, forks and the joins after them hold") {
    check_entries(output_entries(), effort::everyday, true);
}

TEST_CASE("bugs of stages with two outputs are detected") {
    check_entries(output_entries(), effort::everyday, false);
}

TEST_CASE("a flipped bit in any word at any step does not break the protocol") {
    check_entries(damage_entries(), effort::everyday, true);
}

TEST_CASE("each part of the reaction to a flipped bit is needed") {
    check_entries(damage_entries(), effort::everyday, false);
}

TEST_CASE("the model reaches as many states as a second implementation of the same rules") {
    const std::pair<const char*, carousel::u64> known[] = {
        {"a link without spare buffers waits for the fence", 71224},
        {"one spare buffer suffices for one job in flight", 132820},
        {"a seat with one job word waits for the fence", 4273},
        {"a stopped viewer blocks a link without a spare buffer", 46926},
        {"a viewer's lease occupies the spare buffer", 262919},
        {"the protocol holds when committed jobs are finished only after the fence", 510820},
    };
    for (const auto& [name, states] : known) {
        INFO(name);
        const entry* e = find_entry(name);
        REQUIRE(e != nullptr);
        CHECK(explore(e->what).states == states);
    }
}

TEST_CASE("a search that would grow too large reports it") {
    const result r = explore(holding_entries().front().what, 1000);
    CHECK(r.found == failure::too_big);
    CHECK(r.states < 1100);
}

TEST_CASE("a pipeline that does not fit the model is refused") {
    setup s = holding_entries().front().what;
    s.links[0].slots = max_slots + 1;
    CHECK_THROWS_AS(explore(s), std::invalid_argument);
}

TEST_CASE("a seat never has two workers with one epoch and is never left empty") {
    const seat_result r = explore_seat({});
    INFO(r.states << " states");
    CHECK_FALSE(r.two_workers);
    CHECK_FALSE(r.no_process);
    CHECK(r.states == 646);
}

TEST_CASE("without claims and new epochs a seat gets two workers") {
    const seat_result r = explore_seat({.claim_first = false, .raise_epoch = false});
    CHECK(r.two_workers);
    CHECK(r.trace == std::vector<std::string>{"look", "spawn(0)", "supervisor-dies", "look", "spawn(1)"});
}

TEST_CASE("a standby is promoted without two entries ever having one epoch") {
    const seat_result r = explore_seat({.standby = true});
    INFO(r.states << " states");
    CHECK_FALSE(r.two_workers);
    CHECK_FALSE(r.no_process);
    CHECK_FALSE(r.shared_epoch);
    CHECK(r.states > 646);
}

TEST_CASE("a promotion that starts with the entry can leave two entries with one epoch") {
    const seat_result r = explore_seat({.standby = true, .seat_first = false});
    CHECK(r.shared_epoch);
}

TEST_CASE("a frame's parameters depend on its number, and a change applies from the returned frame") {
    const parameter_result r = explore_parameters({});
    INFO(r.states << " states");
    CHECK_FALSE(r.differs);
    CHECK_FALSE(r.falls);
    CHECK_FALSE(r.inexact);
    CHECK_FALSE(r.torn);
    // The result is meaningful only if there was no room at least once, and if the count has wrapped around.
    CHECK(r.refused);
    CHECK(r.round);
    CHECK(r.states == 993558);
}

TEST_CASE("a source that does not move the horizon applies a change to a wrong frame") {
    CHECK(explore_parameters({.move_horizon = false}).inexact);
}

TEST_CASE("a change by a CAS without its horizon changes a frame in progress") {
    CHECK(explore_parameters({.one_cas = false}).inexact);
}

TEST_CASE("a change that is accepted without room overwrites a set that a frame needs") {
    CHECK_FALSE(explore_parameters({.check_room = false}).sound());
}

TEST_CASE("flipped bits in a header have no effect, at any step, with deaths") {
    for (const bool owner_commits : {false, true}) {
        const header_result r = explore_header({.owner_commits = owner_commits});
        CAPTURE(owner_commits, r.states);
        CHECK(r.sound());
        CHECK(r.states == (owner_commits ? 9482 : 10637));
    }
}

TEST_CASE("each check of a header and each restore of it is needed") {
    CHECK(explore_header({.check_seal = false}).innocent);
    CHECK(explore_header({.again = false}).wrong);
    CHECK(explore_header({.enter_again = false}).wrong);
    CHECK(explore_header({.carry_checks_seal = false, .owner_commits = true}).wrong);
    CHECK(explore_header({.viewer_again = false}).wrong);
    CHECK(explore_header({.audit = false}).stuck);
}

namespace {

// Each set-up is the smallest that shows what it is for.
const state_setup states_in_flight{.frames = 2, .slots = 3, .deaths = 2, .tombstone = true};
const state_setup states_one_by_one{.frames = 3, .in_flight = 1, .slots = 3, .deaths = 2, .tombstone = true};
const state_setup states_rebuilt{
    .frames = 2, .in_flight = 1, .slots = 3, .deaths = 2, .rebuilds = 1, .tombstone = true, .damage = true};
const state_setup slots_reused{
    .frames = 4, .in_flight = 1, .slots = 3, .deaths = 0, .rebuilds = 1, .damage = true};

state_setup without(state_setup s, bool state_setup::*rule) {
    s.*rule = false;
    return s;
}

}  // namespace

TEST_CASE("a stage with state: each state is the one of a run without faults") {
    for (const state_setup& s : {states_in_flight, states_one_by_one, states_rebuilt, slots_reused}) {
        const state_result r = explore_states(s);
        CAPTURE(s.frames, s.in_flight, s.rebuilds, r.trace);
        CHECK(r.sound());
        CHECK(r.states > 1000);
    }
}

TEST_CASE("a stage with state: each rule of its commits and of its ring is needed") {
    CHECK(explore_states(without(states_in_flight, &state_setup::owner_commits)).wrong);
    CHECK(explore_states(without(states_in_flight, &state_setup::commits_in_order)).wrong);
    CHECK(explore_states(without(states_in_flight, &state_setup::waits_for_previous)).wrong);
    CHECK(explore_states(without(states_in_flight, &state_setup::writes_in_process)).wrong);
    CHECK(explore_states(without(states_in_flight, &state_setup::frees_after_fence)).wrong);
    CHECK(explore_states(without(states_one_by_one, &state_setup::begins_in_order)).lost);
    CHECK(explore_states(without(states_one_by_one, &state_setup::copies_at_tombstone)).wrong);
}

TEST_CASE("a stage with state: the newest state must be kept, and the one below the tail for a rebuild") {
    state_setup s = without(states_one_by_one, &state_setup::keeps_at_tail);
    CHECK(explore_states(s).sound());
    CHECK(explore_states(without(s, &state_setup::keeps_newest)).lost);
    CHECK(explore_states(without(slots_reused, &state_setup::keeps_at_tail)).lost);
}

TEST_CASE("a stage with state: each check of what a rebuild takes is needed") {
    CHECK(explore_states(without(slots_reused, &state_setup::checks_status)).wrong);
    CHECK(explore_states(without(states_rebuilt, &state_setup::checks_status_epoch)).wrong);
    CHECK(explore_states(without(states_rebuilt, &state_setup::takes_chain)).wrong);
    CHECK(explore_states(without(states_rebuilt, &state_setup::takes_delivered)).wrong);
    CHECK(explore_states(without(states_rebuilt, &state_setup::takes_unbroken)).wrong);
    CHECK(explore_states(without(states_rebuilt, &state_setup::takes_below_tail)).lost);
}

TEST_CASE("frames that enter the words of a rebuild are delivered once, in order and whole") {
    const reentry_result r = explore_reentry({});
    INFO(r.states << " states");
    CHECK(r.sound());
    CHECK(r.entered == 3);
}

TEST_CASE("each condition on a frame that enters the words of a rebuild is needed") {
    CHECK(explore_reentry({.proof = false}).wrong);
    CHECK(explore_reentry({.ready_slots_only = false}).wrong);
    CHECK(explore_reentry({.without_gaps = false}).repeated);
    CHECK(explore_reentry({.numbers_done = false}).repeated);
    CHECK_FALSE(explore_reentry({.slowest_reader = false}).sound());
}

TEST_CASE("a stage with a state continues after a rebuild only from the state before its frame") {
    const reentry_result r = explore_reentry({.state = true, .rebuilds = 1});
    INFO(r.states << " states");
    CHECK(r.sound());
    CHECK(r.entered == 3);
    CHECK(explore_reentry({.proof = false, .state = true, .rebuilds = 1}).wrong);
    CHECK(explore_reentry({.state = true, .state_proved = false, .rebuilds = 1}).wrong);
    CHECK_FALSE(explore_reentry({.state = true, .state_enters = false, .rebuilds = 1}).sound());
}

TEST_CASE("a program's frame that a rebuild cannot prove keeps its place, and no number is written twice") {
    const reentry_result r = explore_reentry({.made_once = true});
    INFO(r.states << " states");
    CHECK(r.sound());
    CHECK(explore_reentry({.made_once = true, .keeps_place = false}).reused);
}

TEST_CASE("a run without its memory continues from a checkpoint, with every state and every frame") {
    const checkpoint_result r = explore_checkpoints({});
    INFO(r.states << " states");
    CHECK(r.sound());
    CHECK(r.restarts_from == 4);
}

TEST_CASE("each rule of checkpoints is needed") {
    CHECK(explore_checkpoints({.after_commit = false}).wrong);
    CHECK(explore_checkpoints({.whole_files = false}).wrong);
    CHECK(explore_checkpoints({.all_stages = false}).wrong);
    CHECK(explore_checkpoints({.delivered = false}).lost);
    CHECK(explore_checkpoints({.begins_clean = false}).wrong);
    CHECK(explore_checkpoints({.list_first = false}).wrong);
}

TEST_CASE("a run whose frames another host sends continues from a checkpoint if that host keeps them") {
    const checkpoint_setup over_link{
        .frames = 7, .losses = 1, .link_keeps = 4, .release_listed = true, .waits_for_file = true};
    const checkpoint_result r = explore_checkpoints(over_link);
    INFO(r.states << " states");
    CHECK(r.sound());
    CHECK(r.restarts_from == 6);
    checkpoint_setup without = over_link;
    without.release_listed = false;
    CHECK(explore_checkpoints(without).lost);
    without = over_link;
    without.waits_for_file = false;
    CHECK(explore_checkpoints(without).stuck);
}

TEST_CASE("a rebuild leaves the files of states that it keeps, or the sender waits forever") {
    checkpoint_setup rebuilt{
        .frames = 7, .losses = 1, .link_keeps = 3, .waits_for_file = true, .rebuilds = 2};
    const checkpoint_result r = explore_checkpoints(rebuilt);
    INFO(r.states << " states");
    CHECK(r.sound());
    rebuilt.keeps_files = false;
    CHECK(explore_checkpoints(rebuilt).stuck);
}
