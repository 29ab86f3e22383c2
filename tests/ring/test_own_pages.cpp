// Which pages of the control block a seat's process opens: all that its protocol steps write, and of other
// owners' words only those that share a page with them.
#include "ring/own_pages.hpp"

#include <algorithm>

#include "shm/block_guard.hpp"
#include "tests/ring/seated.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

bool is_in(const page_list& l, const shm::control_block& c, const void* at) {
    const u64 offset =
        static_cast<u64>(static_cast<const std::byte*>(at) - reinterpret_cast<const std::byte*>(&c));
    return std::any_of(l.pages().begin(), l.pages().end(), [&](const shm::page_range& r) {
        return offset >= r.from && offset - r.from < r.bytes;
    });
}

}  // namespace

TEST_CASE("a middle stage opens only its rings' words, its own incarnation and telemetry") {
    const bench b(chain_of_three());
    const shm::control_block& c = *b.c;
    const seated source = b.sit(0), middle = b.sit(1), sink = b.sit(2);
    const page_list own = pages_of(c, middle.incarnation, shm::none);
    for (const void* at : std::initializer_list<const void*>{
             &c.link[0].tail, &c.link[0].committed_ns[shm::max_slots - 1], &c.link[1].slot[0], &c.job[0],
             &c.job_info[c.seat[1].first_job], &c.entry[middle.incarnation.entry],
             &c.event_handle[middle.incarnation.entry], &c.stage[1].counters, &c.seat[1].fault,
             &c.seat[1].bell, &c.stage[0].doorbell, &c.stage[2].doorbell, &c.frames[1].header[0]})
        CHECK(is_in(own, c, at));
    for (const void* at : std::initializer_list<const void*>{&c.magic,
                                                             &c.end,
                                                             &c.next_source_ns,
                                                             &c.parameters.state,
                                                             &c.parameters.set[3],
                                                             &c.stage[1],
                                                             &c.stage[0].counters,
                                                             &c.stage[2].counters,
                                                             &c.seat[1].current,
                                                             &c.seat[0].fault,
                                                             &c.entry[source.incarnation.entry],
                                                             &c.entry[sink.incarnation.entry],
                                                             &c.event_handle[sink.incarnation.entry],
                                                             &c.link[0].slots,
                                                             &c.link[1].slots,
                                                             &c.link[2].tail,
                                                             &c.source[0].sequence_lease,
                                                             &c.asset[0].state,
                                                             &c.turn[0],
                                                             &c.frames[0].header[0]})
        CHECK_FALSE(is_in(own, c, at));
}

TEST_CASE("a stage with two outputs opens the words, headers and doorbells of both") {
    ring::plan p;
    p.stages = {{"source", {}, true}, {"fork", {0}, true}, {"left", {1}, false}, {"join", {1, 1}, false}};
    p.stages[1].more = {{"fork.depth", 0, 256}, {"fork.mask", 0, 256}};
    p.stages[2].input_outputs = {1};
    p.stages[3].input_outputs = {0, 2};
    const bench b(p);
    const shm::control_block& c = *b.c;
    const seated source = b.sit(0), fork = b.sit(1), left = b.sit(2), join = b.sit(3);
    const page_list own = pages_of(c, fork.incarnation, shm::none);
    for (u32 k = 1; k <= 3; ++k) {
        CHECK(is_in(own, c, &c.link[k].tail));
        CHECK(is_in(own, c, &c.link[k].slot[0]));
        CHECK(is_in(own, c, &c.frames[k].header[c.link[k].slots - 1]));
        CHECK_FALSE(is_in(pages_of(c, source.incarnation, shm::none), c, &c.link[k].tail));
        CHECK_FALSE(is_in(pages_of(c, join.incarnation, shm::none), c, &c.frames[k].header[0]));
    }
    CHECK_FALSE(is_in(own, c, &c.frames[0].header[0]));
    CHECK(is_in(own, c, &c.stage[2].doorbell));
    CHECK(is_in(own, c, &c.stage[3].doorbell));
    const page_list of_left = pages_of(c, left.incarnation, shm::none);
    CHECK(is_in(of_left, c, &c.link[2].tail));
    CHECK_FALSE(is_in(of_left, c, &c.link[1].tail));
    CHECK(is_in(of_left, c, &c.stage[1].doorbell));
    CHECK_FALSE(is_in(of_left, c, &c.stage[3].doorbell));
    const page_list of_reader = pages_of_reader(c, 3);
    CHECK(is_in(of_reader, c, &c.stage[1].doorbell));
    CHECK_FALSE(is_in(of_reader, c, &c.stage[2].doorbell));
}

TEST_CASE("a source opens its numbers and the choice of parameters, a sink neither, nor any headers") {
    const bench b(chain());
    const shm::control_block& c = *b.c;
    const seated source = b.sit(0), sink = b.sit(1);
    const page_list first = pages_of(c, source.incarnation, shm::none),
                    last = pages_of(c, sink.incarnation, shm::none);
    for (const void* at :
         std::initializer_list<const void*>{&c.source[0].ended, &c.source[0].sequence_lease[3],
                                            &c.parameters.state, &c.next_source_ns, &c.frames[0].header[0]}) {
        CHECK(is_in(first, c, at));
        CHECK_FALSE(is_in(last, c, at));
    }
    CHECK(is_in(last, c, &c.link[0].tail));
    CHECK_FALSE(is_in(first, c, &c.parameters.set[0]));
}

