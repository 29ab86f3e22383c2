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

TEST_CASE("a plane is found by its name, with its shape and strides") {
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

TEST_CASE("an input's plane is as large as its frame uses it, an output's as it is declared") {
    frame_format format{"test.boxes",
                        {{"boxes", element::f32_, {50, 4}, {}, 0}, {"mask", element::bool_, {4, 8}, {}, 0}},
                        {}};
    std::vector<std::byte> bytes(format.lay_out());
    shm::used_extents used{};
    const output_payload out(bytes.data(), &format, &used);
    const input_payload in = out;
    CHECK(in.plane<const f32>("boxes").extent(0) == 50);
    CHECK(in.bytes("boxes").size() == 800);
    out.set_used("boxes", {3});
    out.set_used("mask", {2, 5});
    CHECK(out.plane<f32>("boxes").extent(0) == 50);
    CHECK(out.bytes("boxes").size() == 800);
    const auto boxes = in.plane<const f32>("boxes");
    CHECK((boxes.extent(0) == 3 && boxes.extent(1) == 4 && boxes.size() == 12 && boxes.is_dense()));
    CHECK(in.bytes("boxes").size() == 48);
    const auto mask = in.plane<const bool>("mask");
    CHECK((mask.extent(0) == 2 && mask.extent(1) == 5 && mask.stride(0) == 8 && !mask.is_dense()));
    CHECK(in.bytes("mask").size() == 13);
    CHECK(ring::describe_used(format, used) == "boxes 3 x 4 of 50 x 4, mask 2 x 5 of 4 x 8");
    out.set_used("boxes", {0});
    CHECK(in.plane<const f32>("boxes").size() == 0);
    CHECK(in.bytes("boxes").empty());
    used.of[0][0] = 9999;  // as a broken process may have written it
    CHECK(in.plane<const f32>("boxes").extent(0) == 50);
    CHECK(in.bytes("boxes").size() == 800);
}

TEST_CASE("a plane's used extents can't exceed it and are set only in process()") {
    depth_slot s;
    shm::used_extents used{};
    const output_payload out(s.bytes.data(), &s.format, &used);
    CHECK_THROWS_WITH(out.set_used("depth", {3}), contains("can't be used as (3): it is smaller"));
    CHECK_THROWS_WITH(out.set_used("depth", {2, 3, 1}), contains("it has 2 dimensions"));
    CHECK_THROWS_WITH(out.set_used("height", {1}), contains("no plane \"height\""));
    CHECK(used.planes == 0);
    CHECK_THROWS_AS(s.out.set_used("depth", {1}), std::logic_error);
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
                      contains("the plane \"depth\" was requested as u8, but it is f32 in test.depth"));
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
