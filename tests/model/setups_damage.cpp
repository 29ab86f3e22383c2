// A flipped bit in a word: what holds, and what each part of the response to it is needed for.
#include "builders.hpp"
#include "catalogue.hpp"

namespace carousel::model {
namespace {

setup struck_once(setup s, struck what = struck::any) {
    s.damages = 1;
    s.strikes = what;
    return s;
}

/// One job in flight; its work and its end take one step each.
setup quick(setup s) {
    s.lowest_first = s.quick_gpu = s.links[0].quick_free = true;
    return s;
}

/// A latest member whose lease can be revoked, over slots that are reused.
setup viewed() {
    return change(one_stage(2, 2, 1, 1, 0b1), [](setup& s) {
        s.links[0].latest = 1;
        s.revocable = s.lowest_first = s.quick_gpu = true;
        s.incarnations = {{0, -1}};
        s.lanes = {0};
        s.jobs_a_seat = 1;
    });
}

/// An instant source and a sink with one instance that may die.
setup sink() {
    setup s;
    s.stages = {{.source = 0, .output = {0, -1}, .instant = true}, {.input = {0, -1}}};
    s.links = {{.slots = 2, .window = 2, .consumers = 0, .quick_free = true}};
    s.seat_stage = {1};
    s.incarnations = {{0, 1}, {0, -1}};
    s.lanes = {0, 1};
    s.frames = 2;
    s.quick_work = true;
    return s;
}

setup trusted(setup s, struck what) {
    return change(struck_once(std::move(s), what), [](setup& t) { t.with.parity = false; });
}

}  // namespace

std::vector<entry> damage_entries() {
    return {
        {"a flipped bit in any word does not break the protocol", struck_once(quick(small())),
         failure::holds},
        {"a flipped bit in any word does not break the protocol while device work is slow",
         struck_once(small()), failure::holds, effort::lengthy},
        {"a flipped bit in any word does not break the protocol with a helping consumer",
         struck_once(with_helper(quick(small()))), failure::holds, effort::lengthy},
        {"a flipped bit in any word does not break the protocol with a sink", struck_once(sink()),
         failure::holds},
        {"a flipped bit in any word does not break the protocol with a latest member", struck_once(viewed()),
         failure::holds},
        {"flipped bits in two words, one after the other, do not break the protocol",
         change(struck_once(quick(one_stage(2, 2, 1))), [](setup& s) { s.damages = 2, s.numbers = 1; }),
         failure::holds, effort::lengthy},
        {"a flipped bit while the run is stopped does not break the protocol",
         change(struck_once(quick(small())),
                [](setup& s) { s.two_step_lease = true, s.end = ending::two_phases; }),
         failure::holds, effort::lengthy},
        {"trusting a tail that is wrong by one bit is detected", trusted(quick(small()), struck::tails),
         failure::repeated},
        {"trusting a lease that is wrong by one bit is detected", trusted(quick(small()), struck::leases),
         failure::repeated},
        {"trusting a slot word that is wrong by one bit is detected", trusted(quick(small()), struck::slots),
         failure::repeated},
        {"trusting a job word that is wrong by one bit is detected", trusted(quick(small()), struck::jobs),
         failure::spurious},
        {"recycling a job word while a damaged word may have its tag is detected",
         change(struck_once(quick(small()), struck::slots), [](setup& s) { s.with.recycle_waits = false; }),
         failure::stuck},
        {"freeing a slot with a damaged latest column is detected",
         change(struck_once(viewed(), struck::leases), [](setup& s) { s.with.damaged_pins = false; }),
         failure::torn},
        {"an owner that mistakes its damaged job word for another's is detected",
         change(struck_once(quick(small()), struck::jobs), [](setup& s) { s.with.owner_waits = false; }),
         failure::spurious},
    };
}

}  // namespace carousel::model
