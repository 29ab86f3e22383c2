#include "catalogue.hpp"

namespace carousel::ipc_model {
namespace {

mender_setup lives(faults may, u8 mender_deaths, u8 mender_stops) {
    mender_setup s;
    s.lives = 2, s.may = may, s.mender_deaths = mender_deaths, s.mender_stops = mender_stops;
    return s;
}
mender_setup mender_dies() { return lives({.deaths = 2}, 2, 0); }
mender_setup both_die() { return lives({.deaths = 2, .holder_deaths = 1}, 1, 0); }
mender_setup one_stops() { return lives({.deaths = 1, .holder_deaths = 1}, 0, 1); }
mender_setup one_is_slow() {
    mender_setup s = lives({.deaths = 2}, 0, 1);
    s.impatience = 1;
    return s;
}
mender_setup among_strangers() {
    mender_setup s = lives({.deaths = 2, .holder_deaths = 1}, 0, 0);
    s.strangers = 1;
    return s;
}
mender_setup they_come_again() {
    return lives({.deaths = 2, .cuts = 1, .holder_deaths = 1, .births = 1}, 0, 0);
}

}  // namespace

template <>
listed<mender_setup> sound() {
    return {
        {"two die, and so do two menders in the midst of it", mender_dies()},
        {"two die, then a mender and the holder, one before the other", both_die()},
        {"a mender stops for as long as it likes, and its holder dies", one_stops()},
        {"a mender is killed for being slow, and goes on for a while", one_is_slow()},
        {"a stranger has the pid of a mender that has ended", among_strangers()},
        {"one loses its connection, dies and comes again while another one is mended", they_come_again()},
    };
}

template <>
listed<mender_setup> large() {
    mender_setup all = lives({.deaths = 2, .holder_deaths = 1}, 1, 1);
    mender_setup holders = lives({.deaths = 2, .holder_deaths = 2}, 1, 0);
    mender_setup again = lives({.deaths = 3, .holder_deaths = 1, .births = 1}, 1, 0);
    return {
        {"two die, a mender dies, one stops, and so does a holder", all},
        {"two die, a mender dies, and two holders", holders},
        {"three deaths, of one that comes again, a mender's and a holder's", again},
    };
}

template <>
listed<mender_setup> seeded() {
    listed<mender_setup> all;
    const auto add = [&all](const char* name, const char* rule, mender_setup s, auto leave_out) {
        leave_out(s);
        all.push_back({name, s, rule});
    };
    using setup = mender_setup;
    const char* const count = "the count of the lost is wrong";
    const char* const gone = "capacity is lost";
    const char* const unmended = "an entry is free, and its cells are not mended";
    add("a second mender is started beside the first", unmended, mender_dies(),
        [](setup& s) { s.one_at_a_time = false; });
    add("a new holder looks for no mender", gone, both_die(), [](setup& s) { s.looks_for_another = false; });
    add("a new holder waits for a mender that it doesn't end", stuck, one_stops(),
        [](setup& s) { s.ends_another = false; });
    add("a new holder doesn't wait for the end of the one that it kills", gone, both_die(),
        [](setup& s) { s.waits_for_its_end = false; });
    add("a mender is known by its pid alone", "a stranger is killed", among_strangers(),
        [](setup& s) { s.start_compared = false; });
    add("a mender is told before it stands in the space", gone, both_die(),
        [](setup& s) { s.named_before_told = false; });
    add("whom a dead mender was told of is forgotten", stuck, mender_dies(),
        [](setup& s) { s.told_again = false; });
    add("a new holder doesn't look for the FENCED", stuck, both_die(),
        [](setup& s) { s.finds_fenced = false; });
    add("a mender that hangs is waited for", stuck, one_stops(), [](setup& s) { s.has_patience = false; });
    add("a mender's end is taken for its word", unmended, mender_dies(),
        [](setup& s) { s.end_is_no_word = false; });
    add("a mender says that it is done before it is", unmended, mender_dies(),
        [](setup& s) { s.says_it_behind = false; });
    add("a mender that has heard nothing stays when its holder dies", stuck, both_die(),
        [](setup& s) { s.ends_with_socket = false; });
    add("a mender begins with its own dead, not with what is marked", count, mender_dies(),
        [](setup& s) { s.marked_first = false; });
    add("a mender counts again what another one has counted", count, mender_dies(),
        [](setup& s) { s.counted_once = false; });
    add("a mender is told of a life before its fence", "a cell is not its holder's any more",
        they_come_again(), [](setup& s) { s.retirement.waits_for_fence = false; });
    add("an entry is free before its mender has ended", gone, they_come_again(),
        [](setup& s) { s.retirement.frees_entry_last = false; });
    add("a newcomer bears an epoch that a mender was told of", "a cell is not its holder's any more",
        they_come_again(), [](setup& s) { s.retirement.new_epoch = false; });
    return all;
}

}  // namespace carousel::ipc_model
