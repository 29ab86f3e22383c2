#pragma once
// Small pipelines from which the catalogue's set-ups are built.

#include "setup.hpp"

namespace carousel::model {

/// A source stage of one seat (an incarnation that may die and its successor), one link, `consumers` plain
/// blocking groups.
inline setup one_stage(int frames, int slots, int window, int consumers = 1, u8 quick = 0b11) {
    setup s;
    s.stages = {{.source = 0, .output = {0, -1}}};
    s.links = {{.slots = slots, .window = window, .consumers = consumers, .quick = quick}};
    s.seat_stage = {0};
    s.incarnations = {{0, 1}, {0, -1}};
    s.lanes = {0, 1};
    s.frames = frames;
    return s;
}

inline setup small() { return one_stage(2, 2, 2); }

inline setup with_helper(setup s) {
    s.helper_link = 0;
    return s;
}

/// Two instances of the source stage; the first may die.
inline setup two_instances(int frames, int slots, int window, int numbers) {
    setup s = one_stage(frames, slots, window, 1, 0b1);
    s.seat_stage = {0, 0};
    s.incarnations = {{0, 1}, {0, -1}, {1, -1}};
    s.lanes = {0, 1, 2};
    s.jobs_a_seat = 1;
    s.numbers = numbers;
    return s;
}

/// Two jobs in flight in the incarnation that may die.
inline setup two_in_flight(int frames, int slots, int window) {
    setup s = one_stage(frames, slots, window, 1, 0b1);
    s.lanes = {0, 0, 1};
    s.jobs_a_seat = 3;
    return s;
}

template <typename F>
setup change(setup s, F&& by) {
    by(s);
    return s;
}

}  // namespace carousel::model
