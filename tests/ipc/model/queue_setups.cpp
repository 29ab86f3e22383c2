#include "catalogue.hpp"

namespace carousel::ipc_model {
namespace {

queue_setup cells(u8 incarnations, u8 producers, u8 elements, faults may) {
    queue_setup s;
    s.incarnations = incarnations, s.producers = producers, s.elements = elements, s.may = may;
    return s;
}
queue_setup two_consumers(bool pops) {
    queue_setup s = cells(3, 1, 2, {.deaths = 1, .holder_deaths = 1});
    s.pops = pops, s.requeues = pops ? 0 : 1;
    return s;
}
queue_setup two_producers() { return cells(3, 2, 2, {.deaths = 1, .holder_deaths = 1}); }
queue_setup two_die() { return cells(3, 2, 1, {.deaths = 2, .holder_deaths = 1}); }
queue_setup one_cell() {
    queue_setup s = cells(2, 1, 3, {.deaths = 2, .cuts = 1, .holder_deaths = 2, .births = 2});
    s.capacity = 1, s.rounds = 2;
    return s;
}
queue_setup one_to_one(bool pops) {
    queue_setup s = cells(2, 1, 3, {.deaths = 2, .cuts = 1, .holder_deaths = 1, .births = 2});
    s.pops = pops;
    return s;
}

}  // namespace

template <>
listed<queue_setup> sound() {
    return {
        {"one pushes and two pop, one dies", two_consumers(true)},
        {"one pushes and two lease, give back and die", two_consumers(false)},
        {"two push and one pops, one dies", two_producers()},
        {"two push and die together, and the holder in the midst of their mend", two_die()},
        {"a queue of one cell with every fault, over laps that look the same", one_cell()},
        {"one to one with leases, deaths and new lives", one_to_one(false)},
    };
}

template <>
listed<queue_setup> large() {
    queue_setup three = cells(3, 1, 4, {.deaths = 1, .stops = 1, .holder_deaths = 1});
    three.capacity = 3;
    queue_setup again = cells(3, 2, 2, {.deaths = 2, .holder_deaths = 2, .births = 1});
    again.pops = false;
    return {
        {"three cells, two consumers, a death and a stop", three},
        {"two push, one leases, two die and one comes again", again},
        {"one to one, popping, with every fault", one_to_one(true)},
    };
}

template <>
listed<queue_setup> seeded() {
    const queue_setup pops = two_consumers(true), leases = two_consumers(false), pushes = two_producers();
    listed<queue_setup> all;
    const auto add = [&all](const char* name, const char* rule, queue_setup s, auto leave_out) {
        leave_out(s);
        all.push_back({name, s, rule});
    };
    using setup = queue_setup;
    const char* const torn = "an element is torn";
    const char* const gone = "capacity is lost";
    const char* const twice = "an element came twice";
    const char* const order = "a producer's elements came out of order";
    const char* const count = "the count of the tombs is wrong";
    add("a cell is published before its element is written", torn, pops,
        [](setup& s) { s.writes_first = false; });
    add("a cell is freed before its element is read", torn, one_to_one(true),
        [](setup& s) { s.reads_first = false; });
    add("a claim of a cell is stored, not swapped", torn, pushes, [](setup& s) { s.claim_checked = false; });
    add("an element is taken by a store", twice, pops, [](setup& s) { s.take_checked = false; });
    add("a claim of a cell doesn't say whose it is", gone, pops, [](setup& s) { s.claim_named = false; });
    add("consumers pass by what is claimed", order, pushes, [](setup& s) { s.waits_for_claimed = false; });
    add("the lap of a cell is not compared", order, pushes, [](setup& s) { s.lap_compared = false; });
    add("a mend keeps what was claimed", gone, pops, [](setup& s) { s.repairs_claimed = false; });
    add("a mend keeps what was popped", gone, pops, [](setup& s) { s.repairs_popping = false; });
    add("a mend keeps what was leased", stuck, leases, [](setup& s) { s.repairs_leased = false; });
    add("a mended cell stays in its lap", stuck, pops, [](setup& s) { s.tombs_advance = false; });
    add("a mend that is repeated counts again", count, pops, [](setup& s) { s.counted_once = false; });
    add("a mend begins with its own dead, not with what is marked", count, two_die(),
        [](setup& s) { s.tombs_first = false; });
    add("a mark that a mend has left is never cleared", count, one_cell(),
        [](setup& s) { s.marks_cleared = false; });
    add("what a dead one was popping is delivered again", twice, pops,
        [](setup& s) { s.popped_is_lost = false; });
    add("a queue is mended before the fence", gone, one_to_one(true),
        [](setup& s) { s.retirement.waits_for_fence = false; });
    add("an entry is free before its queue is mended", gone, one_to_one(true),
        [](setup& s) { s.retirement.frees_entry_last = false; });
    add("a newcomer at a queue bears an epoch that is mended", gone, one_to_one(false),
        [](setup& s) { s.retirement.new_epoch = false; });
    return all;
}

}  // namespace carousel::ipc_model
