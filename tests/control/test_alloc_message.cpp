// The requests of the supervisor to carousel-alloc and the replies, written and read.

#include <array>

#include "control/memory_message.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using device::memory_kind;

TEST_CASE("carousel-alloc reads the requests that the supervisor writes") {
    const std::vector<run::alloc_request> asked{
        {0, memory_kind::vmm, u64{1} << 40U, {device::device_kind::cuda, "00ff", 1}, 8},
        {1, memory_kind::ipc, 4096, {device::device_kind::cuda, "", 0}, 0}};
    const auto read = run::read_alloc_requests(run::to_text(asked));
    REQUIRE(read.size() == 2);
    for (std::size_t k = 0; k < 2; ++k) {
        CHECK(read[k].id == asked[k].id);
        CHECK(read[k].kind == asked[k].kind);
        CHECK(read[k].bytes == asked[k].bytes);
        CHECK(read[k].pieces == asked[k].pieces);
        CHECK(read[k].on.kind == device::device_kind::cuda);
        CHECK(read[k].on.uuid == asked[k].on.uuid);
        CHECK(read[k].on.ordinal == asked[k].on.ordinal);
    }
}

TEST_CASE("the supervisor reads the results of carousel-alloc, including a handle's bytes") {
    device::memory_handle made;
    made.kind = memory_kind::ipc;
    made.bytes = u64{2} << 20U;
    made.uuid = "00ff";
    made.ipc[0] = std::byte{0xfe};
    made.ipc[63] = std::byte{0x1a};
    const auto answer =
        run::read_alloc_answer(run::to_text(run::answer_for({7, memory_kind::ipc, 4096, {}, 0}, made)));
    REQUIRE(answer);
    CHECK_FALSE(answer->error);
    CHECK(answer->id == 7);
    CHECK(answer->kind == memory_kind::ipc);
    CHECK(answer->bytes == made.bytes);
    CHECK(answer->uuid == "00ff");
    std::array<std::byte, 64> ipc{};
    run::read_hex(answer->ipc, ipc);
    CHECK(ipc == made.ipc);

    made.kind = memory_kind::vmm;  // exists as long as its descriptor: there is no handle to report
    const auto by_descriptor = run::read_alloc_answer(run::to_text(run::answer_for({}, made)));
    REQUIRE(by_descriptor);
    CHECK(by_descriptor->kind == memory_kind::vmm);
    CHECK(by_descriptor->ipc.empty());
}

TEST_CASE("carousel-alloc's reason for a failure is read, for any bytes in it") {
    run::alloc_answer refusal;
    refusal.id = "ring 3";
    refusal.error = "no such GPU \xff";
    const auto read = run::read_alloc_answer(run::to_text(refusal));
    REQUIRE(read);
    CHECK(read->id == "ring 3");
    REQUIRE(read->error);
    CHECK_THAT(*read->error, test::contains("no such GPU"));
}

TEST_CASE("a text that is not an answer of carousel-alloc is rejected") {
    for (const char* text :
         {"", "[]", "7", "{", R"({"bytes":"many","kind":"vmm"})", R"({"bytes":1,"kind":"teleport"})"}) {
        CAPTURE(text);
        CHECK_FALSE(run::read_alloc_answer(text));
    }
}

TEST_CASE("pieces that can't be made are refused") {
    for (const char* text :
         {R"([{"bytes":4096,"kind":"ipc","pieces":2}])", R"([{"bytes":4096,"kind":"vmm","pieces":3}])",
          R"([{"bytes":4096,"kind":"vmm","pieces":-1}])",
          R"([{"bytes":1048576,"kind":"vmm","pieces":1024}])"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH(run::read_alloc_requests(text), test::contains("\"pieces\" must be"));
    }
}
