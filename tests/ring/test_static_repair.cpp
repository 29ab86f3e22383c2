// Static parts whose bits flip: one that no process acts on is restored after one check, every other one is
// left to be reported; a set of parameters belongs to either kind, depending on whether frames can still need
// it.
#include <cstring>

#include "ring/check/repair.hpp"
#include "ring/parameter_box.hpp"
#include "seated.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::ring;

struct static_block {
    shm::private_block made = shm::make_private_block();
    test::bench b{test::chain_of_three()};
    known_run known;

    static_block() {
        const std::byte values[] = {std::byte{1}, std::byte{2}, std::byte{3}};
        initialise_parameters(b.c->parameters, values, 0);
        b.c->magic.store(shm::control_magic);
        keep();
    }
    void keep() const { shm::copy_words(*made, *b.c); }
    [[nodiscard]] bool whole() const {
        return std::memcmp(static_cast<const void*>(b.c.get()), static_cast<const void*>(made.get()),
                           shm::word_bytes) == 0;
    }
    /// As the supervisor does, in the block and in its copy.
    void publish(u64 horizon, std::byte value) const {
        for (shm::control_block* c : {b.c.get(), made.get()}) {
            const u32 sets = parameter_state::of(load(c->parameters.state)).sets;
            c->parameters.state.store(parameter_state{sets, horizon}.pack());
            REQUIRE(ring::publish(c->parameters, std::span(&value, 1), ~u64{0}) == horizon);
        }
    }
};

struct repaired_field {
    const char* name;
    void* at;
    std::size_t bytes;
};

template <typename T>
repaired_field field_of(const char* name, T& at) {
    return {name, &at, sizeof at};
}

}  // namespace

TEST_CASE("a word that is only displayed is repaired after any bit flip, and named") {
    static_block r;
    shm::control_block& c = *r.b.c;
    c.assets = 1;
    std::strcpy(c.asset[0].name, "boxes");
    r.keep();
    const repaired_field fields[] = {field_of("magic", c.magic),
                                     field_of("version", c.version),
                                     field_of("uid", c.uid),
                                     field_of("bytes", c.bytes),
                                     field_of("run_id", c.run_id),
                                     field_of("pipeline", c.pipeline),
                                     field_of("created_ns", c.created_ns),
                                     field_of("width", c.width),
                                     field_of("height", c.height),
                                     field_of("frame_timeout_ns", c.frame_timeout_ns),
                                     field_of("name", c.stage[1].name),
                                     field_of("frame_timeout_ns", c.stage[2].frame_timeout_ns),
                                     field_of("name", c.link[1].name),
                                     field_of("group_stage", c.link[0].group_stage),
                                     field_of("memory", c.link[0].memory),
                                     field_of("memory_ready", c.link[1].memory_ready),
                                     field_of("ipc_handle", c.link[1].ipc_handle),
                                     field_of("first_epoch", c.seat[1].first_epoch),
                                     field_of("memory", c.asset[0].memory),
                                     field_of("ipc_handle", c.asset[0].ipc_handle)};
    REQUIRE(r.whole());
    for (const repaired_field& f : fields) {
        for (std::size_t bit = 0; bit < 8 * f.bytes; ++bit) {
            static_cast<std::byte*>(f.at)[bit / 8] ^= std::byte{1} << (bit % 8);
            const auto repaired = repair_static(c, *r.made, r.known);
            INFO(f.name << " bit " << bit);
            REQUIRE(repaired.size() == 1);
            REQUIRE(repaired[0].ends_with(std::string(": ") + f.name));
            REQUIRE(r.whole());
        }
    }
    CHECK(repair_static(c, *r.made, r.known).empty());
}

