// A place in a slot, by the planes of its format.

#include "core/json.hpp"
#include "frame/frame_format.hpp"
#include "supervisor/processes/process_events.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;

TEST_CASE("an offset in a slot is described as a plane and an offset in it") {
    ring::frame_format f{
        "test", {{"color", ring::element::u8_, {4, 10}}, {"depth", ring::element::f32_, {10}}}, {}};
    (void)f.lay_out();
    const nlohmann::json format = nlohmann::json::parse(f.to_json());
    const u64 color = f.planes[0].offset, depth = f.planes[1].offset;
    CHECK(place_in_slot(format, 4) == "the status word, offset 4");
    CHECK(place_in_slot(format, color) == "plane color, offset 0");
    CHECK(place_in_slot(format, color + 39) == "plane color, offset 39");
    CHECK(place_in_slot(format, color + 40) == "after plane color, offset 40");
    CHECK(place_in_slot(format, depth + 7) == "plane depth, offset 7");
    CHECK(place_in_slot(format, depth + 4000) == "after plane depth, offset 4000");
}
