// The panel with the picture: the scale of its values, what its frame carries, and what may be chosen of it.
#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"

using namespace carousel;
using test::canvas;
using test::watched;
using viewer::key_press;
using viewer::ui::widget;

namespace {

bool is_inside(const widget& at, const widget& in) {
    return at.x >= in.x && at.x + at.width <= in.x + in.width + 1 && at.y >= in.y &&
           at.y + at.height <= in.y + in.height + 1;
}

/// A picture of values, as a session brings it.
viewer::shown_picture depth_of(const char* stage) {
    viewer::shown_picture p;
    p.stage = stage;
    p.plane = "depth";
    p.type = "f32";
    p.planes = {"color", "depth"};
    p.maps = {"grey", "viridis", "light"};
    p.width = 640;
    p.height = 360;
    p.scale.of_values = true;
    p.scale.low = -1.5;
    p.scale.high = 20;
    p.scale.colours = viewer::colour_map::viridis;
    return p;
}

struct watched_picture : watched {
    watched_picture() : watched(test::demo_plan(1280, 720)) {
        r.sit_all();
        run(60);
        m.picture.width = 640;
        m.picture.height = 360;
        m.picture.shown = {depth_of("fragment")};
    }
    [[nodiscard]] viewer::picture_style& style() { return m.picture.styles.of[0]; }
};

}  // namespace

TEST_CASE("the displayed frame's data is in the picture, and entries that do not fit are counted") {
    watched_picture w;
    {
        canvas nothing(false);
        nothing.draw(w.m);
        CHECK(canvas::find("image.carried") == nullptr);
    }
    for (int k = 0; k < 100; ++k)
        w.m.picture.shown[0].carried.emplace_back("key" + std::to_string(k), "value");
    canvas s(false);
    s.draw(w.m);
    const widget *at = canvas::find("image.carried"), *in = canvas::find("image.area");
    REQUIRE((at != nullptr && in != nullptr));
    CHECK(is_inside(*at, *in));
}

TEST_CASE("a picture of values has a scale, plain colours have none, and two pictures have one each") {
    watched_picture w;
    canvas s(false);
    s.draw(w.m);
    const widget *scale = canvas::find("image.legend.0"), *in = canvas::find("image.area");
    REQUIRE((scale != nullptr && in != nullptr));
    CHECK(is_inside(*scale, *in));
    const f32 lines = scale->height;
    w.m.picture.shown[0].scale.nan = 7;
    s.draw(w.m);
    CHECK(canvas::find("image.legend.0")->height > lines);
    w.m.picture.shown[0].scale = {};
    s.draw(w.m);
    CHECK(canvas::find("image.legend.0") == nullptr);
    CHECK(canvas::find("style.0.range") == nullptr);
    w.m.picture.width = 640 * 2 + 8;
    w.m.picture.shown.push_back(depth_of("vertex"));
    w.m.picture.shown[1].x = 648;
    w.m.picture.wanted.compare = viewer::plane_choice{"vertex", ""};
    w.m.picture.note = "frames 12 and 14 are shown together";
    s.draw(w.m);
    const widget *left = canvas::find("image.legend.0"), *right = canvas::find("image.legend.1");
    REQUIRE((left != nullptr && right != nullptr));
    CHECK(left->x + left->width < right->x);
    CHECK(canvas::find("image.note") != nullptr);
    CHECK(canvas::find("style.1.range") != nullptr);
    CHECK(canvas::sane());
}

