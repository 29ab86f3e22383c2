// Spaces as observers see them, and spaces that are created on demand.
#include <carousel/ipc.hpp>

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/json.hpp"
#include "ipc/place.hpp"
#include "ipc/spaces.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"
#include "shm/runtime_folder.hpp"
#include "space_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::test;

TEST_CASE("if GPU memory can't be created, the space is not held and leaves no files") {
    class no_helper final : public gpu_helper {
        [[nodiscard]] gpu_memory make(u64) override { throw device_error("no GPU here"); }
        [[nodiscard]] gpu_repairer start_repairer() override { return {}; }
        void reap(const gpu_repairer&) override {}
    };
    scene s;
    no_helper none;
    CHECK(contains("no GPU here").match(refusal_of([&] {
        holder h("lab", 1U << 20U, memory_when::at_once, &none, 1U << 20U);
    })));
    CHECK(std::filesystem::is_empty(s.folder.path / "carousel-spaces"));
}

TEST_CASE("a space created on demand takes no memory before, and is taken over without waiting") {
    scene s;
    {
        const u64 begun = now_ns();
        holder idle("idle", 0, memory_when::on_demand);
        const u64 made = now_ns();
        constexpr u64 polls = 10'000;
        for (u64 k = 0; k < polls; ++k) idle.run_once(0);
        std::cout << "a space that nobody has opened: made in " << (made - begun) / 1000 << " us, "
                  << (now_ns() - made) / polls << " ns a look\n";
    }
    auto first = std::make_unique<held_space>("lab", 0, memory_when::on_demand);
    CHECK(read_record(place_of("lab"))->id == no_memory);
    CHECK(inspect_space(*find_space("lab")).id.empty());
    space lab = ipc::open("lab");
    const held_permit p = lab.semaphore("turn", 2).acquire(seconds(1));
    const std::string id = read_record(place_of("lab"))->id;
    CHECK(id != no_memory);
    first.reset();  // like a death: its client continues
    CHECK(find_space("lab")->state == space_state::orphaned);
    const held_space second("lab", 0, memory_when::on_demand);
    CHECK(soon([&] { return !inspect_space(*find_space("lab")).id.empty(); }));
    const space_view v = inspect_space(*find_space("lab"));
    CHECK(v.id == id);
    CHECK(v.of_run);
    CHECK(v.incarnations == 2);
    REQUIRE(v.clients.size() == 1);
    REQUIRE(v.clients[0].holds.size() == 1);
    CHECK(v.clients[0].holds[0].as == "permits");
    CHECK(ipc::open("lab").semaphore("turn", 2).free() == 1);
}

namespace one {
struct sample {
    u64 number;
};
}  // namespace one
namespace two {
struct sample {
    u64 number;
};
struct other {
    f64 number;
};
}  // namespace two

TEST_CASE("a queue with another element type is refused, even if the size is the same") {
    scene s;
    const held_space h("lab");
    space lab = ipc::open("lab"), again = ipc::open("lab");
    (void)lab.queue<one::sample>("samples", 8);
    (void)again.queue<two::sample>("samples", 8);  // each program may be in its own namespace
    const std::string why = refusal_of([&] { (void)again.queue<two::other>("samples", 8); });
    CHECK_THAT(why, contains("another type than requested"));
    CHECK_THAT(why, contains("use the same struct in all programs"));
    CHECK_THAT(refusal_of([&] { (void)again.queue<u64>("samples", 8); }),
               contains("another type than requested"));
    CHECK_THAT(refusal_of([&] { (void)again.queue<u32>("samples", 8); }), contains("but a queue"));
    (void)lab.work_queue<i32>("tiles", 8);
    CHECK_THAT(refusal_of([&] { (void)again.work_queue<f32>("tiles", 8); }),
               contains("another type than requested"));
    static_assert(type_tag<long>() == type_tag<long long>() && type_tag<i64>() != type_tag<u64>());
    static_assert(type_tag<std::pair<int, int>>() == 0);
}

TEST_CASE("a client that leaves while its holder ends leaves no folder") {
    scene s;
    {
        holder h("lab", 1 << 20, memory_when::at_once);
        std::optional<space> lab;
        std::atomic<bool> in{false};
        std::thread client([&] {
            lab.emplace(ipc::open("lab"));
            in = true;
        });
        while (!in) h.run_once(5);
        client.join();
        lab.reset();  // the holder receives it only as it ends
    }
    CHECK_FALSE(find_space("lab"));
}

TEST_CASE("an observer is not a client, and only the folder of a dead space is removed") {
    scene s;
    {
        held_space h("lab");
        space lab = ipc::open("lab");
        (void)lab.pool("frames", 1 << 20, 4096).try_acquire(3 * 4096);
        const held_block block = lab.pool("frames", 1 << 20, 4096).acquire(3 * 4096, seconds(1));
        (void)lab.queue<u64>("samples", 8).try_push(1);
        const space_view v = read_view(to_json(inspect_space(*find_space("lab"))));
        CHECK(h.of().clients() == 1);
        REQUIRE(v.primitives.size() == 2);
        CHECK(v.primitives[0].figures.size() == 4);
        REQUIRE(v.clients.size() == 1);
        REQUIRE(v.clients[0].holds.size() == 1);
        CHECK(v.clients[0].holds[0].bytes == 3 * 4096);
        CHECK_THAT(remove_dead(*find_space("lab")), contains("a process holds it"));
    }
    CHECK_FALSE(find_space("lab"));
    make_place_folder(place_of("gone"));
    write_record(place_of("gone"), {1, "no-such-memory"});
    REQUIRE(find_space("gone"));
    CHECK(find_space("gone")->state == space_state::dead);
    CHECK(remove_dead(*find_space("gone")).empty());
    CHECK_FALSE(find_space("gone"));
}

TEST_CASE("a space with clients in another pid namespace is orphaned, not dead") {
    scene s;
    const hold_place p = place_of("lab");
    make_place_folder(p);
    std::ofstream(shm::folder_lock(p.folder)) << "";
    write_record(p, {1, "no-such-memory"});
    shm::unique_fd client(::open(shm::folder_lock(p.folder).c_str(), O_RDONLY | O_CLOEXEC));
    CHECK(find_space("lab")->state == space_state::dead);
    REQUIRE(shm::lock_shared(client.get()) == 0);
    CHECK(find_space("lab")->state == space_state::orphaned);
    CHECK(find_space("lab")->clients.empty());
    CHECK(remove_dead(*find_space("lab")) == "it is in use again");
    CHECK(std::filesystem::exists(p.record()));
    client.reset();
    CHECK(remove_dead(*find_space("lab")).empty());
    CHECK_FALSE(std::filesystem::exists(p.folder));
}

TEST_CASE("a client holds a lock on its space's folder as long as it has the memory") {
    scene s;
    const held_space h("lab");
    CHECK_FALSE(shm::has_joined(place_of("lab").folder));
    {
        const space client = ipc::open("lab");
        CHECK(shm::has_joined(place_of("lab").folder));
    }
    CHECK_FALSE(shm::has_joined(place_of("lab").folder));
}
