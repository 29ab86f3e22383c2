// A space in one process: its holder on a thread, its clients on others. Real deaths: test_kills.cpp.
#include <carousel/ipc.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "ipc/attachment.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/spaces.hpp"
#include "shm/process_id.hpp"
#include "space_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/in_child.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::test;

TEST_CASE("a client that starts first waits for its holder, and then names the missing part") {
    scene s;
    const std::string why = refusal_of([] { (void)ipc::open("lab", {.wait_s = 0.05}); });
    CHECK_THAT(why, contains("no process holds it"));
    CHECK_THAT(why, contains("carousel hold lab"));
    CHECK_THAT(refusal_of([] { (void)ipc::open("la/b"); }), contains("can't be the name of a space"));
    std::unique_ptr<held_space> late;
    std::thread other([&] {
        std::this_thread::sleep_for(milliseconds(100));
        late = std::make_unique<held_space>("lab");
    });
    {
        const space lab = ipc::open("lab", {.wait_s = 20});
        other.join();
        CHECK(lab.is_held());
    }
    late.reset();
}

TEST_CASE("the first request determines the shape, and other requests get an error") {
    scene s;
    held_space h("lab");
    space lab = ipc::open("lab"), again = ipc::open("lab");
    shared_semaphore a = lab.semaphore("turn", 1), b = again.semaphore("turn", 1);
    const held_permit p = a.acquire(seconds(1));
    CHECK_FALSE(b.try_acquire());
    CHECK_THAT(refusal_of([&] { (void)again.semaphore("turn", 2); }),
               contains("exists as a semaphore of 1 permits"));
    CHECK_THAT(refusal_of([&] { (void)again.queue<u64>("turn", 8); }), contains("but a queue"));
    CHECK_THAT(refusal_of([&] { (void)lab.semaphore("none", 0); }), contains("1 to 4096 permits"));
    CHECK_THAT(refusal_of([&] { (void)lab.work_queue<u64>("w", 8, 16); }), contains("1 to 15 attempts"));
    CHECK_THAT(refusal_of([&] { (void)lab.pool("p", 8192, 100); }), contains("multiple of 4096"));
    CHECK_THAT(refusal_of([&] { (void)lab.pool("p", u64{1} << 30U); }), contains("hold a larger space"));
    CHECK_THAT(refusal_of([&] { (void)lab.semaphore(std::string(41, 'x'), 1); }),
               contains("1 to 40 printable characters"));
    CHECK_THAT(refusal_of([&] { (void)lab.semaphore("\xff", 1); }), contains("printable characters"));
}

TEST_CASE("a size near 2^64 is refused, and no two primitives overlap after it") {
    scene s;
    held_space h("lab");
    space lab = ipc::open("lab");
    constexpr u64 page = 4096, most = ~u64{0} - page + 1;
    for (const u64 unit : {most, u64{1} << 48U})
        CHECK_THAT(refusal_of([&] { (void)lab.pool("huge", most / unit * unit, unit); }),
                   contains("hold a larger space"));
    {
        attachment raw("lab", 5);  // without the rounding of <carousel/ipc.hpp>
        CHECK_THAT(refusal_of([&] {
                       (void)raw.place("huge", {kind::pool, most, most, 0});
                   }),
                   contains("hold a larger space"));
    }
    shared_pool pool = lab.pool("small", 4 * page, page);
    const auto queue = lab.queue<u64>("queue", 8);
    CHECK_THAT(refusal_of([&] { (void)pool.acquire(~u64{0}, milliseconds(5)); }), contains("request less"));
    const space_block& b = h.of().block();
    CHECK(b.place[1].offset >= b.place[0].offset + b.place[0].bytes);
    CHECK(b.place[1].offset + b.place[1].bytes <= b.bytes);
}

TEST_CASE("a name is held once, and its folder is removed with it") {
    scene s;
    {
        held_space h("lab");
        CHECK_THAT(refusal_of([] { holder second("lab", 0); }), contains("is already held by process"));
    }
    CHECK_FALSE(std::filesystem::exists(place_of("lab").folder));
}

