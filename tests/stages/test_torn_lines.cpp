// The log lines about torn frames: they name the torn ring and the stage that fills it, and are limited in
// number.
#include "session/status_words.hpp"

#include <unistd.h>

#include <array>

#include "device/cpu/memfd.hpp"
#include "shm/fd_socket.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exception_text.hpp"

using namespace carousel;
using namespace carousel::session;
using test::contains;

TEST_CASE("each ring whose word differs is named in its own line, with its writer") {
    const std::array<torn_input, 3> of{torn_input{"a", "a", true}, torn_input{"fork.square", "fork", true},
                                       torn_input{"c", "c", false}};
    const std::string log = test::exception_text([&] { torn_lines().report(7, 2, of); });
    CHECK_THAT(log, contains("frame 7 is torn: its status word in the ring a, which a fills, changed under "
                             "its lease\n"));
    CHECK_THAT(log, contains("frame 7 is torn: its status word in the ring fork.square, which fork fills, "));
    CHECK_THAT(log, !contains("ring c"));
}

TEST_CASE("where the CPU sees no difference all rings that it can have been are named") {
    const std::array<torn_input, 2> of{torn_input{"a", "a"}, torn_input{"b", "b"}};
    CHECK_THAT(test::exception_text([&] { torn_lines().report(7, 1, of); }),
               contains("its status word in the ring a, which a fills, or in the ring b, which b fills, "
                        "changed under its lease"));
}

TEST_CASE("of endless torn frames one per second is reported, with the number of words") {
    const std::array<torn_input, 1> of{torn_input{"a", "a"}};
    torn_lines lines;
    const std::string at_once = test::exception_text([&] {
        for (u64 k = 0; k < 50; ++k) lines.report(k, 2, of);
    });
    CHECK_THAT(at_once, contains("frame 0 is torn") && !contains("frame 1 ") && !contains("words"));
    ::usleep(1'100'000);
    CHECK_THAT(test::exception_text([&] { lines.report(50, 2, of); }),
               contains("frame 50 is torn") && contains("(100 such words since the previous line)"));
}

TEST_CASE("a word is checked where the CPU has its memory, in every part of it") {
    const device::memory_handle memory = device::create_memfd("torn", 4096);
    const shm::unique_fd owned(memory.fd);
    const device::memfd_mapping ring(memory);
    auto* at = reinterpret_cast<device::status_word*>(ring.data() + 256);
    *at = {5, 2, 3};
    CHECK_FALSE(differs_now(ring, at, {5, 2, 3}));
    CHECK(differs_now(ring, at, {6, 2, 3}));
    CHECK(differs_now(ring, at, {5, 1, 3}));
    CHECK(differs_now(ring, at, {5, 2, 4}));
    const device::mapping elsewhere;  // on a GPU
    CHECK_FALSE(differs_now(elsewhere, at, {6, 2, 3}));
}
