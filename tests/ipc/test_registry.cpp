#include <unistd.h>

#include "ipc/registry.hpp"
#include "tests/support/catch.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;
using carousel::test::contains;
using carousel::test::zeroed;

TEST_CASE("a client has its own epoch from its attachment until after its repair") {
    zeroed<registry_block> r(sizeof(registry_block));
    const client_id a = attach(*r, {100, 7}), b = attach(*r, {101, 8});
    REQUIRE(a);
    REQUIRE(b);
    CHECK(a.epoch != b.epoch);
    CHECK(find_client(*r, a.epoch).process == shm::process_id{100, 7});
    mark_dead(*r, a.entry);
    CHECK(find_client(*r, a.epoch).state == entry_state::dead);
    free_entry(*r, a.entry);  // not fenced yet: nothing happens
    CHECK(find_client(*r, a.epoch));
    mark_fenced(*r, a.entry);
    free_entry(*r, a.entry);
    CHECK_FALSE(find_client(*r, a.epoch));
    const client_id c = attach(*r, {102, 9});
    CHECK(c.entry == a.entry);
    CHECK(c.epoch != a.epoch);
}

TEST_CASE("a process with the same pid and another start time is another process") {
    zeroed<registry_block> r(sizeof(registry_block));
    const client_id a = attach(*r, {100, 7});
    CHECK_FALSE(attach_again(*r, a.epoch, {100, 8}));
    CHECK_FALSE(attach_again(*r, a.epoch + 1, {100, 7}));
    CHECK(attach_again(*r, a.epoch, {100, 7}));
}

TEST_CASE("a client whose connection broke may reconnect until it is fenced") {
    zeroed<registry_block> r(sizeof(registry_block));
    const client_id a = attach(*r, {100, 7});
    mark_dead(*r, a.entry);
    CHECK(attach_again(*r, a.epoch, {100, 7}).state == entry_state::attached);
    mark_dead(*r, a.entry);
    mark_fenced(*r, a.entry);
    CHECK_FALSE(attach_again(*r, a.epoch, {100, 7}));
}

TEST_CASE("a client that has left is known as such until another client has its entry") {
    zeroed<registry_block> r(sizeof(registry_block));
    const client_id a = attach(*r, {100, 7});
    CHECK_FALSE(has_left(*r, a.entry, a.epoch));
    note_leaving(*r, a.entry, a.epoch);
    CHECK(has_left(*r, a.entry, a.epoch));
    mark_fenced(*r, a.entry);
    free_entry(*r, a.entry);
    r->last_epoch.store(a.epoch - 1);  // the same epoch again, as after a wrap
    const client_id b = attach(*r, {101, 8});
    REQUIRE(b.entry == a.entry);
    REQUIRE(b.epoch == a.epoch);
    CHECK_FALSE(has_left(*r, b.entry, b.epoch));
}

TEST_CASE("a client reconnects to a holder that knows it by another pid") {
    zeroed<registry_block> r(sizeof(registry_block));
    const client_id a = attach(*r, {100, 7}, 1);
    CHECK_FALSE(attach_again(*r, a.epoch, {5, 7}, 1));
    CHECK_FALSE(attach_again(*r, a.epoch, {5, 8}, 2));
    REQUIRE(attach_again(*r, a.epoch, {5, 7}, 2));
    CHECK(find_client(*r, a.epoch).process == shm::process_id{5, 7});
    CHECK(find_client(*r, a.epoch).pid_namespace == 2);
    CHECK_FALSE(attach_again(*r, a.epoch, {100, 7}, 2));
}

TEST_CASE("an epoch still in use is skipped when epochs wrap around") {
    zeroed<registry_block> r(sizeof(registry_block));
    const client_id old = attach(*r, {100, 7});
    REQUIRE(old.epoch == 1);
    r->last_epoch.store(epoch_mask);
    CHECK(attach(*r, {101, 7}).epoch == 2);  // neither 0, which is no process, nor 1
}

TEST_CASE("a full registry attaches no client and names its clients") {
    zeroed<registry_block> r(sizeof(registry_block));
    u32 last = 0;
    for (u32 k = 0; k < max_clients; ++k) last = attach(*r, {1000 + static_cast<i32>(k), 1}).epoch;
    CHECK_FALSE(attach(*r, {5, 5}));
    CHECK(client_text(*r, last) == "process 1255");
    mark_dead(*r, max_clients - 1);
    CHECK_THAT(client_text(*r, last), contains("which has died"));
    CHECK(client_text(*r, last + 1) == "a process that has ended");
    CHECK(clients_text(*r, {1, 2, 1}) == "process 1000 (2), process 1001");
    CHECK(clients_text(*r, {}).empty());
}
