// <carousel/port.hpp> and the viewer: pictures, and a run that restarts with new memory.
#include <unistd.h>

#include <memory>
#include <span>
#include <vector>

#include <carousel/port.hpp>
#include "tests/support/catch.hpp"
#include "tests/viewer/watcher.hpp"

using namespace carousel;

namespace {

/// Each pixel of the frame is the one that the run has painted.
bool is_right(const latest_frame& f) {
    const auto color = f.plane<const u8>("color");
    const auto height = static_cast<u32>(color.extent(0)), width = static_cast<u32>(color.extent(1));
    for (u32 y = 0; y < height; y += 7)
        for (u32 x = 0; x < width; x += 5) {
            const u32 expected = test::fake_run::color_of(f.frame_number(), x, y, width, height);
            if (std::memcmp(&color(y, x, 0), &expected, 4) != 0) return false;
        }
    return true;
}

}  // namespace

TEST_CASE("a port takes the pictures that the viewer takes, and none again after a rebuild") {
    const test::place_of_runs place;
    test::fake_run run;
    latest_port newest = open("demo").latest();
    CHECK(newest.stage() == "fragment");
    u64 before = 0;
    for (u32 k = 0; k < 30; ++k) {
        latest_frame* f = newest.next(5);
        REQUIRE(f != nullptr);
        CHECK(is_right(*f));
        CHECK((k == 0 || f->frame_number() > before));
        before = f->frame_number();
    }
    run.rebuild();
    // The new memory has the frames from 0 on again; the old one gets no further frame.
    for (u32 k = 0; k < 10; ++k) {
        latest_frame* f = newest.next(5);
        REQUIRE(f != nullptr);
        CHECK(is_right(*f));
        CHECK(f->frame_number() > before);
        before = f->frame_number();
    }
    CHECK(newest.losses().torn == 0);
    run.end_with(4);
    while (newest.next(5) != nullptr) {
    }
    CHECK(newest.ended());
    CHECK(newest.ending() == "exit code 4");
}

TEST_CASE("the memory of a newest frame and its queue can be kept beyond the port and the run") {
    const test::place_of_runs place;
    auto run = std::make_unique<test::fake_run>();
    std::shared_ptr<const void> kept;
    device::queue* queue = nullptr;
    std::span<const u8> picture;
    std::vector<u8> then;
    {
        latest_port newest = open("demo").latest();
        const latest_frame* f = newest.next(5);
        REQUIRE(f != nullptr);
        kept = f->memory();
        queue = &f->queue();
        const auto color = f->plane<const u8>("color");
        picture = {color.data(), color.extent(0) * color.extent(1) * color.extent(2)};
        then.assign(picture.begin(), picture.end());
        f = newest.next(5);
        REQUIRE(f != nullptr);
        CHECK(f->plane<const u8>("color").data() != picture.data());
    }
    run.reset();
    std::vector<u8> now(then.size());
    queue->copy(now.data(), picture.data(), picture.size());
    queue->drain();
    CHECK(now == then);
}

TEST_CASE("a loop over a stalled run reports the reason for its wait") {
    const test::place_of_runs place;
    test::fake_run run({.fps = 2});
    latest_port newest = open("demo").latest("fragment", {.patience_s = 0.1});
    const auto peek = [&] {
        for (const latest_frame& f : newest) CHECK(is_right(f));
    };
    CHECK_THROWS_WITH(peek(), test::contains("no new frame of \"fragment\" in 0.1 s: "));
}

TEST_CASE("a plane that isn't there, or is of another type, is named as in a stage") {
    const test::place_of_runs place;
    const test::fake_run run;
    latest_port newest = open("demo", {.device = "cpu"}).latest("fragment");
    const latest_frame* f = newest.next(5);
    REQUIRE(f != nullptr);
    CHECK(f->where() == device_kind::cpu);
    CHECK(f->stream() == nullptr);
    CHECK_THROWS_WITH(f->plane<const u8>("colour"), test::contains("did you mean \"color\"?"));
    CHECK_THROWS_WITH(f->plane<const f32>("color"), test::contains("was requested as f32, but it is u8"));
}