TEST_CASE("a client that leaves returns all held objects, although its process is alive") {
    scene s;
    held_space h("lab");
    space stays = ipc::open("lab");
    {
        attachment leaves("lab", 5);
        const u32 k = leaves.place("turn", {kind::semaphore, 1, 0, 0});
        auto& word = *leaves.block().at(leaves.block().place[k].offset + 256);  // its permit
        reinterpret_cast<ipc::word&>(word).store(owner_word<u8>{0, leaves.epoch(), 1}.pack());
    }
    shared_semaphore turn = stays.semaphore("turn", 1);
    held_permit got = turn.acquire(seconds(20));
    CHECK(turn.free() == 0);
}

TEST_CASE("a timeout names the owner and the free amount") {
    scene s;
    held_space h("lab");
    space lab = ipc::open("lab");
    const std::string me = "process " + std::to_string(::getpid());
    shared_semaphore turn = lab.semaphore("turn", 1);
    const held_permit p = turn.acquire(seconds(1));
    CHECK_THAT(refusal_of([&] { (void)turn.acquire(milliseconds(5)); }), contains("held by " + me));
    shared_pool pool = lab.pool("pool", 4 * 4096, 4096);
    const held_block b = pool.acquire(3 * 4096, seconds(1));
    const std::string full = refusal_of([&] { (void)pool.acquire(2 * 4096, milliseconds(5)); });
    CHECK_THAT(full, contains("4096 of 16384 bytes are free"));
    CHECK_THAT(full, contains(me));
    CHECK_THAT(refusal_of([&] { (void)pool.acquire(5 * 4096, milliseconds(5)); }), contains("request less"));
    auto queue = lab.queue<u64>("queue", 1);
    CHECK_THAT(refusal_of([&] { (void)queue.pop(milliseconds(5)); }), contains("it is empty"));
    queue.push(1, seconds(1));
    CHECK_THAT(refusal_of([&] { queue.push(2, milliseconds(5)); }), contains("it is full"));
    auto work = lab.work_queue<u64>("work", 1);
    CHECK_THAT(refusal_of([&] { (void)work.claim(milliseconds(5)); }), contains("no task waits"));
    work.submit(1, seconds(1));
    CHECK_THAT(refusal_of([&] { work.submit(2, milliseconds(5)); }), contains("1 tasks wait"));
}

TEST_CASE("handles return their objects once, at their end, and can be moved") {
    scene s;
    held_space h("lab");
    space lab = ipc::open("lab");
    shared_semaphore turn = lab.semaphore("turn", 2);
    {
        held_permit a = turn.acquire(seconds(1));
        held_permit b = std::move(a);
        a = turn.acquire(seconds(1));
        CHECK(turn.free() == 0);
        b.release();
        b.release();
        CHECK(turn.free() == 1);
    }
    CHECK(turn.free() == 2);
    auto queue = lab.queue<u64>("queue", 4);
    CHECK(queue.try_push(std::vector<u64>{7, 8}) == 2);
    { const auto requeued = queue.lease(seconds(1)); }
    auto lease = queue.lease(seconds(1));
    CHECK(lease.value() == 7);
    lease.commit();
    CHECK(queue.try_pop() == std::optional<u64>(8));
    auto work = lab.work_queue<u64>("work", 4, 2);
    const task_id id = work.submit(9, seconds(1));
    { const auto failed = work.claim(seconds(1)); }
    auto task = work.claim(seconds(1));
    CHECK(task.failed_attempts() == 1);
    CHECK(work.state_of(id) == task_state_now::claimed);
    task.fail();
    CHECK(work.state_of(id) == task_state_now::dead_letter);
    CHECK(work.take_dead_letter() == std::optional<u64>(9));
    CHECK(work.state_of(id) == task_state_now::over);
}

