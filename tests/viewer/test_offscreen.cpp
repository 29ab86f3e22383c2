// The whole window drawn by a real GL without a display: the same model gives the same picture, bit for bit,
// and each state of a slot has its colour where the slot is.

#include "core/errors.hpp"
#include "ring/latest.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"
#include "viewer/watch/picture_choice.hpp"

using namespace carousel;
using test::canvas;
using test::watched;

namespace {

std::unique_ptr<canvas> open_canvas(int width, int height, std::string& why) {
    try {
        return std::make_unique<canvas>(true, width, height);
    } catch (const error& e) {
        why = e.what();
        return nullptr;
    }
}

struct shot {
    std::vector<u8> pixels;
    u32 width = 0, height = 0;
    [[nodiscard]] u32 at(f32 x, f32 y) const {
        const std::size_t k = (static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x)) * 4;
        return static_cast<u32>(pixels[k]) | static_cast<u32>(pixels[k + 1]) << 8U |
               static_cast<u32>(pixels[k + 2]) << 16U | 0xFF000000U;
    }
};

shot take(canvas& s) {
    shot out;
    out.pixels = s.window->read_pixels(out.width, out.height);
    return out;
}

void crash_in_work(watched& w) {
    w.r.sit_all();
    w.run(120);
    for (int k = 0; k < 3; ++k) REQUIRE(w.r.pass(0));
    REQUIRE(w.r.pass(1));
    REQUIRE(w.r.pass(1));
    REQUIRE(w.r.begin(1));
    REQUIRE(w.r.pass(2));
    REQUIRE(w.r.begin(3));
    REQUIRE(w.r.begin(2));
    w.r.die(2);
    w.time_ns += ns_per_ms;
    w.read();
}

}  // namespace

TEST_CASE("one model gives one picture, in dark and in light") {
    std::string why;
    const auto s = open_canvas(1920, 1080, why);
    if (!s) CAROUSEL_SKIP(("no offscreen GL here: " + why).c_str());
    watched w(test::demo_plan(1280, 720));
    crash_in_work(w);
    s->draw(w.m, 3);
    const shot dark = take(*s);
    REQUIRE(dark.pixels.size() == 1920U * 1080 * 4);
    s->draw(w.m, 1);
    CHECK(take(*s).pixels == dark.pixels);
    w.m.kept.dark = false;
    s->draw(w.m, 2);
    const shot light = take(*s);
    CHECK(light.pixels != dark.pixels);
    const auto brightness = [](const shot& p) {
        u64 sum = 0;
        for (const u8 v : p.pixels) sum += v;
        return sum / p.pixels.size();
    };
    CHECK(brightness(light) > 170);
    CHECK(brightness(dark) < 110);
}

TEST_CASE("each slot shows the colour of its state") {
    std::string why;
    const auto s = open_canvas(1920, 1080, why);
    if (!s) CAROUSEL_SKIP(("no offscreen GL here: " + why).c_str());
    watched w(test::demo_plan(1280, 720));
    crash_in_work(w);
    s->draw(w.m, 3);
    const shot p = take(*s);
    int seen[6] = {};
    for (const telemetry::link_view& l : w.m.snap.links) {
        for (std::size_t k = 0; k < l.slots.size(); ++k) {
            const viewer::ui::widget* at = canvas::find("rings.slot." + l.name + "." + std::to_string(k));
            REQUIRE(at != nullptr);
            // Low in the cell, away from its middle: inside every state's filled part, next to number, frame
            // and cross.
            const u32 color = p.at(at->x + at->width * 0.3F, at->y + at->height - 5.0F);
            const telemetry::slot_phase phase = l.slots[k].phase;
            ++seen[static_cast<int>(phase)];
            INFO(l.name << " slot " << k << " is " << telemetry::name_of(phase));
            if (phase == telemetry::slot_phase::free)
                CHECK(color == (viewer::theme::colors().panel | 0xFF000000U));
            else
                CHECK(color == viewer::theme::slot_color(phase));
        }
    }
    for (const telemetry::slot_phase phase :
         {telemetry::slot_phase::free, telemetry::slot_phase::fill, telemetry::slot_phase::ready,
          telemetry::slot_phase::leased, telemetry::slot_phase::quarantined})
        CHECK(seen[static_cast<int>(phase)] > 0);
}

TEST_CASE("the picture is shown as it is, and through channels and exposure") {
    std::string why;
    const auto s = open_canvas(1920, 1080, why);
    if (!s) CAROUSEL_SKIP(("no offscreen GL here: " + why).c_str());
    watched w(test::demo_plan(64, 64));
    w.read();
    std::vector<u32> frame(64 * 64, 0xFF204080U);  // r 0x80, g 0x40, b 0x20
    REQUIRE(s->store->resize(64, 64).empty());
    s->store->upload(reinterpret_cast<const std::byte*>(frame.data()));
    w.m.picture.width = w.m.picture.height = 64;
    w.m.picture.pixels = reinterpret_cast<const std::byte*>(frame.data());
    const auto middle = [&] {
        s->draw(w.m, 2);
        const viewer::ui::widget* at = canvas::find("image.area");
        return take(*s).at(at->x + at->width / 2, at->y + at->height / 2);
    };
    CHECK(middle() == 0xFF204080U);
    w.m.picture.red = false;
    CHECK(middle() == 0xFF204000U);
    w.m.picture.green = false;
    CHECK(middle() == 0xFF202020U);  // a single channel is grey
    w.m.picture.red = w.m.picture.green = true;
    w.m.picture.alpha = true;
    CHECK(middle() == 0xFFFFFFFFU);
    w.m.picture.alpha = false;
    w.m.picture.exposure_stops = -6;
    CHECK((middle() & 0xFFU) < 0x20U);
    w.m.picture.exposure_stops = 0;
    const std::vector<u8> back = s->store->read_back();
    REQUIRE(back.size() == 64U * 64 * 4);
    CHECK(back[0] == 0x80);
    u8 pixel[4] = {};
    REQUIRE(s->store->read_pixel(63, 63, pixel));
    CHECK(pixel[1] == 0x40);
    CHECK_FALSE(s->store->read_pixel(64, 0, pixel));
}

TEST_CASE("a picture larger than the GL takes is a sentence") {
    std::string why;
    const auto s = open_canvas(640, 480, why);
    if (!s) CAROUSEL_SKIP(("no offscreen GL here: " + why).c_str());
    CHECK_THAT(s->store->resize(1U << 20U, 4), test::contains("this GL supports at most"));
}
