// The panel of parameters: the shipped renderer's, another application's, none, and such as make no sense.

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"
#include "viewer/session/camera.hpp"
#include "viewer/session/parameter_values.hpp"

using namespace carousel;
using test::canvas;
using test::watched;

namespace {

struct shown {
    watched w{test::demo_plan(1280, 720)};
    canvas s{false};
    explicit shown(ring::parameter_schema schema) {
        w.r.sit_all();
        w.run(20);
        w.m.picture.width = 1280;
        w.m.picture.height = 720;
        w.m.schema = std::move(schema);
        w.m.values = w.m.schema ? w.m.schema.initial_values() : std::vector<std::byte>();
        s.draw(w.m);
    }
    [[nodiscard]] f64 value(const char* name, u32 element = 0) const {
        return viewer::number_in(*w.m.schema.find(name), w.m.values, element);
    }
    bool press(int key) {
        w.m.values_changed = w.m.reset_values = false;
        s.screen.on_key(w.m, {key, false, false});
        return w.m.values_changed;
    }
    /// A press of the left button at a share of the widget's width, moved by this many pixels and released.
    void drag(const std::string& name, f32 at, f32 by = 0) {
        const viewer::ui::widget* of = canvas::find(name);
        INFO(name);
        REQUIRE(of != nullptr);
        ImVec2 mouse(of->x + of->width * at, of->y + of->height / 2);
        s.draw(w.m, 2, mouse);
        ImGui::GetIO().MouseDown[0] = true;
        s.draw(w.m, 2, mouse);
        mouse.x += by;
        s.draw(w.m, 2, mouse);
        ImGui::GetIO().MouseDown[0] = false;
        s.draw(w.m, 2, mouse);
    }
};

const viewer::ui::widget& mark(const std::string& name) {
    const viewer::ui::widget* at = canvas::find(name);
    INFO(name);
    REQUIRE(at != nullptr);
    return *at;
}

}  // namespace

TEST_CASE("the renderer's parameters: an orbit first, then the fields in order, hidden ones not") {
    shown t(test::scene_schema());
    f32 above = 0;
    for (const char* name : {"yaw", "pitch", "distance", "fov_y", "light", "elevation", "ambient", "spin",
                             "exposure", "shading", "wireframe"}) {
        const viewer::ui::widget& at = mark(std::string("scene.") + name);
        INFO(name);
        CHECK(at.y > above);
        above = at.y;
    }
    CHECK(std::abs(mark("scene.reset").y - above) < 5);  // next to the last switch
    for (const char* name : {"eye", "target", "up", "near", "far", "orbit", "none"})
        CHECK(canvas::find(std::string("scene.") + name) == nullptr);
}

TEST_CASE("sliders, switches and the mouse on the picture set the fields of their role") {
    shown t(test::scene_schema());
    t.drag("scene.exposure", 0.6F);
    CHECK(t.w.m.values_changed);
    CHECK((t.value("exposure") > 1.5 && t.value("exposure") < 4));
    t.drag("scene.wireframe", 0.02F);
    CHECK(t.value("wireframe") == 1);
    t.drag("scene.fov_y", 0.55F);
    CHECK((t.value("fov_y") > 0.9 && t.value("fov_y") < 2.1));  // degrees there, radians here
    t.drag("scene.elevation", 0.5F);
    const f64 length = std::hypot(t.value("light", 0), t.value("light", 1), t.value("light", 2));
    CHECK(length == test::near(1));
    const f64 before = t.value("eye");
    t.w.m.values_changed = false;
    t.drag("image.area", 0.5F, 40);
    CHECK(t.value("eye") < before);  // to the right: the eye goes left
    CHECK(t.w.m.values_changed);
    CHECK(t.w.m.schema.is_possible(t.w.m.values));
    CHECK_FALSE(t.press('O'));
    CHECK(t.w.m.reset_values);
}

TEST_CASE("another application's parameters are drawn, their keys work, and the picture has no camera") {
    shown t(test::filter_schema());
    for (const char* name : {"gain", "taps", "mode", "center", "reset"})
        CHECK(mark(std::string("scene.") + name).width > 10);
    for (const char* name : {"yaw", "pitch", "distance"})
        CHECK(canvas::find(std::string("scene.") + name) == nullptr);
    for (const f64 mode : {1.0, 2.0, 0.0}) {
        CHECK(t.press('M'));
        CHECK(t.value("mode") == mode);
    }
    CHECK_FALSE(t.press('W'));  // there is no switch
    const std::vector<std::byte> before = t.w.m.values;
    t.w.m.values_changed = false;
    t.drag("image.area", 0.5F, 40);
    CHECK_FALSE(t.w.m.values_changed);
    CHECK(t.w.m.values == before);
    t.drag("scene.gain", 0.6F);
    CHECK((t.value("gain") > 1 && t.value("gain") < 2));
    t.drag("scene.taps", 0.33F);
    CHECK((t.value("taps") > 3 && std::fmod(t.value("taps"), 2) == 1));  // 1, 3, 5 ...
    CHECK(t.w.m.schema.is_possible(t.w.m.values));
}