TEST_CASE("blocks are passed from client to client with their description") {
    scene s;
    held_space h("lab");
    space one = ipc::open("lab"), two = ipc::open("lab");
    shared_pool from = one.pool("frames", 8 * 4096, 4096), to = two.pool("frames", 8 * 4096, 4096);
    auto out = one.block_queue<u32>("travel", 2, from);
    auto in = two.block_queue<u32>("travel", 2, to);
    held_block b = from.acquire(5000, seconds(1));
    CHECK(b.data().size() == 8192);
    b.data()[4999] = std::byte{42};
    const u64 offset = b.offset();
    out.send(std::move(b), 77, seconds(1));
    CHECK(from.state().travelling == 1);
    auto got = in.receive(seconds(1));
    CHECK(got.about == 77);
    CHECK(got.block.offset() == offset);
    CHECK(got.block.data()[4999] == std::byte{42});
    CHECK(got.block.data().data() != nullptr);
    CHECK_THAT(refusal_of([&] { (void)in.receive(milliseconds(5)); }), contains("it is empty"));
    got.block.release();
    CHECK(to.state().free_bytes == 8 * 4096);
    held_block gone = from.acquire(1, seconds(1));
    gone.release();
    CHECK_THAT(refusal_of([&] { (void)out.try_send(gone, 1); }), contains("no longer held"));
}

TEST_CASE("clients continue without their holder, and the next holder takes over their memory") {
    scene s;
    auto first = std::make_unique<held_space>("lab");
    space lab = ipc::open("lab", {.wait_s = 0.05});
    shared_semaphore turn = lab.semaphore("turn", 1);
    held_permit p = turn.acquire(seconds(1));
    first.reset();
    REQUIRE(soon([&] { return !lab.is_held(); }));
    p.release();
    p = turn.acquire(seconds(1));  // needs no holder
    CHECK(lab.semaphore("turn", 1).free() == 0);
    CHECK_THAT(refusal_of([&] { (void)lab.semaphore("new", 1); }), contains("has no holder to create it"));
    CHECK_THAT(refusal_of([&] { (void)ipc::open("lab", {.wait_s = 0.05}); }), contains("takes it over"));
    CHECK_THAT(refusal_of([&] { (void)turn.acquire(milliseconds(5)); }), contains("its holder has ended"));

    CHECK_THAT(refusal_of([] { holder other_size("lab", u64{8} << 20U); }), contains("remove --size"));
    const held_space second("lab", 0);
    REQUIRE(soon([&] { return lab.is_held(); }));
    space late = ipc::open("lab");
    CHECK(late.semaphore("turn", 1).free() == 0);
    p.release();
    CHECK(late.semaphore("turn", 1).free() == 1);
    CHECK(lab.semaphore("new", 1).free() == 1);
}

TEST_CASE("a forked child can't change objects that its parent has opened") {
    scene s;
    held_space h("lab");
    attachment a("lab", 5);
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGSEGV, SIG_DFL);
        ::signal(SIGBUS, SIG_DFL);
        a.block().bell.value.store(1);
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
}

TEST_CASE("a forked child that unwinds does not change its parent's space or holdings") {
    scene s;
    held_space h("lab");
    auto lab = std::make_unique<space>(ipc::open("lab"));
    auto also = std::make_unique<attachment>("lab", 5);
    std::optional<shared_semaphore> turn = lab->semaphore("turn", 1);
    auto permit = std::make_unique<held_permit>(turn->acquire(seconds(1)));
    void* const there = &also->block();
    CHECK(in_child([&] {
              ::alarm(20);  // a child that joins a thread which it does not have may never end
              // Memory of the child's own, where its parent has the space.
              void* const own = ::mmap(there, 4096, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
              need(own == there);
              permit.reset();
              turn.reset();
              lab.reset();
              also.reset();
              need(*static_cast<volatile char*>(own) == 0);
          }) == went_through);
    CHECK(turn->free() == 0);
    CHECK(also->place("turn", {kind::semaphore, 1, 0, 0}) == 0);  // its connection stays
    CHECK(lab->semaphore("next", 1).free() == 1);
    CHECK(lab->is_held());
    CHECK(h.of().clients() == 2);
    permit->release();
    CHECK(turn->free() == 1);
}

TEST_CASE("a live client without a connection keeps its objects until it ends") {
    scene s;
    held_space h("lab");
    attachment stays("lab", 5);
    semaphore_block& turn =
        stays.block().block_of<semaphore_block>(stays.place("turn", {kind::semaphore, 1, 0, 0}));
    auto [ours, theirs] = shm::socket_pair();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        shm::unique_fd to = shm::connect_to(place_of("lab").socket());
        shm::message m;
        (void)shm::send_message(to.get(), fmt::format(R"({{"attach": {{"version": {}, "start_time": {}}}}})",
                                                      space_version, shm::this_process().start_time));
        (void)shm::receive_message(to.get(), m, 20 * ns_per_s);
        (void)shm::send_message(theirs.get(), m.text);
        (void)shm::receive_message(theirs.get(), m, 20 * ns_per_s);  // until the test has given it a permit
        to.reset();
        for (;;) ::pause();
    }
    shm::message m;
    REQUIRE(shm::receive_message(ours.get(), m, 20 * ns_per_s) == shm::receive_status::ok);
    const auto welcome = nlohmann::json::parse(m.text).at("welcome");
    const u32 epoch = welcome.at("epoch"), entry = welcome.at("entry");
    const registry_block& all = stays.block().registry;
    REQUIRE(semaphore(turn, epoch).try_acquire());
    REQUIRE(shm::send_message(ours.get(), "go on"));
    REQUIRE(soon([&] { return client_at(all, entry).state != entry_state::attached; }));
    CHECK(client_at(all, entry).state == entry_state::dead);  // and no further: it may still write
    CHECK(semaphore(turn, stays.epoch()).free_permits() == 0);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK(soon([&] { return semaphore(turn, stays.epoch()).free_permits() == 1; }));
}

