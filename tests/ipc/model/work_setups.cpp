#include "catalogue.hpp"

namespace carousel::ipc_model {
namespace {

work_setup tasks(u8 incarnations, u8 submitters, u8 each, faults may) {
    work_setup s;
    s.incarnations = incarnations, s.submitters = submitters, s.tasks = each, s.may = may;
    return s;
}
work_setup two_workers() {
    work_setup s = tasks(3, 1, 2, {.deaths = 1, .stops = 1, .holder_deaths = 1, .births = 1});
    s.fails = 1;
    return s;
}
work_setup two_submitters() {
    return tasks(3, 2, 1, {.deaths = 1, .stops = 1, .holder_deaths = 1, .births = 1});
}
work_setup becomes_dead_letter() {
    work_setup s = tasks(3, 1, 1, {.deaths = 2, .holder_deaths = 1, .births = 1});
    s.fails = 1, s.reads_dead_letters = true;
    return s;
}
work_setup one_place() {
    work_setup s = tasks(2, 1, 2, {.deaths = 1, .cuts = 1, .holder_deaths = 1, .births = 1});
    s.places = 1, s.again = 1, s.fails = 1, s.max_attempts = 3;
    return s;
}

}  // namespace

template <>
listed<work_setup> sound() {
    return {
        {"two workers share two tasks, fail, stop and die", two_workers()},
        {"two submit and one works, one dies", two_submitters()},
        {"a task becomes a dead letter, and its reader dies", becomes_dead_letter()},
        {"a place is used again, and old commits are repeated", one_place()},
    };
}

template <>
listed<work_setup> large() {
    work_setup three = two_workers();
    three.may = {.deaths = 2, .stops = 1, .cuts = 1, .holder_deaths = 1, .births = 1};
    work_setup read = becomes_dead_letter();
    read.tasks = 2, read.fails = 2;
    return {
        {"two workers share two tasks with every fault", three},
        {"two tasks become dead letters", read},
    };
}

template <>
listed<work_setup> seeded() {
    const work_setup works = two_workers(), reader_dies = becomes_dead_letter(), one = one_place();
    listed<work_setup> all;
    const auto add = [&all](const char* name, const char* rule, work_setup s, auto leave_out) {
        leave_out(s);
        all.push_back({name, s, rule});
    };
    using setup = work_setup;
    const char* const torn = "a task is torn";
    const char* const gone = "a place is gone";
    const char* const lost = "a task is lost";
    add("a task can be claimed before it is written", torn, works, [](setup& s) { s.writes_first = false; });
    add("a place is freed before its task is read", torn, one, [](setup& s) { s.reads_first = false; });
    add("a place is taken by a store", lost, two_submitters(), [](setup& s) { s.fill_checked = false; });
    add("a task is claimed by a store", "a task is claimed twice", works,
        [](setup& s) { s.claim_checked = false; });
    add("a claim of a task doesn't say whose it is", gone, works, [](setup& s) { s.claim_named = false; });
    add("a place keeps its generation", "a task was committed by a claim that was over", one,
        [](setup& s) { s.next_generation = false; });
    add("attempts are not counted", "a count of attempts is wrong", works,
        [](setup& s) { s.attempts_counted = false; });
    add("attempts have no end", "a task has had too many attempts", reader_dies,
        [](setup& s) { s.dead_letters_made = false; });
    add("a task is a dead letter one attempt too early", "a dead letter came before its time", reader_dies,
        [](setup& s) { s.dead_letters_in_time = false; });
    add("a mend keeps a place that was being filled", gone, works,
        [](setup& s) { s.repairs_filling = false; });
    add("a mend keeps a task that was claimed", gone, works, [](setup& s) { s.repairs_claimed = false; });
    add("a mend keeps a letter that was being read", gone, reader_dies,
        [](setup& s) { s.repairs_reading = false; });
    add("a dead one's claim is taken for done", lost, works, [](setup& s) { s.claimed_redelivered = false; });
    add("a letter whose reader died is gone", lost, reader_dies,
        [](setup& s) { s.dead_letter_redelivered = false; });
    add("a work queue is mended before the fence", gone, one,
        [](setup& s) { s.retirement.waits_for_fence = false; });
    add("an entry is free before its work queue is mended", gone, one,
        [](setup& s) { s.retirement.frees_entry_last = false; });
    add("a newcomer at a work queue bears an epoch that is mended", "a claim is not its holder's any more",
        one, [](setup& s) { s.retirement.new_epoch = false; });
    return all;
}

}  // namespace carousel::ipc_model
