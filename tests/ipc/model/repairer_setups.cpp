#include "catalogue.hpp"

namespace carousel::ipc_model {
namespace {

repairer_setup incarnations(faults may, u8 repairer_deaths, u8 repairer_stops) {
    repairer_setup s;
    s.incarnations = 2, s.may = may, s.repairer_deaths = repairer_deaths, s.repairer_stops = repairer_stops;
    return s;
}
repairer_setup repairer_dies() { return incarnations({.deaths = 2}, 2, 0); }
repairer_setup both_die() { return incarnations({.deaths = 2, .holder_deaths = 1}, 1, 0); }
repairer_setup one_stops() { return incarnations({.deaths = 1, .holder_deaths = 1}, 0, 1); }
repairer_setup one_is_slow() {
    repairer_setup s = incarnations({.deaths = 2}, 0, 1);
    s.impatience = 1;
    return s;
}
repairer_setup among_other_processes() {
    repairer_setup s = incarnations({.deaths = 2, .holder_deaths = 1}, 0, 0);
    s.other_processes = 1;
    return s;
}
repairer_setup clients_return() {
    return incarnations({.deaths = 2, .cuts = 1, .holder_deaths = 1, .births = 1}, 0, 0);
}

}  // namespace

template <>
listed<repairer_setup> sound() {
    return {
        {"two die, and so do two menders in the midst of it", repairer_dies()},
        {"two die, then a mender and the holder, one before the other", both_die()},
        {"a mender stops for as long as it likes, and its holder dies", one_stops()},
        {"a mender is killed for being slow, and goes on for a while", one_is_slow()},
        {"a stranger has the pid of a mender that has ended", among_other_processes()},
        {"one loses its connection, dies and comes again while another one is mended", clients_return()},
    };
}

template <>
listed<repairer_setup> large() {
    repairer_setup all = incarnations({.deaths = 2, .holder_deaths = 1}, 1, 1);
    repairer_setup holders = incarnations({.deaths = 2, .holder_deaths = 2}, 1, 0);
    repairer_setup again = incarnations({.deaths = 3, .holder_deaths = 1, .births = 1}, 1, 0);
    return {
        {"two die, a mender dies, one stops, and so does a holder", all},
        {"two die, a mender dies, and two holders", holders},
        {"three deaths, of one that comes again, a mender's and a holder's", again},
    };
}

template <>
listed<repairer_setup> seeded() {
    listed<repairer_setup> all;
    const auto add = [&all](const char* name, const char* rule, repairer_setup s, auto leave_out) {
        leave_out(s);
        all.push_back({name, s, rule});
    };
    using setup = repairer_setup;
    const char* const count = "the count of the lost is wrong";
    const char* const gone = "capacity is lost";
    const char* const unmended = "an entry is free, and its cells are not mended";
    add("a second mender is started beside the first", unmended, repairer_dies(),
        [](setup& s) { s.one_at_a_time = false; });
    add("a new holder looks for no mender", gone, both_die(), [](setup& s) { s.checks_for_another = false; });
    add("a new holder waits for a mender that it doesn't end", stuck, one_stops(),
        [](setup& s) { s.ends_another = false; });
    add("a new holder doesn't wait for the end of the one that it kills", gone, both_die(),
        [](setup& s) { s.waits_for_exit = false; });
    add("a mender is known by its pid alone", "a stranger is killed", among_other_processes(),
        [](setup& s) { s.start_compared = false; });
    add("a mender is told before it stands in the space", gone, both_die(),
        [](setup& s) { s.named_before_notified = false; });
    add("whom a dead mender was told of is forgotten", stuck, repairer_dies(),
        [](setup& s) { s.orders_repeated = false; });
    add("a new holder doesn't look for the FENCED", stuck, both_die(),
        [](setup& s) { s.finds_fenced = false; });
    add("a mender that hangs is waited for", stuck, one_stops(), [](setup& s) { s.has_timeout = false; });
    add("a mender's end is taken for its word", unmended, repairer_dies(),
        [](setup& s) { s.exit_is_not_done = false; });
    add("a mender says that it is done before it is", unmended, repairer_dies(),
        [](setup& s) { s.reports_after_last_change = false; });
    add("a mender that has heard nothing stays when its holder dies", stuck, both_die(),
        [](setup& s) { s.ends_with_socket = false; });
    add("a mender begins with its own dead, not with what is marked", count, repairer_dies(),
        [](setup& s) { s.marked_first = false; });
    add("a mender counts again what another one has counted", count, repairer_dies(),
        [](setup& s) { s.counted_once = false; });
    add("a mender is told of a life before its fence", "a cell is not its holder's any more",
        clients_return(), [](setup& s) { s.retirement.waits_for_fence = false; });
    add("an entry is free before its mender has ended", gone, clients_return(),
        [](setup& s) { s.retirement.frees_entry_last = false; });
    add("a newcomer bears an epoch that a mender was told of", "a cell is not its holder's any more",
        clients_return(), [](setup& s) { s.retirement.new_epoch = false; });
    return all;
}

}  // namespace carousel::ipc_model