TEST_CASE("a word that a process may have acted on is not repaired, for any flipped bit") {
    static_block r;
    shm::control_block& c = *r.b.c;
    const repaired_field fields[] = {field_of("stages", c.stages),
                                     field_of("seats", c.seats),
                                     field_of("links", c.links),
                                     field_of("jobs", c.jobs),
                                     field_of("first_ring_sequence", c.first_ring_sequence),
                                     field_of("fps", c.fps),
                                     field_of("inputs", c.stage[1].inputs),
                                     field_of("input_link", c.stage[1].input_link),
                                     field_of("input_group", c.stage[1].input_group),
                                     field_of("output_link", c.stage[0].output_link),
                                     field_of("max_attempts", c.stage[1].max_attempts),
                                     field_of("flags", c.stage[2].flags),
                                     field_of("slots", c.link[0].slots),
                                     field_of("window", c.link[0].window),
                                     field_of("blocking", c.link[0].blocking),
                                     field_of("slot_bytes", c.link[0].slot_bytes),
                                     field_of("first_job", c.seat[1].first_job),
                                     field_of("jobs", c.seat[1].jobs),
                                     field_of("seat", c.job_info[0].seat),
                                     field_of("first_lap", c.source[0].first_lap),
                                     field_of("bytes", c.parameters.bytes)};
    for (const repaired_field& f : fields) {
        for (std::size_t bit = 0; bit < 8 * f.bytes; ++bit) {
            std::byte& at = static_cast<std::byte*>(f.at)[bit / 8];
            at ^= std::byte{1} << (bit % 8);
            INFO(f.name << " bit " << bit);
            REQUIRE(repair_static(c, *r.made, r.known).empty());
            REQUIRE(check_static(c, *r.made).size() == 1);
            at ^= std::byte{1} << (bit % 8);
        }
    }
}

TEST_CASE("a shown wait that the process cannot have is set to none, and a possible one is left") {
    static_block r;
    shm::control_block& c = *r.b.c;
    const test::seated source = r.b.sit(0), middle = r.b.sit(1);
    for (const test::seated* s : {&source, &middle})
        r.known.processes.push_back(
            {s->incarnation.seat, s->incarnation.entry, s->incarnation.epoch, 0, true, false});
    const auto repaired = [&](const test::seated& s, u64 raw) {
        shm::word& at = c.entry[s.incarnation.entry].waiting;
        at.store(raw);
        const auto names = repair_static(c, *r.made, r.known);
        CHECK(load(at) == (names.empty() ? raw : 0));
        if (!names.empty()) CHECK(names[0].ends_with(": waiting"));
        return !names.empty();
    };
    const u64 wait = wait_word{wait_kind::frame, 0, 1234}.pack();
    CHECK_FALSE(repaired(middle, wait));
    CHECK_FALSE(repaired(middle, wait_word{wait_kind::free_slot, 1, 1234}.pack()));
    CHECK_FALSE(repaired(middle, wait_word{wait_kind::turn, shm::none, 1234}.pack()));
    CHECK_FALSE(repaired(source, wait_word{wait_kind::frame, shm::none, 1234}.pack()));
    CHECK_FALSE(repaired(source, 0));
    CHECK(repaired(middle, wait_word{wait_kind::frame, 1, 1234}.pack()));
    CHECK(repaired(middle, wait_word{wait_kind::free_slot, 0, 1234}.pack()));
    CHECK(repaired(middle, wait_word{wait_kind::frame, 77, 1234}.pack()));
    CHECK(repaired(source, wait));
    for (unsigned bit = 0; bit < 64; ++bit) CHECK(repaired(middle, wait ^ u64{1} << bit));
}

TEST_CASE("the entry of a process that waited shows no wait for its next process, of any stage") {
    static_block r;
    shm::control_block& c = *r.b.c;
    const test::seated waited = r.b.sit(2);
    shm::word& at = c.entry[waited.incarnation.entry].waiting;
    at.store(wait_word{wait_kind::frame, 1, 1234}.pack());
    doom(c, waited.incarnation.entry);
    (void)r.b.sit(2);
    r.b.fence(waited);
    SECTION("a process that is started") {
        const incarnation_id next = appoint(c, 1);
        REQUIRE(next.entry == waited.incarnation.entry);
        r.known.processes = {{next.seat, next.entry, next.epoch, 0, true, false}};
    }
    SECTION("a standby") {
        const incarnation_id next = reserve_standby(c, 1);
        REQUIRE(next.entry == waited.incarnation.entry);
        r.known.processes = {{next.seat, next.entry, next.epoch, 0, true, false}};
    }
    CHECK(load(at) == 0);
    CHECK(repair_static(c, *r.made, r.known).empty());
}