TEST_CASE("a row of numbers is set when it is left, not while it is typed") {
    shown t(test::filter_schema());
    t.drag("scene.center", 0.1F);
    const auto type = [&](const char* text) {
        ImGui::GetIO().AddInputCharactersUTF8(text);
        t.s.draw(t.w.m, 2);
    };
    t.w.m.values_changed = false;
    type("12");
    CHECK_FALSE(t.w.m.values_changed);
    type("5");
    CHECK(t.value("center") == 0.5);
    t.drag("panel.events", 0.5F);
    CHECK(t.w.m.values_changed);
    CHECK(t.value("center") != 0.5);
    CHECK(t.value("center", 1) == 0.5);
}

TEST_CASE("without parameters the panel reports that, and its keys have no effect") {
    shown t({});
    CHECK(canvas::find("scene.none") != nullptr);
    CHECK(canvas::find("scene.reset") == nullptr);
    for (const int key : {'M', 'W', 'O'}) {
        CHECK_FALSE(t.press(key));
        CHECK_FALSE(t.w.m.reset_values);
    }
    t.drag("image.area", 0.5F, 40);
    CHECK_FALSE(t.w.m.values_changed);
}

TEST_CASE("bytes of no sense are drawn and can be set") {
    shown t(test::scene_schema());
    std::mt19937 random(11);
    for (int round = 0; round < 20; ++round) {
        for (std::byte& b : t.w.m.values)
            b = round % 2 == 0 ? static_cast<std::byte>(random()) : std::byte{0xFF};
        t.s.draw(t.w.m);
        CHECK(canvas::sane());
        (void)t.press('M');
        (void)t.press('W');
        CHECK(t.value("shading") < 4);
        CHECK(t.value("wireframe") < 2);
        t.drag("image.area", 0.5F, 30);
        for (const char* name : {"eye", "target"})
            for (u32 k = 0; k < 3; ++k)
                CHECK(std::isfinite(viewer::number_in(*t.w.m.schema.find(name), t.w.m.values, k)));
    }
}

TEST_CASE("descriptions of no sense are drawn") {
    const f64 none = std::numeric_limits<f64>::quiet_NaN(), endless = std::numeric_limits<f64>::infinity();
    shown t(test::scene_schema());
    std::mt19937 random(12);
    const auto any = [&](auto... of) {
        const std::initializer_list<std::common_type_t<decltype(of)...>> all{of...};
        return all.begin()[random() % all.size()];
    };
    for (int round = 0; round < 60; ++round) {
        ring::parameter_schema s{"nonsense", 64, {}};
        for (int k = 0; k < 12; ++k) {
            ring::parameter p;
            p.name = any("", "##", "a b%s%n", "eye");
            p.kind = static_cast<ring::parameter_kind>(random() % 4);
            p.offset = any(0U, 3U, 60U, 62U, 4000U, ~0U);
            p.count = any(0U, 1U, 3U, 4U, 9U, ~0U);
            p.low = any(0.0, 1.0, -1e300, none, -endless);
            p.high = any(0.0, -1.0, 1e300, none, endless);
            p.usual_low = any(0.0, -1e300, none);
            p.usual_high = any(0.0, 1e-300, none, 5.0);
            p.step = any(0.0, -1.0, none, 1e300);
            p.unit = any("", "rad", "%s%n", "%");
            p.role = any("", "direction", "camera.eye", "camera.target", "camera.fov", "hidden");
            if (random() % 2 == 0) p.choices = {"one", "two"};
            s.fields.push_back(std::move(p));
        }
        t.w.m.schema = s;
        t.w.m.values.assign(64, static_cast<std::byte>(random()));
        t.s.draw(t.w.m);
        CHECK(canvas::sane());
        for (const int key : {'M', 'W', 'O'}) (void)t.press(key);
        t.drag("image.area", 0.5F, 30);
        CHECK(t.w.m.values.size() == 64);
    }
}

TEST_CASE("text in a field stays within the field") {
    const ring::parameter number{.name = "n", .low = 0.1, .high = 0.3};
    const ring::parameter integer{.name = "i", .kind = ring::parameter_kind::integer, .low = -2.5, .high = 7};
    std::vector<std::byte> values(4);
    for (const f64 given : {-1e300, 0.1, 0.2, 0.3, 1e300}) {
        viewer::put_number(number, values, 0, given);
        const f64 found = viewer::number_in(number, values);
        CHECK((found >= 0.1 && found <= 0.3));  // as an f32, 0.3 is above 0.3
        viewer::put_number(integer, values, 0, given);
        const f64 whole = viewer::number_in(integer, values);
        CHECK((whole >= -2 && whole <= 7 && whole == std::floor(whole)));
    }
    viewer::put_number(number, values, 0, 0.2);
    viewer::put_number(number, values, 0, std::nan(""));
    viewer::put_number(number, values, 1, 0.25);
    CHECK(viewer::number_in(number, values) == test::near(0.2F));
}
