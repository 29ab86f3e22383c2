// A stage with several outputs: one job word, and a slot in each ring.

#include <string>

#include "core/errors.hpp"
#include "frame/metadata.hpp"
#include "ring/check/block_check.hpp"
#include "ring/header_check.hpp"
#include "ring/stream_end.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {

/// The states of the job's slots, one letter per ring.
std::string states(const bench& b, const job& j) {
    std::string out;
    for (u32 k = 0; k < b.c->links; ++k) out += "FLRQ"[static_cast<u32>(b.slot(k, j.output[k].index).state)];
    return out;
}

job begun(const seated& source, u32 in_flight = 0) {
    job j;
    REQUIRE(source.w->begin(j, in_flight) == outcome::ok);
    return j;
}

job committed(const seated& source) {
    job j = begun(source);
    REQUIRE(source.w->submit(j));
    REQUIRE(source.w->commit(j));
    return j;
}

}  // namespace

TEST_CASE("a job fills a slot at each output, and its rings have the frame at once") {
    bench b(fork_and_join());
    CHECK(b.c->links == 2);
    CHECK(std::string(b.c->link[1].name) == "source.depth");
    const seated source = b.sit(0), join = b.sit(1);
    job j = committed(source);
    CHECK(states(b, j) == "LL");
    REQUIRE(source.w->complete(j));
    CHECK(states(b, j) == "RR");
    CHECK(pass(*join.w) == 0);
    CHECK(b.c->link[0].tail.load() == 1);
    CHECK(b.c->link[1].tail.load() == 1);
}

TEST_CASE("data set at the first output is in the headers of all outputs at SUBMITTED") {
    bench b(fork_and_join());
    b.c->parameters.bytes = 2;
    const seated source = b.sit(0);
    job j = begun(source);
    shm::frame_header& first = b.c->frames[0].header[j.output[0].index];
    const shm::frame_header& second = b.c->frames[1].header[j.output[1].index];
    REQUIRE(set_metadata(first.metadata, first.metadata_bytes, "exposure_ms", 3.5) == metadata_change::done);
    j.clock = shm::capture_clock::live;
    j.capture_ns = 42;
    j.time_s = 2.5;
    j.born_ns = 17;
    CHECK(j.frame_number == 0);
    j.frame_number = 60;
    j.parameter_number = 3;
    j.parameters[1] = std::byte{9};
    j.tombstone_stage = 0;
    j.tombstone_reason = 73;
    first.used.planes = 1;
    REQUIRE(source.w->submit(j));
    CHECK(second.meta.time_s == 2.5);
    CHECK(second.meta.born_ns == 17);
    CHECK(second.meta.frame_number == 60);
    CHECK(second.meta.parameter_number == 3);
    CHECK(second.parameters[1] == std::byte{9});
    CHECK(second.meta.tombstone_stage == 0);
    CHECK(second.meta.tombstone_reason == 73);
    CHECK(second.used.planes == 0);  // of the first ring's payload
    CHECK(is_sealed(first, b.c->parameters.bytes));
    CHECK(is_sealed(second, b.c->parameters.bytes));
    CHECK(second.ring_sequence.load() == 0);
    CHECK(second.epoch == first.epoch);
    CHECK(second.submitted_ns == first.submitted_ns);
    CHECK(second.meta.capture_ns == 42);
    CHECK(second.meta.clock == shm::capture_clock::live);
    const auto exposure = find_metadata(metadata_of(second), "exposure_ms");
    REQUIRE(exposure);
    CHECK(text_of(*exposure) == "3.5");
}

TEST_CASE("no frame is leased beyond the window of any output") {
    plan p = fork_and_join();
    p.stages[0].window = 4;
    p.stages[0].more[0].window = 1;
    bench b(p);
    const seated source = b.sit(0), join = b.sit(1);
    CHECK(pass(*source.w) == 0);
    job none;
    CHECK(source.w->begin(none, 0) == outcome::full);
    CHECK(pass(*join.w) == 0);
    CHECK(pass(*source.w) == 1);
}

TEST_CASE("a middle stage with two outputs leases no frame beyond the window of the second") {
    plan p;
    p.stages = {{"source", {}, true}, {"fork", {0}, true}, {"join", {1, 1}, false}};
    p.stages[1].window = 4;
    p.stages[1].more = {{"fork.depth", 1, 256}};
    p.stages[2].input_outputs = {0, 1};
    bench b(p);
    const seated source = b.sit(0), fork = b.sit(1), join = b.sit(2);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    CHECK(pass(*fork.w) == 0);
    job none;
    CHECK(fork.w->begin(none, 0) == outcome::full);
    CHECK(pass(*join.w) == 0);
    CHECK(pass(*fork.w) == 1);
}

