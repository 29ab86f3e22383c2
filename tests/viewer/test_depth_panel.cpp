// The panels of depth and of frames in progress, and panels that share a place.
#include <map>
#include <string>

#include "telemetry/depth.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"

using namespace carousel;
using test::canvas;
using test::watched;

TEST_CASE("events and depth share a panel: D, or a click on a title, switches between them") {
    watched w(test::demo_plan(1280, 720));
    w.r.sit_all();
    w.read();
    for (const telemetry::seat_view& seat : w.m.snap.seats)
        w.r.block().entry[seat.entry].depth.store(
            telemetry::depth_view{2, 5, telemetry::depth_reason::hops, 0, 70'000}.pack());
    w.run(60);
    REQUIRE(w.m.snap.seats[1].depth.lanes == 2);
    canvas s(false);
    s.draw(w.m);
    CHECK(canvas::find("panel.events") != nullptr);
    CHECK(canvas::find("panel.depth") == nullptr);
    s.screen.on_key(w.m, {'D', false, false});
    s.draw(w.m);
    CHECK(canvas::find("panel.events") == nullptr);
    const viewer::ui::widget* in = canvas::find("panel.depth");
    REQUIRE(in != nullptr);
    for (const char* name : {"geometry", "vertex", "fragment", "display"}) {
        const viewer::ui::widget* at = canvas::find(std::string("depth.row.") + name);
        REQUIRE(at != nullptr);
        CHECK((at->y >= in->y && at->y + at->height <= in->y + in->height));
    }
    const viewer::ui::widget* title = canvas::find("title.events");
    REQUIRE(title != nullptr);
    const ImVec2 mouse(title->x + title->width / 2, title->y + title->height / 2);
    s.draw(w.m, 1, mouse);
    ImGui::GetIO().MouseDown[0] = true;
    s.draw(w.m, 1, mouse);
    ImGui::GetIO().MouseDown[0] = false;
    s.draw(w.m, 2, mouse);
    CHECK(canvas::find("panel.events") != nullptr);
}

TEST_CASE("the frames in progress are listed oldest first, and one that is late has the time since when") {
    watched w(test::demo_plan(1280, 720));
    w.r.sit_all();
    w.run(8);
    REQUIRE(w.r.begin(0));
    REQUIRE(w.r.pass(0));
    REQUIRE(w.r.begin(1));
    w.read();
    REQUIRE(w.m.snap.jobs.size() == 2);
    canvas s(false);
    for (int k = 0; k < 2; ++k) s.screen.on_key(w.m, {'D', false, false});
    s.draw(w.m);
    REQUIRE(canvas::find("panel.frames") != nullptr);
    std::map<u64, f32> heights;  // by frame
    for (const telemetry::job_view& j : w.m.snap.jobs) {
        const viewer::ui::widget* row =
            canvas::find("frames.row." + w.m.snap.seat_label(j.seat) + "." + std::to_string(j.ring_sequence));
        REQUIRE(row != nullptr);
        heights[j.ring_sequence] = row->y;
    }
    REQUIRE(heights.size() == 2);
    CHECK(heights.begin()->second < heights.rbegin()->second);
    s.screen.on_key(w.m, {'D', false, false});
    s.draw(w.m);
    CHECK(canvas::find("panel.events") != nullptr);
}
