// Seeded histories of the primitives (history.hpp, campaign.hpp). Their controls: test_control.cpp.
#include <algorithm>
#include <initializer_list>
#include <iostream>

#include "campaign.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;
using ipc::step;

namespace {

// Sound, and worth something: so much was done, and a death fell at each of these steps.
void require_sound(one_history of, u64 least, std::initializer_list<step> died_at,
                   const history_options& like = {}) {
    u64 done = 0;
    const campaign_result all = histories(of, false, done, "", like);
    std::cout << all.text() << "; " << done << " done\n";
    INFO(all.text());
    REQUIRE(all.failed == 0);
    CHECK(done * 1500 > least * all.histories);
    for (const step s : died_at) {
        INFO(ipc::name_of(s));
        CHECK(all.kills_at[static_cast<std::size_t>(s)] * 1500 > 20 * all.histories);
    }
}

void require_found(one_history of, const std::string& rule) {
    u64 done = 0;
    const campaign_result all = histories(of, true, done, rule);
    INFO(all.text());
    CHECK(all.failed > 0);
    CHECK_THAT(all.finding, contains(rule));
}

}  // namespace

TEST_CASE("semaphore: no permit is held twice, lost or overtaken, under deaths at any step") {
    require_sound(
        semaphore_history, 50'000,
        {step::line_joined, step::turn_checked, step::turn_known, step::permit_taken, step::line_left,
         step::permit_released, step::repair_begun, step::word_repaired, step::repair_done});
}

TEST_CASE("semaphore: the same when clients stop longer than the line's patience and resume") {
    history_options o;
    o.stops = 12, o.stop_steps = 2000, o.step_ns = 1'000'000;
    require_sound(semaphore_history, 30'000, {step::line_joined, step::permit_taken, step::line_passed}, o);
}

TEST_CASE("gates: kernels run only with a permit, and no gate blocks a stream, under deaths") {
    history_options o;
    o.stops = 4;
    require_sound(gate_history, 10'000,
                  {step::gate_timed, step::gate_opened, step::gate_requested, step::gate_closed,
                   step::gate_checked, step::gate_late, step::permit_taken, step::permit_released},
                  o);
}

TEST_CASE("repairers: repaired and counted once under deaths of holders and repairers") {
    const u64 first = seed_or(1), many = scaled(40);
    u64 done = 0;
    campaign_result all;
    constexpr step steps[] = {step::repairer_started, step::repairer_named, step::repairer_notified,
                              step::repairer_replied};
    const auto each_was_hit = [&] {
        return std::ranges::all_of(steps,
                                   [&](step k) { return all.kills_at[static_cast<std::size_t>(k)] > 0; });
    };
    // Repairers are processes: which step a kill hits also depends on timing. If a step was not hit, more
    // histories run.
    u64 seed = first;
    for (; (seed < first + many || (seed < first + 4 * many && !each_was_hit())) && all.failed == 0; ++seed) {
        history_options o;
        o.seed = seed;
        history h(o);
        const bool ended = repairer_history(h, seed, done);
        all.add(h, seed, ended);
    }
    std::cout << all.text() << "; " << done << " lives mended\n";
    INFO(all.text());
    REQUIRE(all.failed == 0);
    CHECK(done == 5 * (seed - first));
    for (const step s : steps) {
        INFO(ipc::name_of(s));
        CHECK(all.kills_at[static_cast<std::size_t>(s)] > 0);
    }
}

TEST_CASE("queue: the same when clients stop and resume at the same step") {
    history_options o;
    o.stops = 12;
    require_sound(queue_history, 20'000, {step::cell_claimed, step::cell_popping, step::cell_leased}, o);
}

TEST_CASE("queue: no element is delivered twice and no leased one lost, under deaths at any step") {
    require_sound(
        queue_history, 50'000,
        {step::cell_claimed, step::cell_written, step::cell_published, step::cell_passed, step::cell_popping,
         step::cell_leased, step::cell_consumed, step::cell_returned, step::repair_begun, step::loss_marked,
         step::loss_counted, step::word_repaired, step::repair_done});
}

TEST_CASE("work queue: each task is committed once or a dead letter, under deaths at any step") {
    require_sound(work_history, 50'000,
                  {step::task_filling, step::task_written, step::task_submitted, step::task_claimed,
                   step::task_committed, step::task_failed, step::dead_letter_read, step::repair_begun,
                   step::word_repaired, step::repair_done});
}

TEST_CASE("pool: no unit is in two blocks or leaks, under deaths at any step, including transfers") {
    require_sound(
        pool_history, 50'000,
        {step::serial_drawn, step::head_claimed, step::body_claimed, step::block_owned, step::block_leaving,
         step::body_freed, step::block_freed, step::block_named, step::block_sent, step::block_received,
         step::cell_consumed, step::repair_begun, step::word_repaired, step::repair_done});
}

TEST_CASE("work queue and pool: the same when clients stop and resume at the same step") {
    history_options o;
    o.stops = 12;
    require_sound(work_history, 20'000, {step::task_filling, step::task_claimed, step::task_committed}, o);
    require_sound(pool_history, 20'000, {step::head_claimed, step::body_claimed, step::block_received}, o);
}

TEST_CASE("control: a repair before the fence grants a permit twice") {
    require_found(semaphore_history, "could not release");
}
TEST_CASE("control: a repair before the fence takes a permit from running kernels") {
    require_found(gate_history, "without a permit");
}
TEST_CASE("control: a repair before the fence takes a lease from its owner") {
    require_found(queue_history, "not its holder's");
}
TEST_CASE("control: a repair before the fence takes a claim from its owner") {
    require_found(work_history, "not its holder's");
}
TEST_CASE("control: a repair before the fence frees a block under its owner") {
    require_found(pool_history, "could not release");
}
