#include "catalogue.hpp"

namespace carousel::ipc_model {
namespace {

gate_setup streams(u8 incarnations, faults may) {
    gate_setup s;
    s.incarnations = incarnations, s.may = may;
    return s;
}
gate_setup again() {
    gate_setup s = streams(2, {.deaths = 1, .holder_deaths = 1, .births = 1});
    s.rounds = 2;
    return s;
}
gate_setup stalled_thread() {
    gate_setup s = streams(2, {.deaths = 1});
    s.stalls = 1;
    return s;
}
gate_setup drops_wait() {
    gate_setup s = streams(2, {});
    s.rounds = 2, s.drops = 1;
    return s;
}
gate_setup one_stops_forever() {
    gate_setup s = streams(2, {.stops = 1, .cuts = 1});
    s.stops_forever = true;
    return s;
}
gate_setup cut_off() { return streams(2, {.deaths = 1, .cuts = 1, .births = 1}); }

}  // namespace

template <>
listed<gate_setup> sound() {
    return {
        {"two streams wait in turns, one process dies and comes again, and so does the holder", again()},
        {"the thread that waits for a stream does nothing any more", stalled_thread()},
        {"waits are let go of while their streams are on their way", drops_wait()},
        {"one process stops for ever while its kernels run on", one_stops_forever()},
        {"one process loses its connection, dies and comes again", cut_off()},
    };
}

template <>
listed<gate_setup> large() {
    gate_setup two = drops_wait();
    two.permits = 2, two.may = {.deaths = 1, .holder_deaths = 1};
    return {
        {"three streams share a permit and one dies", streams(3, {.deaths = 1})},
        {"two permits, a wait that is let go of, a death and a holder's", two},
    };
}

template <>
listed<gate_setup> seeded() {
    listed<gate_setup> all;
    const auto add = [&all](const char* name, const char* rule, gate_setup s, auto leave_out) {
        leave_out(s);
        all.push_back({name, s, rule});
    };
    using setup = gate_setup;
    const char* const early = "a gate is closed before its time";
    const char* const without = "kernels run without a permit";
    const char* const differ = "two kernels behind one gate are told different things";
    const char* const gone = "a permit is gone";
    add("a gate is PENDING before its deadline is stored", early, again(),
        [](setup& s) { s.deadline_first = false; });
    add("the holder reads a gate's word behind its deadline", early, again(),
        [](setup& s) { s.deadline_read_last = false; });
    add("a stream waits before its deadline is known", stuck, stalled_thread(),
        [](setup& s) { s.deadline_when_requested = false; });
    add("the holder closes a gate by a store", differ, again(), [](setup& s) { s.holder_swaps = false; });
    add("the thread answers by a store", differ, again(), [](setup& s) { s.thread_swaps = false; });
    add("a gate keeps its generation", early, again(), [](setup& s) { s.next_generation = false; });
    add("a newcomer begins its gates anew", early, again(), [](setup& s) { s.successor_continues = false; });
    add("a gate is opened again under its wait", early, again(),
        [](setup& s) { s.opened_when_over = false; });
    add("a stream goes on at a grant alone", stuck, again(), [](setup& s) { s.any_answer = false; });
    add("a gate is granted before the permit is there", without, again(),
        [](setup& s) { s.permit_first = false; });
    add("kernels don't ask whether they have the permit", without, again(),
        [](setup& s) { s.kernels_check_permit = false; });
    add("a permit is given back before the kernels have ended", without, again(),
        [](setup& s) { s.released_after_kernels = false; });
    add("who has let go of a wait is told that it is granted", without, drops_wait(),
        [](setup& s) { s.dropped_not_granted = false; });
    add("a permit that comes behind the end of its wait is kept", gone, drops_wait(),
        [](setup& s) { s.dropped_released = false; });
    add("nobody closes a gate that is late", stuck, stalled_thread(),
        [](setup& s) { s.holder_closes = false; });
    add("a mend keeps the permits of streams", gone, again(), [](setup& s) { s.repairs_permits = false; });
    add("a stream's permit is mended before the fence", without, cut_off(),
        [](setup& s) { s.retirement.waits_for_fence = false; });
    add("a newcomer at a gate bears an epoch that is mended", without, again(),
        [](setup& s) { s.retirement.new_epoch = false; });
    return all;
}

}  // namespace carousel::ipc_model