TEST_CASE("a death leaves both slots in quarantine until its fence, and the frame is made again") {
    bench b(fork_and_join());
    const seated source = b.sit(0);
    job j = begun(source);
    REQUIRE(source.w->submit(j));
    doom(*b.c, source.incarnation.entry);
    const seated successor = b.sit(0);
    REQUIRE(revoke(*b.c, 0, source.incarnation.epoch));
    CHECK_FALSE(requeue(*b.c, 0, source.incarnation.epoch, blame::none, 1));
    CHECK(states(b, j) == "QQ");
    CHECK(pass(*successor.w) == 0);
    b.fence(source);
    CHECK(states(b, j) == "FF");
    CHECK(b.slot(1, j.output[1].index).generation == 2);
}

TEST_CASE("a death between the slots of one frame keeps the filled slots and changes no other") {
    bench b(fork_and_join());
    const seated source = b.sit(0);
    job j = begun(source);
    // as its crash after the first fill would leave it
    const u64 second = load(b.c->link[1].slot[j.output[1].index]);
    REQUIRE(cas(b.c->link[1].slot[j.output[1].index], second, slot_word{1, 0, 0, slot_state::free}.pack()));
    const seated successor = b.die(source, blame::none, 1);
    CHECK(states(b, j) == "FF");
    CHECK(b.slot(1, j.output[1].index).generation == 1);
    CHECK(pass(*successor.w) == 0);
}

TEST_CASE("both slots of a frame committed by a dead worker become READY, even if one already is") {
    for (const bool one_is_ready : {false, true}) {
        bench b(fork_and_join());
        const seated source = b.sit(0), join = b.sit(1);
        const job j = committed(source);
        if (one_is_ready) REQUIRE(link_ref(*b.c, 0).mark_ready(j.output[0].index, j.index, j.version));
        CHECK(states(b, j) == (one_is_ready ? "RL" : "LL"));
        const seated successor = b.die(source, blame::none, 0);
        CHECK(states(b, j) == "RR");
        CHECK(pass(*join.w) == 0);
        CHECK(pass(*successor.w) == 1);
    }
}

TEST_CASE("a frame that doesn't exist gives the slots of all outputs back") {
    plan p = fork_and_join();
    p.stages[0].ends = true;
    bench b(p);
    const seated source = b.sit(0);
    const job j = begun(source);
    REQUIRE(source.w->end_stream(j) == outcome::empty);
    REQUIRE(lower_end(*b.c, claimed_end(*b.c)->ring_sequence));
    REQUIRE(source.w->end_stream(j) == outcome::ok);
    REQUIRE(source.w->give_back(j));
    CHECK(states(b, j) == "FF");
}

TEST_CASE("a source with two outputs leaves when the last frame is through both") {
    plan p;
    p.stages = {{"source", {}, true}, {"left", {0}, false}, {"right", {0}, false}};
    p.stages[0].more = {{"source.depth", 0, 256}};
    p.stages[2].input_outputs = {1};
    p.end = 1;
    bench b(p);
    const seated source = b.sit(0), left = b.sit(1), right = b.sit(2);
    CHECK(pass(*source.w) == 0);
    job none;
    CHECK(pass(*left.w) == 0);
    CHECK(source.w->begin(none, 0) == outcome::full);
    CHECK(pass(*right.w) == 0);
    CHECK(source.w->begin(none, 0) == outcome::closed);
}

TEST_CASE("a submitted job without a slot at its second output is damage") {
    bench b(fork_and_join());
    const shm::private_block made = shm::make_private_block();
    shm::copy_words(*made, *b.c);
    const seated source = b.sit(0);
    job j = begun(source);
    REQUIRE(source.w->submit(j));
    known_run known;
    known.end = end_unknown;
    CHECK(check_words(*b.c, *made, known).empty());
    b.c->link[1].slot[j.output[1].index].store(slot_word{2, 0, 0, slot_state::free}.pack());
    REQUIRE(check_words(*b.c, *made, known).size() == 1);
    CHECK(check_words(*b.c, *made, known).front().text().find("source.depth") != std::string::npos);
}

TEST_CASE("a stage has a limit of outputs, and a pipeline of rings") {
    plan p = fork_and_join();
    p.stages[0].more.assign(shm::max_outputs, {"one more", 0, 256});
    const shm::private_block c = shm::make_private_block();
    CHECK_THROWS_AS(initialise(*c, p), config_error);
}
