#include "catalogue.hpp"

namespace carousel::ipc_model {
namespace {

using role = pool_role;

pool_setup blocks(u8 units, std::array<u8, max_incarnations> size, faults may) {
    pool_setup s;
    s.incarnations = 3, s.units = units, s.size = size, s.may = may;
    return s;
}
pool_setup two_large_one_small() { return blocks(3, {2, 2, 1}, {.deaths = 1}); }
pool_setup pair() {
    pool_setup s = blocks(3, {3, 2, 1}, {.deaths = 1, .cuts = 1, .holder_deaths = 1});
    s.incarnations = 2;
    return s;
}
pool_setup transfer_with_user() {
    pool_setup s = blocks(2, {2, 1, 1}, {.deaths = 1, .holder_deaths = 1});
    s.role = {role::giver, role::receiver, role::user};
    return s;
}
pool_setup two_receivers() {
    pool_setup s = blocks(2, {2, 2, 2}, {.deaths = 2, .holder_deaths = 1, .births = 1});
    s.role = {role::giver, role::receiver, role::receiver}, s.rounds = 2;
    return s;
}
pool_setup own_gift() {
    pool_setup s = blocks(2, {2, 1, 1}, {});
    s.role = {role::giver, role::receiver, role::user}, s.incarnations = 2, s.one_process = true;
    return s;
}

}  // namespace

template <>
listed<pool_setup> sound() {
    return {
        {"three share a pool that has no room for all, one dies", two_large_one_small()},
        {"two share a pool, one dies or loses its connection, and the holder dies", pair()},
        {"a block is given beside a user, one dies", transfer_with_user()},
        {"two receive what one gives, two die and one comes again", two_receivers()},
        {"a process receives its own gift", own_gift()},
    };
}

template <>
listed<pool_setup> large() {
    pool_setup s = pair(), three = two_large_one_small(), two_receive = two_receivers();
    s.rounds = 2, s.may = {.deaths = 1, .stops = 1, .cuts = 1, .holder_deaths = 1, .births = 1};
    three.may = {.deaths = 1, .holder_deaths = 1};
    two_receive.units = 3,
    two_receive.may = {.deaths = 2, .stops = 1, .cuts = 1, .holder_deaths = 1, .births = 1};
    return {
        {"two share a pool, twice, with every fault", s},
        {"three share a pool, one dies and the holder dies", three},
        {"two receive what one gives, with every fault", two_receive},
    };
}

template <>
listed<pool_setup> seeded() {
    const pool_setup three = two_large_one_small(), two = pair(), gift = transfer_with_user();
    listed<pool_setup> all;
    const auto add = [&all](const char* name, const char* rule, pool_setup s, auto leave_out) {
        leave_out(s);
        all.push_back({name, s, rule});
    };
    using setup = pool_setup;
    const char* const shared = "a unit is in two blocks";
    const char* const leaked = "a unit is leaked";
    const char* const no_block = "a cell names no block";
    const char* const not_owner = "an owner could not release";
    add("a first unit is stored, not swapped", shared, three, [](setup& s) { s.first_checked = false; });
    add("a further unit is stored, not swapped", shared, three, [](setup& s) { s.body_checked = false; });
    add("the first unit of a block is claimed last", leaked, two,
        [](setup& s) { s.first_claimed_first = false; });
    add("the first unit of a block is freed first", leaked, two,
        [](setup& s) { s.first_freed_last = false; });
    add("a block is freed upwards", leaked, two, [](setup& s) { s.freed_downwards = false; });
    add("who can't have all units keeps some", leaked, three, [](setup& s) { s.frees_part = false; });
    add("a mend keeps what was being claimed", leaked, two, [](setup& s) { s.repairs_claiming = false; });
    add("a mend keeps what was owned", leaked, two, [](setup& s) { s.repairs_owned = false; });
    add("a mend keeps what was being freed", leaked, two, [](setup& s) { s.repairs_leaving = false; });
    add("a mend frees what a cell names", no_block, gift, [](setup& s) { s.repairs_named_to_cell = false; });
    add("a leased cell is not asked what it names", no_block, gift,
        [](setup& s) { s.gathers_leased = false; });
    add("a block's word changes before its cell is published", "a gift is lost", gift,
        [](setup& s) { s.publishes_first = false; });
    add("a receiver frees the cell before it has the block", no_block, gift,
        [](setup& s) { s.commits_last = false; });
    add("a gift keeps its serial", not_owner, own_gift(), [](setup& s) { s.new_serial = false; });
    add("a pool is mended before the fence", not_owner, two,
        [](setup& s) { s.retirement.waits_for_fence = false; });
    add("an entry is free before its pool is mended", leaked, two,
        [](setup& s) { s.retirement.frees_entry_last = false; });
    pool_setup comes_again = two;
    comes_again.may.births = 1;
    add("a newcomer at a pool bears an epoch that is mended", not_owner, comes_again,
        [](setup& s) { s.retirement.new_epoch = false; });
    return all;
}

}  // namespace carousel::ipc_model
