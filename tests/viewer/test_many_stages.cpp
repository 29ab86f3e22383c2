// A pipeline of 20 stages in a window of 1280 x 720 pixels: every panel has its parts inside itself, the
// lists scroll, and the selected stage is visible in each of them.

#include <algorithm>
#include <array>

#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"

using namespace carousel;
using test::canvas;
using test::watched;

namespace {

constexpr u32 chain_stages = 20;

struct long_chain : watched {
    long_chain() : watched(test::chain_of(chain_stages, 4096)) {
        r.sit_all();
        run(60);
    }
    [[nodiscard]] std::string label(u32 seat) const { return m.snap.seat_label(seat); }
};

/// True if the widget's whole height is inside the panel.
bool is_visible(const std::string& name, const char* panel) {
    const viewer::ui::widget *at = canvas::find(name), *in = canvas::find(std::string("panel.") + panel);
    return at != nullptr && in != nullptr && at->y >= in->y && at->y + at->height <= in->y + in->height &&
           at->x >= in->x && at->x + at->width <= in->x + in->width + 1;
}

}  // namespace

TEST_CASE("of 20 stages the selected one is visible in every list, whatever the window's size") {
    long_chain w;
    for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1920, 1080}, std::pair{1000, 560}}) {
        canvas s(false, width, height);
        s.draw(w.m, 3);
        for (const u32 seat : {0U, 19U, 7U, 12U, 1U}) {
            w.m.selected_seat = seat;
            s.draw(w.m, 4);
            INFO(width << " x " << height << ", " << w.label(seat));
            for (const char* what : {"row", "kill", "stop", "restart"})
                CHECK(is_visible(std::string("stages.") + what + "." + w.label(seat), "stages"));
            if (seat + 1 < chain_stages) CHECK(is_visible("rings.link." + w.label(seat), "rings"));
            CHECK(is_visible("timeline.lane." + w.label(seat), "timeline"));
        }
        w.m.selected_seat = 19;
        s.draw(w.m, 4);
        s.resize(1280, 720);  // a smaller list follows the selection too
        s.draw(w.m, 4);
        CHECK(is_visible("stages.row." + w.label(19), "stages"));
        s.screen.on_key(w.m, {'D', false, false});
        for (const u32 seat : {19U, 0U, 10U}) {
            w.m.selected_seat = seat;
            s.draw(w.m, 4);
            INFO("depth of " << w.label(seat));
            CHECK(is_visible("depth.row." + w.label(seat), "depth"));
        }
    }
}

TEST_CASE("with 20 stages no lane of the timeline is lower than its name") {
    long_chain w;
    canvas s(false, 1280, 720);
    s.draw(w.m, 3);
    std::vector<f32> tops;
    for (u32 k = 0; k < chain_stages; ++k) {
        const viewer::ui::widget* at = canvas::find("timeline.lane." + w.label(k));
        REQUIRE(at != nullptr);
        CHECK(at->height >= viewer::theme::small_font()->FontSize);
        tops.push_back(at->y);
    }
    for (u32 k = 1; k < chain_stages; ++k)
        CHECK(tops[k] - tops[k - 1] >= viewer::theme::small_font()->FontSize);
}

TEST_CASE("Ctrl with up and down selects the stage above and below, also beyond the ninth") {
    long_chain w;
    canvas s(false, 1280, 720);
    const auto press = [&](int key) { s.screen.on_key(w.m, {key, true, false}); };
    press(viewer::key::up);
    CHECK(w.m.selected_seat == 0);
    for (u32 k = 1; k < chain_stages; ++k) {
        press(viewer::key::down);
        CHECK(w.m.selected_seat == k);
    }
    press(viewer::key::down);
    CHECK(w.m.selected_seat == chain_stages - 1);
    press(viewer::key::up);
    CHECK(w.m.selected_seat == chain_stages - 2);
    CHECK(w.m.picture.pan_y == 0);  // without Ctrl these keys move the picture
}

TEST_CASE("a list that the user has scrolled stays where it is while the selection is unchanged") {
    long_chain w;
    canvas s(false, 1280, 720);
    s.draw(w.m, 3);
    const viewer::ui::widget* in = canvas::find("panel.stages");
    REQUIRE(in != nullptr);
    const ImVec2 mouse(in->x + in->width / 2, in->y + in->height - 20);
    for (int k = 0; k < 6; ++k) s.draw_with_mouse(w.m, mouse, -3.0F);
    s.draw(w.m, 3);
    CHECK_FALSE(is_visible("stages.row." + w.label(0), "stages"));
    CHECK(is_visible("stages.row." + w.label(19), "stages"));
}

TEST_CASE("a line in a narrow panel shows its first parts whole and omits the others") {
    canvas s(false, 1280, 720);
    (void)s.window->begin_frame();
    const std::array<std::string, 3> parts{"9 slots of 225 KiB (memfd)", "window 4", "tail 105"};
    const auto width = [](const std::string& text) { return ImGui::CalcTextSize(text.c_str()).x; };
    const std::string two = parts[0] + " · " + parts[1], all = two + " · " + parts[2];
    CHECK(viewer::ui::fitting_parts(parts, width(all) + 1) == all);
    CHECK(viewer::ui::fitting_parts(parts, width(all) - 1) == two);
    CHECK(viewer::ui::fitting_parts(parts, width(two) - 1) == parts[0]);
    CHECK(viewer::ui::fitting_parts(parts, 1).empty());
    ImGui::Render();
}
