// Frames that are declared to have the same work: what is recorded of the first frame, and what is refused in
// a later frame.
#include "device/same_work.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "device/cpu/context.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using device::kernel_launch;
using device::launch_list;
using test::contains;

namespace {

const int one_kernel = 0, other_kernel = 0;

struct arguments {
    u64 at = 0;
    u32 number = 0;
};

kernel_launch launch_of(const char* name, const void* kernel, const arguments& a, u32 blocks = 4) {
    kernel_launch k;
    k.name = name;
    k.kernel = kernel;
    k.blocks = {blocks, 1, 1};
    k.threads = {64, 1, 1};
    k.arguments[0] = {&a.at, sizeof a.at};
    k.arguments[1] = {&a.number, sizeof a.number};
    k.count = 2;
    return k;
}

template <typename F>
std::string refusal(F&& of) {
    try {
        of();
    } catch (const error& e) {
        CHECK(e.code() == exit_code::stage_exception);
        return e.what();
    }
    return "";
}

/// A frame of two launches.
void frame(launch_list& l, u64 at, u32 number) {
    l.begin();
    l.add(launch_of("first", &one_kernel, {at, number}));
    l.add(launch_of("second", &other_kernel, {at, 7}));
    l.end();
}

}  // namespace

TEST_CASE("a list keeps the arguments of the last frame and reports launches that differ") {
    launch_list l;
    frame(l, 1000, 1);
    CHECK(l.first());
    REQUIRE(l.all().size() == 2);
    CHECK(*static_cast<u64*>(l.all()[0].arguments[0]) == 1000);
    CHECK(*static_cast<u32*>(l.all()[0].arguments[1]) == 1);
    frame(l, 1000, 2);
    CHECK_FALSE(l.first());
    CHECK(l.all()[0].changed);
    CHECK_FALSE(l.all()[1].changed);
    CHECK(*static_cast<u32*>(l.all()[0].arguments[1]) == 2);
    CHECK(*static_cast<u32*>(l.all()[1].arguments[1]) == 7);
}

TEST_CASE("arguments of a frame that is taken back are set with the next one's") {
    launch_list l;
    frame(l, 1000, 1);
    l.begin();
    l.add(launch_of("first", &one_kernel, {1000, 2}));
    l.forget();
    frame(l, 1000, 2);
    CHECK(l.all()[0].changed);
}

TEST_CASE("a first frame that is taken back leaves no trace") {
    launch_list l;
    l.begin();
    l.add(launch_of("first", &one_kernel, {1, 1}));
    l.forget();
    frame(l, 1, 1);
    CHECK(l.first());
    CHECK(l.all().size() == 2);
}

TEST_CASE("another kernel, size, number of launches or of bytes is refused in words") {
    const auto second = [](auto&& change) {
        launch_list l;
        frame(l, 1, 1);
        return refusal([&] {
            l.begin();
            change(l);
            l.end();
        });
    };
    CHECK_THAT(second([](launch_list& l) { l.add(launch_of("third", &other_kernel, {})); }),
               contains("its work differs from the first frame's") &&
                   contains("launch 1 is third (4 x 1 x 1 blocks of 64 x 1 x 1 threads), and was first (4"));
    CHECK_THAT(second([](launch_list& l) { l.add(launch_of("first", &one_kernel, {}, 5)); }),
               contains("launch 1 is first (5 x 1 x 1 blocks"));
    CHECK_THAT(second([](launch_list& l) { l.add(launch_of("first", &one_kernel, {})); }),
               contains("1 launches, and there were 2"));
    CHECK_THAT(second([](launch_list& l) {
                   for (int k = 0; k < 3; ++k)
                       l.add(launch_of("x", k == 1 ? &other_kernel : &one_kernel, {}));
               }),
               contains("is launched after the last of 2"));
    CHECK_THAT(second([](launch_list& l) {
                   kernel_launch k = launch_of("first", &one_kernel, {});
                   k.count = 1;
                   l.add(k);
               }),
               contains("launch 1 is first"));
}

TEST_CASE("a CPU has no graphs") {
    device::cpu::context c(1);
    const auto queue = c.make_queue();
    CHECK(device::make_same_work(*queue) == nullptr);
}