TEST_CASE("a holder refuses unauthenticated peers and other versions with an error") {
    scene s;
    held_space h("lab");
    const auto reply_to = [](const std::string& text) {
        const shm::unique_fd to = shm::connect_to(place_of("lab").socket());
        shm::message m;
        REQUIRE(shm::send_message(to.get(), text));
        REQUIRE(shm::receive_message(to.get(), m, 20 * ns_per_s) == shm::receive_status::ok);
        return m.text;
    };
    CHECK_THAT(reply_to("hello"), contains("must identify itself first"));
    CHECK_THAT(reply_to("\xff\xfe{"), contains("must identify itself first"));
    CHECK_THAT(reply_to(R"({"attach": {"version": 99, "start_time": 1}})"), contains("rebuild the older"));
    CHECK_THAT(reply_to(R"({"attach": {"version": 3, "time_namespace": "time:[1]", "realtime_ns": 1}})"),
               contains("another time namespace"));
    const std::string me = std::to_string(shm::this_process().start_time);
    CHECK_THAT(reply_to(R"({"return": {"version": 3, "epoch": 77, "start_time": )" + me + "}}"),
               contains("open the space again"));
    CHECK_THAT(reply_to(R"({"return": {"version": 3, "epoch": 4294967296, "start_time": )" + me + "}}"),
               contains("open the space again"));
    CHECK_THAT(reply_to(R"({"attach": {"version": 3, "start_time": )" + me + "}}"), contains("welcome"));

    // A client that has entered may request anything.
    const shm::unique_fd in = shm::connect_to(place_of("lab").socket());
    const auto reply_of = [&](const std::string& text) {
        shm::message m;
        REQUIRE(shm::send_message(in.get(), text));
        REQUIRE(shm::receive_message(in.get(), m, 20 * ns_per_s) == shm::receive_status::ok);
        return m.text;
    };
    CHECK_THAT(reply_of(R"({"attach": {"version": 3, "start_time": )" + me + "}}"), contains("welcome"));
    CHECK_THAT(reply_of("\xff\xfe"), contains("unknown request for a holder"));
    CHECK_THAT(reply_of(std::string(79, 'x') + "\xc3\xa4"), contains("unknown request for a holder"));
    CHECK_THAT(reply_of(R"({"make": 5})"), contains("unknown request for a holder"));
    CHECK_THAT(reply_of(R"({"make": {"name": "\u00e4", "kind": 1, "count": 1, "each": 0, "more": 0}})"),
               contains("printable characters"));
    CHECK_THAT(reply_of(R"({"make": {"name": "a", "kind": 4, "count": 0, "each": 0, "more": 0}})"),
               contains("multiple of 4096"));
    CHECK_THAT(reply_of(R"({"make": {"name": "a", "kind": 1, "count": 1, "each": 0, "more": 0}})"),
               contains("made"));
}

