#include "catalogue.hpp"

namespace carousel::ipc_model {
namespace {

semaphore_setup line_of(u8 incarnations, u8 permits, faults may) {
    semaphore_setup s;
    s.incarnations = incarnations, s.permits = permits, s.may = may;
    return s;
}
semaphore_setup two_with_everything() {
    semaphore_setup s = line_of(2, 1, {.deaths = 1, .cuts = 1, .holder_deaths = 1, .births = 1});
    s.rounds = 2;
    return s;
}
semaphore_setup one_stops_forever(u8 permits) {
    semaphore_setup s = line_of(3, permits, {.stops = 1});
    s.stops_forever = true, s.late = 1;
    return s;
}
semaphore_setup short_line() {
    semaphore_setup s = line_of(3, 1, {.deaths = 1});
    s.line = 2, s.time_outs = 1;
    return s;
}

}  // namespace

template <>
listed<semaphore_setup> sound() {
    return {
        {"three share a permit and one dies", line_of(3, 1, {.deaths = 1, .holder_deaths = 1})},
        {"three share two permits and one dies", line_of(3, 2, {.deaths = 1})},
        {"two take turns, die, lose their connection and come again, and so does the holder",
         two_with_everything()},
        {"the line is short, a wait is over and one dies", short_line()},
        {"one of three stops for ever wherever it is", one_stops_forever(1)},
    };
}

template <>
listed<semaphore_setup> large() {
    semaphore_setup everything = line_of(3, 2, {.deaths = 1, .stops = 1, .cuts = 1, .holder_deaths = 1});
    everything.time_outs = 1;
    semaphore_setup again = line_of(3, 1, {.deaths = 2, .holder_deaths = 1, .births = 1});
    return {
        {"three share two permits with every fault", everything},
        {"one of three stops for ever at two permits", one_stops_forever(2)},
        {"three share a permit, two die and one comes again", again},
    };
}

template <>
listed<semaphore_setup> seeded() {
    const semaphore_setup one = line_of(3, 1, {.deaths = 1}), two = line_of(3, 2, {.deaths = 1}),
                          pair = two_with_everything(), stops = one_stops_forever(1);
    listed<semaphore_setup> all;
    const auto add = [&all](const char* name, const char* rule, semaphore_setup s, auto leave_out) {
        leave_out(s);
        all.push_back({name, s, rule});
    };
    using setup = semaphore_setup;
    add("nobody waits for those in front", "a waiter is overtaken", one,
        [](setup& s) { s.in_order = false; });
    add("free permits are counted before those in front", "a waiter is overtaken", two,
        [](setup& s) { s.line_first = false; });
    add("a permit is stored, not swapped", "a permit is out twice", two, [](setup& s) { s.checked = false; });
    add("a ticket leaves the line before its permit is taken", "a permit is out twice", one,
        [](setup& s) { s.leaves_after_take = false; });
    add("a place keeps its lap when its ticket leaves", stuck, pair, [](setup& s) { s.next_lap = false; });
    add("the lap of a place is not compared", "a waiter is overtaken", short_line(),
        [](setup& s) { s.lap_compared = false; });
    add("a mend keeps permits", "a permit is gone", one, [](setup& s) { s.repairs_permits = false; });
    add("a mend keeps tickets", "a ticket stays in the line", one,
        [](setup& s) { s.repairs_tickets = false; });
    add("a stopped one at the head of the line is waited for", stuck, stops,
        [](setup& s) { s.passes_late = false; });
    add("a semaphore is mended before the fence", "a holder could not release", pair,
        [](setup& s) { s.retirement.waits_for_fence = false; });
    add("an entry is free before its semaphore is mended", "a ticket stays in the line", pair,
        [](setup& s) { s.retirement.frees_entry_last = false; });
    add("a newcomer at a semaphore bears an epoch that is mended", "a holder could not release", pair,
        [](setup& s) { s.retirement.new_epoch = false; });
    return all;
}

}  // namespace carousel::ipc_model