TEST_CASE("keys select ring, plane, range, colours and the second picture") {
    watched_picture w;
    canvas s(false);
    s.draw(w.m);
    viewer::picture_model& p = w.m.picture;
    const auto press = [&](int key) { s.screen.on_key(w.m, {key, false, false}); };
    press('E');
    CHECK(w.style().range == viewer::range_choice::extremes);
    press('E');
    CHECK(w.style() == viewer::picture_style{viewer::range_choice::fixed, -1.5, 20});
    press('E');
    CHECK(w.style().range == viewer::range_choice::automatic);
    press('V');
    CHECK(w.style().colours == viewer::colour_map::grey);
    for (int k = 0; k < 3; ++k) press('V');
    CHECK_FALSE(w.style().colours);
    press('Y');
    CHECK(p.wanted.first.plane == "color");
    press('U');  // the first ring follows the last one
    CHECK(p.wanted.first == viewer::plane_choice{"geometry", ""});
    press('B');
    CHECK(p.wanted.compare == viewer::plane_choice{"geometry", ""});
    for (int k = 0; k < 3; ++k) press('B');
    CHECK_FALSE(p.wanted.compare);
}

TEST_CASE("light has an exposure and a tone map, and values and a channel have their own controls") {
    watched_picture w;
    canvas s(false);
    viewer::picture_model& p = w.m.picture;
    s.draw(w.m);
    CHECK((canvas::find("style.0.range") != nullptr && canvas::find("style.0.tone") == nullptr));
    CHECK(canvas::find("style.0.channel") == nullptr);
    p.shown[0].scale.colours = viewer::colour_map::light;
    p.shown[0].channels = {"red", "green", "blue"};
    s.draw(w.m);
    for (const char* control : {"style.0.tone", "style.0.channel", "style.0.colours", "image.exposure"})
        CHECK(canvas::find(control) != nullptr);
    CHECK((canvas::find("style.0.range") == nullptr && canvas::find("image.legend.0") != nullptr));
    const auto press = [&](int key) { s.screen.on_key(w.m, {key, false, false}); };
    for (int k = 0; k < 3; ++k) press(']');
    CHECK((p.exposure_stops == 1.5F && w.style().exposure == 1.5));
    for (int k = 0; k < 40; ++k) press('[');
    CHECK((p.exposure_stops == -10 && w.style().exposure == -10));
    CHECK(canvas::sane());
}

TEST_CASE("the ring of a second output is listed, and is selected and shown next to the first") {
    watched w(test::forked_plan());
    w.r.sit_all();
    w.run(60);
    canvas s(false);
    s.draw(w.m);
    for (const char* ring : {"rings.link.fork", "rings.link.fork.square"}) {
        const widget *at = canvas::find(ring), *in = canvas::find("panel.rings");
        REQUIRE((at != nullptr && in != nullptr));
        CHECK(is_inside(*at, *in));
    }
    CHECK(viewer::theme::ring_color(w.m.snap, 0) == viewer::theme::stage_color(0));
    CHECK(viewer::theme::ring_color(w.m.snap, 1) != viewer::theme::stage_color(0));
    const auto press = [&](int key) { s.screen.on_key(w.m, {key, false, false}); };
    w.m.picture.shown = {depth_of("fork")};
    press('U');
    CHECK(w.m.picture.wanted.first == viewer::plane_choice{"fork.square", ""});
    press('B');
    CHECK(w.m.picture.wanted.compare == viewer::plane_choice{"fork", ""});
    press('B');
    CHECK(w.m.picture.wanted.compare == viewer::plane_choice{"fork.square", ""});
}

TEST_CASE("the mouse asks for the value under it, and only there") {
    watched_picture w;
    canvas s(false);
    s.draw(w.m);
    const widget in = *canvas::find("image.area");
    s.draw_with_mouse(w.m, ImVec2(in.x + in.width / 2, in.y + in.height / 2));
    REQUIRE(w.m.picture.pointer);
    CHECK((w.m.picture.pointer->first >= 318 && w.m.picture.pointer->first <= 322));
    w.m.picture.pointed = viewer::pointed_pixel{0, 320, 180, 12, "1.25"};
    s.draw_with_mouse(w.m, ImVec2(in.x + in.width / 2, in.y + in.height / 2));
    CHECK(canvas::find("image.pixel") != nullptr);
    s.draw_with_mouse(w.m, ImVec2(5, 5));
    CHECK_FALSE(w.m.picture.pointer);
}