TEST_CASE("a malformed reply of a holder is an error of the space") {
    scene s;
    const hold_place p = place_of("lab");
    make_place_folder(p);
    const shm::unique_fd listener = shm::listen_at(p.socket());
    const memory m = memory::make("lab", 4U << 20U);
    const char* const reply = GENERATE(
        R"({"refused": 5})", R"({"welcome": 7})", R"({"welcome": {"epoch": "x", "entry": 0}})",
        R"({"welcome": {"epoch": 1, "entry": 256}})", R"({"welcome": {"epoch": 1, "entry": -1}})", "{}");
    CAPTURE(reply);
    std::thread holder([&] {
        shm::unique_fd peer;
        (void)soon([&] {
            peer.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            return static_cast<bool>(peer);
        });
        shm::message request;
        (void)shm::receive_message(peer.get(), request, 20 * ns_per_s);
        (void)shm::send_message(peer.get(), reply, {m.fd()});
    });
    const std::string why = refusal_of([] { const attachment a("lab", 0); });
    holder.join();
    CHECK_THAT(why, Catch::Matchers::StartsWith("opening the space \"lab\": "));
}

TEST_CASE("a holder with too many silent connections replies to the next ones") {
    constexpr rlim_t needed = 4096;  // both ends of the connections are in this process
    rlimit files{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
    if (files.rlim_max < needed) return;
    files.rlim_cur = std::max(files.rlim_cur, needed);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
    scene s;
    held_space h("lab");
    std::vector<shm::unique_fd> silent;
    for (u32 k = 0; k < 2 * max_clients; ++k) silent.push_back(shm::connect_to(place_of("lab").socket()));
    CHECK_THAT(refusal_of([] { const attachment a("lab", 0); }), contains("have not sent a request yet"));
    CHECK_THAT(refusal_of([] { (void)inspect_space(find_space("lab").value()); }),
               contains("have not sent a request yet"));
    silent.clear();
    CHECK(refusal_of([] { const attachment a("lab", 20); }).empty());
}

TEST_CASE("memory that is not a space of this version and user is refused before it is used") {
    const auto why = [](shm::unique_fd fd) {
        return refusal_of([&] { (void)memory::map(std::move(fd), "lab"); });
    };
    const auto memfd = [](off_t bytes, bool sealed) {
        shm::unique_fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        REQUIRE(::ftruncate(fd.get(), bytes) == 0);
        if (sealed) REQUIRE(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
        return fd;
    };
    CHECK_THAT(why(memfd(1 << 20U, false)), contains("is not sealed"));
    CHECK_THAT(why(memfd(4096, true)), contains("a space has at least"));
    CHECK_THAT(why(memfd(1 << 20U, true)), contains("its memory contains no space"));
    const memory good = memory::make("lab", 1U << 20U);
    const auto again = [&] { return shm::unique_fd(::dup(good.fd())); };
    CHECK(why(again()).empty());
    good.block().version = space_version + 1;
    CHECK_THAT(why(again()), contains("its layout is version "));
    good.block().version = space_version;
    good.block().uid += 1;
    CHECK_THAT(why(again()), contains("run as the same user"));
    good.block().uid -= 1;
    good.block().bytes += 4096;
    CHECK_THAT(why(again()), contains("the space is damaged"));
}

TEST_CASE("a primitive partly created by a dead holder is created again by the next one") {
    const memory m = memory::make("lab", 4U << 20U);
    space_block& s = m.block();
    const u32 a = make_place(s, "a", {kind::semaphore, 3, 0, 0});
    s.place[1].offset = 12345;  // half filled, never published
    s.place[1].what = 3;
    const u32 b = make_place(s, "b", {kind::queue, 8, 24, 0});
    CHECK(b == 1);
    CHECK(s.place[b].offset == s.place[a].offset + s.place[a].bytes);
    CHECK(find_place(s, "b") == b);
    CHECK(find_place(s, "c") == no_place);
    CHECK_THAT(refusal_of([&] {
                   (void)make_place(s, "c", {kind::queue, 8, 24, 1});
               }),
               contains("no such pool"));
    CHECK_THAT(refusal_of([&] {
                   (void)make_place(s, "c", {static_cast<kind>(9), 8, 24, 1});
               }),
               contains("unknown kind"));
}
