// The panel with the picture: what its frame carries.
#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"

using namespace carousel;
using test::canvas;
using test::watched;

TEST_CASE("what the shown frame carries stands in the picture, and what finds no room there is counted") {
    watched w(test::demo_plan(1280, 720));
    w.r.sit_all();
    w.run(60);
    w.m.picture.width = 640;
    w.m.picture.height = 360;
    {
        canvas nothing(false);
        nothing.draw(w.m);
        CHECK(canvas::find("image.carried") == nullptr);
    }
    for (int k = 0; k < 100; ++k) w.m.picture.carried.emplace_back("key" + std::to_string(k), "value");
    canvas s(false);
    s.draw(w.m);
    const viewer::ui::widget *at = canvas::find("image.carried"), *in = canvas::find("image.area");
    REQUIRE((at != nullptr && in != nullptr));
    CHECK((at->x >= in->x && at->x + at->width <= in->x + in->width + 1));
    CHECK((at->y >= in->y && at->y + at->height <= in->y + in->height + 1));
}
