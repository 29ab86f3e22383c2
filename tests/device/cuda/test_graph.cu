// Work that is alike for every frame, played as a graph: in order, with each frame's arguments; and what is
// found to be other work.
#include <memory>
#include <string>

#include "core/errors.hpp"
#include "device/cuda/launch.hpp"
#include "device/same_work.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using test::contains;

namespace {

__global__ void add_line(u32* diary, u32 value) {
    diary[0] += 1;
    diary[diary[0]] = value;
}
struct pair {
    u32* diary;
    u64 first, second;
};
__global__ void add_pair(const __grid_constant__ pair p) {
    p.diary[0] += 1;
    p.diary[p.diary[0]] = static_cast<u32>(p.first * 10 + p.second);
}

struct one_lane {
    std::unique_ptr<device::context> context = test::open_backend();
    std::unique_ptr<device::queue> queue = context->make_queue();
    std::unique_ptr<device::mapping> memory = context->allocate_host(4096 * sizeof(u32));
    std::unique_ptr<device::same_work> work = device::make_same_work(*queue);
    u32* diary = reinterpret_cast<u32*>(memory->data());

    void line(u32 value, u32 blocks = 1) {
        const cudaError_t status =
            device::cuda::launch(*queue, "add_line", add_line, blocks, 1, 0, false, diary, value);
        REQUIRE(status == cudaSuccess);
    }
    void two(u32 value) {
        REQUIRE(device::cuda::launch(*queue, "add_pair", add_pair, 1, 1, 0, false,
                                     pair{diary, value, value % 10}) == cudaSuccess);
    }
    void raw(u32 value) {
        add_line<<<1, 1, 0, static_cast<cudaStream_t>(queue->native_stream())>>>(diary, value);
    }
    /// A frame, and the end of it.
    template <typename F>
    std::string frame(F&& of) {
        try {
            work->begin();
            of();
            work->end();
            queue->drain();
        } catch (const error& e) {
            return e.what();
        }
        return "";
    }
};

}  // namespace

TEST_CASE("each frame of a graph runs all of its launches in order, with its own arguments") {
    CAROUSEL_NEEDS_BACKEND();
    one_lane l;
    REQUIRE(l.work);
    for (u32 n = 1; n <= 600; ++n) {
        REQUIRE(l.frame([&] {
            l.line(n);
            l.two(n);
            l.line(5);
        }) == "");
        if (n % 3 == 0)
            l.queue->write_status(nullptr, {});  // between frames the queue is in its normal
                                                 // state
    }
    REQUIRE(l.diary[0] == 1800);
    u32 wrong = 0;
    for (u32 n = 1; n <= 600; ++n) {
        const u32* const of = l.diary + 1 + (n - 1) * 3;
        wrong += of[0] != n || of[1] != n * 10 + n % 10 || of[2] != 5 ? 1 : 0;
    }
    CHECK(wrong == 0);
}

TEST_CASE("frames of several graphs follow each other in the queue") {
    CAROUSEL_NEEDS_BACKEND();
    one_lane l;
    const auto other = device::make_same_work(*l.queue);
    for (u32 n = 1; n <= 200; ++n) {
        auto& work = n % 2 == 0 ? *l.work : *other;
        work.begin();
        l.line(n);
        work.end();
        if (n % 8 == 0) l.queue->drain();  // a lane's last frame is complete before its next
    }
    l.queue->drain();
    REQUIRE(l.diary[0] == 200);
    u32 wrong = 0;
    for (u32 n = 1; n <= 200; ++n) wrong += l.diary[n] != n ? 1 : 0;
    CHECK(wrong == 0);
}

TEST_CASE("a dropped frame leaves no work in the queue, and the next one has its own arguments") {
    CAROUSEL_NEEDS_BACKEND();
    one_lane l;
    for (const u32 n : {1U, 2U, 3U, 4U}) {
        l.work->begin();
        l.line(n * 100);
        l.work->drop();
        REQUIRE(l.frame([&] { l.line(n); }) == "");
    }
    REQUIRE(l.diary[0] == 4);
    for (const u32 n : {1U, 2U, 3U, 4U}) CHECK(l.diary[n] == n);
}

TEST_CASE("copies, fills and launches by another way are found in the first and the second frame") {
    CAROUSEL_NEEDS_BACKEND();
    const bool second = GENERATE(false, true);
    const std::string what = GENERATE(as<std::string>(), "raw", "copy", "fill");
    CAPTURE(second, what);
    one_lane l;
    const auto spoil = [&] {
        if (what == "raw") l.raw(9);
        if (what == "copy") l.queue->copy(l.diary + 2048, l.diary + 1024, 4);
        if (what == "fill") l.queue->fill(l.diary + 2048, 0, 4);
    };
    if (second) REQUIRE(l.frame([&] { l.line(1); }) == "");
    CHECK_THAT(l.frame([&] {
        l.line(1);
        spoil();
    }),
               contains("1 copies, fills or launches outside"));
    l.queue->drain();
    CHECK(l.diary[0] == (second ? 1U : 0U));
}

TEST_CASE("another size of a launch is found at any frame") {
    CAROUSEL_NEEDS_BACKEND();
    one_lane l;
    for (u32 n = 1; n <= 7; ++n) REQUIRE(l.frame([&] { l.line(n); }) == "");
    CHECK_THAT(l.frame([&] { l.line(8, 2); }), contains("launch 1 is add_line (2 x 1 x 1 blocks"));
}