TEST_CASE("a sink opens no other sink's doorbell") {
    ring::plan p;
    p.stages = {{"source", {}, true}, {"middle", {0}, true}, {"sink", {1}, false}, {"other", {0}, false}};
    const bench b(p);
    const seated first = b.sit(3);
    CHECK(is_in(pages_of(*b.c, first.incarnation, shm::none), *b.c, &b.c->stage[1].doorbell));
    CHECK_FALSE(is_in(pages_of(*b.c, first.incarnation, shm::none), *b.c, &b.c->stage[2].doorbell));
}

TEST_CASE("a stage opens the words of its sampled rings and rings for its changes there") {
    ring::plan p;
    p.stages = {{"source", {}, true}, {"middle", {0}, true}, {"sink", {1}, false}};
    p.stages[0].sampled_inputs = {1};  // a feedback input from downstream
    const bench b(p);
    const seated source = b.sit(0), sink = b.sit(2);
    const page_list own = pages_of(*b.c, source.incarnation, shm::none);
    CHECK(b.c->stage[0].sampled_link[0] == b.c->stage[1].output_link[0]);
    CHECK(is_in(own, *b.c, &b.c->link[1].group_state[shm::max_blocking]));
    CHECK_FALSE(is_in(own, *b.c, &b.c->frames[1].header[0]));
    CHECK(is_in(own, *b.c, &b.c->stage[2].doorbell));
    CHECK(is_in(pages_of(*b.c, sink.incarnation, shm::none), *b.c, &b.c->stage[0].doorbell));
}

TEST_CASE("a stage that takes turns opens the GPU's token and every doorbell, a loader its asset") {
    const bench b(chain_of_three());
    b.c->assets = 2;
    b.c->asset[0].maker_stage = 0;
    b.c->asset[1].maker_stage = 2;
    const seated source = b.sit(0);
    const page_list own = pages_of(*b.c, source.incarnation, 3);
    CHECK(is_in(own, *b.c, &b.c->turn[3]));
    CHECK_FALSE(is_in(own, *b.c, &b.c->turn[2]));
    CHECK(is_in(own, *b.c, &b.c->stage[2].doorbell));
    CHECK_FALSE(is_in(pages_of(*b.c, source.incarnation, shm::none), *b.c, &b.c->stage[2].doorbell));
    CHECK(is_in(own, *b.c, &b.c->asset[0].state));
    CHECK_FALSE(is_in(own, *b.c, &b.c->asset[1].state));
}

TEST_CASE("a reader from outside opens the words of its ring and the doorbells there") {
    const bench b(chain_of_three());
    const page_list own = pages_of_reader(*b.c, 0);
    CHECK(is_in(own, *b.c, &b.c->link[0].group_state[shm::max_blocking]));
    CHECK(is_in(own, *b.c, &b.c->stage[1].doorbell));
    CHECK_FALSE(is_in(own, *b.c, &b.c->stage[2].doorbell));
    CHECK_FALSE(is_in(own, *b.c, &b.c->link[1].tail));
    CHECK_FALSE(is_in(own, *b.c, &b.c->job[0]));
}

TEST_CASE("out-of-range numbers open no pages") {
    const bench b(chain_of_three());
    CHECK(pages_of(*b.c, {shm::max_seats, 0, 1}, shm::none).pages().empty());
    CHECK(pages_of(*b.c, {0, shm::max_incarnations, 1}, shm::none).pages().empty());
    b.c->stage[1].inputs = 4'000'000'000;
    for (u32& link : b.c->stage[1].input_link) link = 77;
    b.c->stage[1].outputs = 4'000'000'000;
    for (u32& link : b.c->stage[1].output_link) link = 99;
    b.c->seat[1].first_job = 100'000;
    const page_list own = pages_of(*b.c, {1, 0, 1}, 12345);
    for (const shm::page_range& r : own.pages()) {
        CHECK(r.from % shm::own_page == 0);
        CHECK(r.from + r.bytes <= sizeof(shm::control_block));
    }
    CHECK(pages_of_reader(*b.c, 4'000'000'000).pages().empty());
}

TEST_CASE("each place of the control block has a part that identifies it") {
    using shm::block_part;
    const auto place = [](u64 offset) { return shm::place_in_block(offset); };
    CHECK(place(0).part == block_part::head);
    CHECK(place(offsetof(shm::control_block, next_source_ns)).part == block_part::pace);
    CHECK(place(offsetof(shm::control_block, parameters) + 9000).part == block_part::parameters);
    const u64 stage = offsetof(shm::control_block, stage) + 3 * sizeof(shm::stage_block);
    CHECK(place(stage + 8).part == block_part::stage);
    CHECK(place(stage + offsetof(shm::stage_block, doorbell)).part == block_part::doorbell);
    const shm::block_place found = place(stage + offsetof(shm::stage_block, counters) + 24);
    CHECK(found.part == block_part::telemetry);
    CHECK(found.index == 3);
    CHECK(found.offset == 24);
    const shm::block_place entry =
        place(offsetof(shm::control_block, entry) + 191 * sizeof(shm::incarnation) + 16);
    CHECK(entry.part == block_part::entry);
    CHECK(entry.index == 191);
    CHECK(entry.offset == 16);
    const shm::block_place words = place(offsetof(shm::control_block, link) + 31 * sizeof(shm::link_block) +
                                         offsetof(shm::link_block, slot));
    CHECK(words.part == block_part::ring_words);
    CHECK(words.index == 31);
    CHECK(place(offsetof(shm::control_block, job) + 511 * 8).offset == 511 * 8);
    CHECK(place(shm::word_bytes).part == block_part::headers);
}
