#include "builders.hpp"
#include "catalogue.hpp"

namespace carousel::model {
namespace {

constexpr link_setup quick_link(int slots, int window) {
    return {.slots = slots, .window = window, .consumers = 1, .quick = 1, .quick_free = true};
}

/// A source stage with two outputs and one quick consumer downstream of each.
setup two_outputs(int frames, int first_slots, int second_slots, int window) {
    setup s = one_stage(frames, first_slots, window);
    s.stages[0].output[1] = 1;
    s.links = {quick_link(first_slots, window), quick_link(second_slots, window)};
    s.lowest_first = true;
    return s;
}

/// Two instances, the first of which may die, and a join downstream of both outputs; the second has room for
/// one frame.
setup narrow_second() {
    return change(two_outputs(2, 2, 1, 2), [](setup& s) {
        s.stages.push_back({.input = {0, 1}});
        s.links[1].window = 1;
        for (link_setup& l : s.links) l.consumers = 0;
        s.seat_stage = {0, 0, 1};
        s.incarnations = {{0, 1}, {0, -1}, {1, -1}, {2, -1}};
        s.lanes = {0, 1, 2, 3};
        s.jobs_a_seat = 1;
        s.quick_work = s.quick_finish = true;
    });
}

setup dying_reader(int frames) {
    return change(two_outputs(frames, 2, 2, 1), [](setup& s) {
        s.stages = {{.source = 0, .output = {2, -1}, .instant = true}, {.input = {2, -1}, .output = {0, 1}}};
        s.links.push_back({.slots = 2, .window = 2, .consumers = 0, .quick_free = true});
        s.seat_stage = {1};
        s.quick_work = s.quick_finish = true;
    });
}

enum class dies : u8 { fork, branch, join };

/// A stage with two outputs, a stage downstream of the second, and a join of that stage's frames with the
/// first's.
setup fork_and_join(dies dying, int window) {
    setup s;
    const bool instant = dying == dies::join || dying == dies::branch;
    s.stages = {{.source = 0, .output = {0, 1}, .instant = instant},
                {.input = {1, -1}, .output = {2, -1}},
                {.input = {0, 2}, .output = {-1, -1}}};
    const link_setup between{.slots = window, .window = window, .consumers = 0, .quick_free = true};
    s.links = {between, between, between};
    s.quick_work = s.quick_finish = s.lowest_first = true;
    if (instant) {
        s.seat_stage = {1, 2};
        s.incarnations = {{0, -1}, {1, -1}};
    } else {
        s.seat_stage = {0, 1, 2};
        s.incarnations = {{0, -1}, {1, -1}, {2, -1}};
    }
    s.jobs_a_seat = 2;
    const auto may_die = [&](int e) {
        s.incarnations[e].next = static_cast<int>(s.incarnations.size());
        s.incarnations.push_back({s.incarnations[e].seat, -1});
    };
    if (dying == dies::fork) may_die(0);
    if (dying == dies::branch) may_die(0);
    if (dying == dies::join) may_die(1);
    for (size_t e = 0; e < s.incarnations.size(); ++e) s.lanes.push_back(static_cast<int>(e));
    return s;
}

/// Its stream ends before frame 1 and both slots are returned, while a device may still write.
setup ends_with_two() {
    return change(two_outputs(3, 1, 1, 1), [](setup& s) {
        s.stages[0].ends_at = 1;
        s.two_step_lease = s.quick_finish = true;
        s.jobs_a_seat = 1;
    });
}

}  // namespace

std::vector<entry> output_entries() {
    const setup plain = two_outputs(2, 2, 2, 1), short_run = two_outputs(1, 2, 2, 1);
    const auto helped_at = [](setup s, int link) {
        s.helper_link = link;
        return s;
    };
    const auto without_fence = [](setup s) {
        s.check_no_fence = true;
        return s;
    };
    return {
        {"a stage that dies delivers every frame at both of its outputs", short_run, failure::holds},
        {"a stage with two outputs that dies delivers successive frames", plain, failure::holds,
         effort::lengthy},
        {"a stage with two outputs and concurrent frames that dies delivers every frame",
         two_outputs(2, 2, 2, 2), failure::holds, effort::lengthy},
        {"a helper at the first of two outputs commits for both and marks its own slot",
         helped_at(short_run, 0), failure::holds},
        {"a helper at the second of two outputs finds the job's event at the first output",
         helped_at(short_run, 1), failure::holds},
        {"a helper at the first of two outputs commits successive frames", helped_at(plain, 0),
         failure::holds, effort::lengthy},
        {"a helper at the second of two outputs commits successive frames", helped_at(plain, 1),
         failure::holds, effort::lengthy},
        {"a supervisor that dies between the words of two outputs leaves no word unrepaired",
         change(short_run, [](setup& s) { s.scan_registers = true; }), failure::holds},
        {"one spare buffer at each of two outputs suffices", without_fence(short_run), failure::holds},
        {"a reading stage with two outputs that dies delivers every frame", dying_reader(1), failure::holds},
        {"a reading stage with two outputs that dies delivers successive frames", dying_reader(2),
         failure::holds, effort::lengthy},
        {"a fork that dies delivers every frame to the join", fork_and_join(dies::fork, 1), failure::holds},
        {"a branch that dies delivers every frame to the join", fork_and_join(dies::branch, 1),
         failure::holds},
        {"a join downstream of a fork that dies delivers every frame", fork_and_join(dies::join, 1),
         failure::holds},
        {"a fork with concurrent frames that dies delivers every frame", fork_and_join(dies::fork, 2),
         failure::holds, effort::lengthy},
        {"a fork with a narrow branch delivers every frame", narrow_second(), failure::holds},
        {"a frame that doesn't exist returns both slots after the device is done", ends_with_two(),
         failure::holds},

        {"an event that covers only the first output is detected",
         change(helped_at(short_run, 0), [](setup& s) { s.seeded.event_of_first = true; }), failure::torn},
        {"a helper at the second output that queries its own slot's event is detected",
         change(helped_at(short_run, 1), [](setup& s) { s.seeded.event_of_own_slot = true; }), failure::torn},
        {"a fork that checks only the window of its first output is detected",
         change(narrow_second(), [](setup& s) { s.seeded.window_of_first = true; }), failure::stuck},
        {"a job word that becomes IDLE before the second slot is READY is detected",
         change(short_run, [](setup& s) { s.seeded.idle_before_second = true; }), failure::stuck},
        {"a supervisor that quarantines only the first slot is detected",
         change(short_run, [](setup& s) { s.seeded.quarantine_first = true; }), failure::stuck},
        {"a supervisor that marks only the first slot is detected",
         change(short_run, [](setup& s) { s.seeded.finish_first = true; }), failure::stuck},
        {"returning only one slot of a frame that doesn't exist is detected",
         change(ends_with_two(), [](setup& s) { s.seeded.give_back_first = true; }), failure::stuck},
        {"a spare buffer at only one of two outputs waits for the fence",
         without_fence(two_outputs(1, 2, 1, 1)), failure::waits_for_fence},
    };
}

}  // namespace carousel::model
