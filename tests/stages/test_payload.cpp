// Planes by name, as a stage reads and writes them.

#include <carousel/stage.hpp>
#include <vector>

#include "tests/support/catch.hpp"

using namespace carousel;
using test::contains;

namespace {

/// A depth picture of 3 x 2 with rows of 16 bytes, and a count.
struct depth_slot {
    frame_format format{"test.depth",
                        {{"depth", element::f32_, {2, 3}, {16, 4}, 0}, {"count", element::u32_, {1}, {}, 0}},
                        {}};
    std::vector<std::byte> bytes = std::vector<std::byte>(format.lay_out());
    output_payload out{bytes.data(), &format};
    input_payload in = out;
};

}  // namespace

TEST_CASE("a plane comes by its name, with its shape and strides") {
    depth_slot s;
    const plane_view<f32> depth = s.out.plane<f32>("depth");
    CHECK(depth.rank() == 2);
    CHECK((depth.extent(0) == 2 && depth.extent(1) == 3 && depth.extent(2) == 1));
    CHECK((depth.stride(0) == 16 && depth.stride(1) == 4));
    CHECK(depth.size() == 6);
    CHECK_FALSE(depth.is_dense());
    depth(1, 2) = 0.5F;
    const auto at = static_cast<std::size_t>(s.format.planes[0].offset) + 16 + 8;
    CHECK(*reinterpret_cast<const f32*>(s.bytes.data() + at) == 0.5F);
    CHECK(s.in.plane<const f32>("depth")(1, 2) == 0.5F);
}

TEST_CASE("a plane without strides is dense") {
    depth_slot s;
    const plane_view<u32> count = s.out.plane<u32>("count");
    CHECK(count.is_dense());
    CHECK(count.size() == 1);
    CHECK(reinterpret_cast<std::byte*>(count.data()) == s.bytes.data() + s.format.planes[1].offset);
}

TEST_CASE("a plane that isn't there is refused with a guess") {
    depth_slot s;
    CHECK_THROWS_WITH(
        s.in.plane<const f32>("dept"),
        contains("no plane \"dept\" in test.depth {depth: f32[2][3]") && contains("did you mean \"depth\"?"));
}

TEST_CASE("a plane of another element type is refused with both") {
    depth_slot s;
    CHECK_THROWS_WITH(s.in.plane<const u8>("depth"),
                      contains("the plane \"depth\" is asked for as u8, but it is f32 in test.depth"));
    CHECK_THROWS_AS(s.in.plane<const u8>("depth"), config_error);
}

TEST_CASE("records of one's own lie in a plane that is large enough for one") {
    struct pair {
        f32 first, second;
    };
    depth_slot s;
    s.out.records<pair>("depth")[0] = {1.0F, 2.0F};
    CHECK(s.in.records<const pair>("depth")->second == 2.0F);
    CHECK_THROWS_WITH(s.in.records<const pair>("count"), contains("has 4 bytes, too few for a record of 8"));
}
