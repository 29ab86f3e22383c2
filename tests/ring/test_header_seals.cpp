// Headers that differ from what was sealed: before the lease, under it, and before their own seal.
#include <functional>
#include <memory>
#include <utility>

#include "ring/header_check.hpp"
#include "ring/latest.hpp"
#include "run_with_flips.hpp"
#include "simulation.hpp"

namespace {

using namespace carousel;
using namespace carousel::ring;
using test::run_in_hand;

constexpr u32 parameter_bytes = 21, metadata_bytes = 13;  // not multiples of the seal's words

/// Uses every field of a header and seals it again.
void use_all_of(shm::frame_header& h) {
    h.meta.time_s = 1.5;
    h.meta.clock = shm::capture_clock::live;
    h.metadata_bytes = metadata_bytes;
    h.sampled_inputs = shm::max_sampled_inputs;
    h.used.planes = (1U << shm::max_used_planes) - 1;
    seal(h, parameter_bytes);
}

TEST_CASE("a header that differs from its seal in any bit is leased by no process") {
    run_in_hand r;
    r.b.c->parameters.bytes = parameter_bytes;
    test::seated source = r.sit(0), middle = r.sit(1);
    (void)test::pass(*source.w);
    shm::frame_header& h = r.b.c->frames[0].header[0];
    CHECK(is_sealed(h, parameter_bytes));
    use_all_of(h);
    job j;
    const std::pair<const char*, std::function<void()>> changes[] = {
        {"sequence", [&] { h.ring_sequence.raw() ^= 3; }},  // an intact word of another number
        {"epoch", [&] { h.epoch ^= 1U; }},
        {"tombstone_stage", [&] { h.meta.tombstone_stage ^= 1U << 31U; }},
        {"tombstone_reason", [&] { h.meta.tombstone_reason ^= 4U; }},
        {"maker_seat", [&] { h.maker_seat ^= 2U; }},
        {"born_ns", [&] { h.meta.born_ns ^= u64{1} << 63U; }},
        {"claimed_ns", [&] { h.claimed_ns ^= 1U; }},
        {"submitted_ns", [&] { h.submitted_ns ^= 1U; }},
        {"time_s", [&] { h.meta.time_s = -h.meta.time_s; }},
        {"frame_number", [&] { h.meta.frame_number ^= 1U; }},
        {"parameter_number", [&] { h.meta.parameter_number ^= 1U; }},
        {"capture_ns", [&] { h.meta.capture_ns ^= 8U; }},
        {"clock", [&] { h.meta.clock = shm::capture_clock{static_cast<u32>(h.meta.clock) ^ 1U}; }},
        {"metadata_bytes", [&] { h.metadata_bytes ^= 2U; }},  // two more bytes, which are 0
        {"metadata_omitted", [&] { h.metadata_omitted ^= 1U; }},
        {"used.planes", [&] { h.used.planes ^= 1U; }},
        {"used.of, the first", [&] { h.used.of[0][0] ^= 1U; }},
        {"used.of, the last", [&] { h.used.of[shm::max_used_planes - 1][shm::max_plane_rank - 1] ^= 1U; }},
        {"sampled_inputs", [&] { h.sampled_inputs ^= 2U; }},
        {"sampled_sequence, the first", [&] { h.sampled_sequence[0] ^= 1U; }},
        {"sampled_sequence, the last",
         [&] { h.sampled_sequence[shm::max_sampled_inputs - 1] ^= u64{1} << 40U; }},
        {"parameters, the first", [&] { h.parameters[0] ^= std::byte{1}; }},
        {"parameters, the last", [&] { h.parameters[parameter_bytes - 1] ^= std::byte{128}; }},
        {"metadata, the first", [&] { h.metadata[0] ^= std::byte{1}; }},
        {"metadata, the last", [&] { h.metadata[metadata_bytes - 1] ^= std::byte{128}; }},
        {"seal", [&] { h.seal ^= 1U; }},
    };
    for (const auto& [name, change] : changes) {
        INFO(name);
        change();
        CHECK_FALSE(is_sealed(h, parameter_bytes));
        CHECK(middle.w->begin(j, 0) == outcome::empty);
        change();
    }
    CHECK(test::pass(*middle.w) == 0);
}

TEST_CASE("a latest member skips a frame with an invalid header and takes the next one") {
    run_in_hand r;
    test::seated source = r.sit(0);
    latest_reader viewer(*r.b.c, 0, shm::max_incarnations);
    REQUIRE(viewer.joined());
    REQUIRE(test::pass(*source.w) == 0);
    r.b.c->frames[0].header[0].meta.born_ns ^= 1U;
    CHECK_FALSE(viewer.acquire());
    REQUIRE(test::pass(*source.w) == 1);
    const slot_ref next = viewer.acquire();
    REQUIRE(next);
    CHECK(next.ring_sequence == 1);
    CHECK(viewer.release());
}

TEST_CASE("a frame whose input's header changes under its lease is not submitted") {
    run_in_hand r;
    r.b.c->parameters.bytes = 16;
    test::seated source = r.sit(0), middle = r.sit(1);
    const std::function<void(shm::frame_header&)> changes[] = {
        [](shm::frame_header& h) { h.parameters[3] ^= std::byte{1}; },
        [](shm::frame_header& h) { h.meta.frame_number ^= 1U; },
        [](shm::frame_header& h) { h.used.planes ^= 1U; },
        [](shm::frame_header& h) { h.metadata_bytes ^= 16U; },
    };
    for (const auto& change : changes) {
        (void)test::pass(*source.w);
        job j;
        REQUIRE(middle.w->begin(j, 0) == outcome::ok);
        shm::frame_header& h = r.b.c->frames[0].header[j.input[0].index];
        change(h);
        CHECK_FALSE(middle.w->submit(j));
        change(h);
        REQUIRE(middle.w->submit(j));
        REQUIRE(middle.w->commit(j));
        REQUIRE(middle.w->complete(j));
    }
}

TEST_CASE("a leased frame whose number changes to an older one keeps its slot and is not submitted") {
    run_in_hand r;
    test::seated source = r.sit(0), middle = r.sit(1), sink = r.sit(2);
    for (u64 n = 0; n < 5; ++n)
        for (const auto* s : {&source, &middle, &sink}) REQUIRE(test::pass(*s->w) == n);
    REQUIRE(test::pass(*source.w) == 5);
    job j;
    REQUIRE(middle.w->begin(j, 0) == outcome::ok);
    shm::frame_header& h = r.b.c->frames[0].header[j.input[0].index];
    const u64 was = h.ring_sequence.raw().load();
    for (u32 a = 0; a < 64 && h.ring_sequence.load() >= 5; ++a)  // two bits: the word is intact
        for (u32 b = a + 1; b < 64 && h.ring_sequence.load() >= 5; ++b)
            h.ring_sequence.raw() = was ^ (u64{1} << a) ^ (u64{1} << b);
    REQUIRE(h.ring_sequence.load() < 5);
    (void)link_ref(*r.b.c, 0).sweep();
    CHECK(load(r.b.c->link[0].slot[j.input[0].index]) == j.input[0].word.pack());
    seal(h, r.b.c->parameters.bytes);  // even with a valid seal it is another frame's header
    CHECK_FALSE(middle.w->submit(j));
}

TEST_CASE("a wrong number does not keep a latest member from later frames") {
    run_in_hand r;
    test::seated source = r.sit(0), middle = r.sit(1);
    latest_reader viewer(*r.b.c, 0, shm::max_incarnations);
    REQUIRE(viewer.joined());
    REQUIRE(test::pass(*source.w) == 0);
    shm::frame_header& h = r.b.c->frames[0].header[0];
    h.ring_sequence.raw() ^= u64{3} << 40U;
    CHECK_FALSE(viewer.acquire());
    h.ring_sequence.raw() ^= u64{3} << 40U;
    REQUIRE(test::pass(*source.w) == 1);
    CHECK(viewer.acquire().ring_sequence == 1);
}

TEST_CASE("a write to a header before its seal is not sealed") {
    run_in_hand r;
    r.b.c->parameters.bytes = 16;
    test::seated source = r.sit(0), middle = r.sit(1);
    (void)test::pass(*source.w);
    job j;
    REQUIRE(middle.w->begin(j, 0) == outcome::ok);
    shm::frame_header& h = r.b.c->frames[1].header[j.output[0].index];
    const auto kept = std::make_unique<shm::frame_header>();
    shm::frame_header& before = *kept;
    before.epoch = h.epoch, before.meta.tombstone_stage = h.meta.tombstone_stage,
    before.meta.frame_number = h.meta.frame_number;
    before.meta.born_ns = h.meta.born_ns, before.meta.time_s = h.meta.time_s,
    before.meta.parameter_number = h.meta.parameter_number;
    before.meta.capture_ns = h.meta.capture_ns, before.meta.clock = h.meta.clock,
    before.parameters[15] = h.parameters[15];
    h.ring_sequence.raw() ^= 3, h.epoch ^= 1U, h.meta.tombstone_stage ^= 2U, h.maker_seat ^= 1U,
        h.meta.born_ns ^= 8U;
    h.meta.frame_number ^= 4U, h.meta.time_s += 1, h.meta.parameter_number ^= 1U, h.meta.capture_ns ^= 1U;
    h.meta.clock = shm::capture_clock::recorded, h.parameters[15] ^= std::byte{1};
    REQUIRE(middle.w->submit(j));
    CHECK(h.ring_sequence.load() == j.ring_sequence);
    CHECK(h.epoch == before.epoch);
    CHECK(h.meta.tombstone_stage == before.meta.tombstone_stage);
    CHECK(h.maker_seat == 1);
    CHECK(h.meta.born_ns == before.meta.born_ns);
    CHECK(h.meta.frame_number == before.meta.frame_number);
    CHECK(h.meta.time_s == before.meta.time_s);
    CHECK(h.meta.parameter_number == before.meta.parameter_number);
    CHECK(h.meta.capture_ns == before.meta.capture_ns);
    CHECK(h.meta.clock == before.meta.clock);
    CHECK(h.parameters[15] == before.parameters[15]);
    CHECK(is_sealed(h, r.b.c->parameters.bytes));
}

}  // namespace