TEST_CASE("a parameter set is repaired only if no frame can still need it") {
    static_block r;
    constexpr u32 changes = 10;
    for (u32 k = 1; k <= changes; ++k)
        r.publish(u64{k} * 100, std::byte(k));  // set k counts from frame 100 k on
    struct seen {
        u64 tail;
        u32 in_use;
    };
    for (const auto [tail, in_use] :
         {seen{0, 11}, seen{99, 11}, seen{100, 10}, seen{450, 7}, seen{1000, 1}}) {
        INFO("oldest frame " << tail);
        r.known.tails = {tail, tail};
        CHECK(sets_in_use(r.made->parameters, tail) == in_use);
        for (u32 k = 0; k < shm::max_parameter_sets; ++k) {
            for (const std::size_t byte : {std::size_t{0}, sizeof(u64), 2 * sizeof(u64) + 7}) {
                auto& at = reinterpret_cast<std::byte*>(&r.b.c->parameters.set[k])[byte];
                at ^= std::byte{16};
                const bool needed = k <= changes && k + in_use > changes;
                const auto repaired = repair_static(*r.b.c, *r.made, r.known);
                INFO("set " << k);
                REQUIRE(repaired.size() == (needed ? 0 : 1));
                REQUIRE(check_static(*r.b.c, *r.made).size() == (needed ? 1 : 0));
                if (needed) at ^= std::byte{16};
            }
        }
    }
    // The set that a source reads for the oldest frame is one of those that are not repaired.
    for (u64 n = 0; n <= 1100; n += 50) {
        const shm::parameter_set* const found = parameters_for(r.made->parameters, n);
        REQUIRE(found != nullptr);
        const auto index = static_cast<u32>(found - r.made->parameters.set);
        CHECK(changes - index < sets_in_use(r.made->parameters, n));
    }
}

TEST_CASE("a supervisor that does not know the valid sets repairs none of them") {
    static_block r;
    r.made->parameters.state.store(1);
    r.b.c->parameters.set[40].value[0] ^= std::byte{1};
    CHECK(repair_static(*r.b.c, *r.made, r.known).empty());
}

TEST_CASE("a seat's pause is restored from the supervisor after any bit flip in its word") {
    static_block r;
    r.known.paused.assign(r.made->seats, false);
    r.known.paused[1] = true;
    r.b.c->seat[1].paused.store(1);
    CHECK(repair_static(*r.b.c, *r.made, r.known).empty());
    for (const u32 seat : {0U, 1U})
        for (unsigned bit = 0; bit < 64; ++bit) {
            r.b.c->seat[seat].paused.fetch_xor(u64{1} << bit);
            const auto repaired = repair_static(*r.b.c, *r.made, r.known);
            REQUIRE(repaired.size() == 1);
            CHECK_THAT(repaired[0], test::contains(": held"));
            CHECK(r.b.c->seat[seat].paused.load() == seat);
        }
}

TEST_CASE("a wrong start time of a process is repaired, only for ready processes") {
    static_block r;
    const test::seated sits = r.b.sit(1);
    shm::incarnation& e = r.b.c->entry[sits.incarnation.entry];
    const entry_word w = entry_word::of(load(e.identity));
    e.start_time.store(4711);
    known_process p{w.seat, sits.incarnation.entry, w.epoch, w.pid, true, false, true, 4711};
    const auto repair_times = [&] {
        r.known.processes = {p};
        return repair_start_times(*r.b.c, *r.made, r.known);
    };
    CHECK(repair_times().empty());
    for (unsigned bit = 0; bit < 64; ++bit) {
        e.start_time.fetch_xor(u64{1} << bit);
        REQUIRE(repair_times().size() == 1);
        CHECK(e.start_time.load() == 4711);
    }
    e.start_time.store(0);
    p.ready = false;  // it may be between its claim and the store of its start time
    CHECK(repair_times().empty());
    p.ready = true;
    ++p.pid;  // the entry now belongs to another process
    CHECK(repair_times().empty());
    CHECK(e.start_time.load() == 0);
}
