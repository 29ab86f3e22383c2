// The frame formats of pictures.
#include "frame/image_format.hpp"

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace carousel::ring;
using carousel::test::contains;

TEST_CASE("the format of a picture contains its size, planes and colours") {
    for (const pixel_format pixels : pixel_formats) {
        CAPTURE(name_of(pixels));
        CHECK(pixel_format_named(name_of(pixels)) == pixels);
        frame_format format = image_format_of(pixels, 64, 48, {.matrix = 2020, .full_range = true});
        const carousel::u64 bytes = format.lay_out();
        const auto found = image_in(frame_format::from_json(format.to_json()));
        REQUIRE(found);
        CHECK((found->pixels == pixels && found->width == 64 && found->height == 48));
        CHECK(found->first_plane == plane_alignment);
        if (pixels != pixel_format::nv12) continue;
        CHECK(found->colours == yuv_colours{2020, true});
        CHECK(found->uv_plane == plane_alignment + 64 * 48);
        CHECK(bytes == found->uv_plane + 64 * 24);
    }
    CHECK_FALSE(pixel_format_named("yuv444p"));
}

TEST_CASE("a frame format with other planes is not a picture of its type") {
    frame_format format = image_format_of(pixel_format::nv12, 64, 48);
    format.planes.pop_back();
    (void)format.lay_out();
    CHECK_FALSE(image_in(format));
    frame_format strided = image_format_of(pixel_format::gray8, 64, 48);
    strided.planes[0].strides = {128, 1};
    (void)strided.lay_out();
    CHECK_FALSE(image_in(strided));
    frame_format other = image_format_of(pixel_format::rgba8, 64, 48);
    other.type = "scene.depth";
    CHECK_FALSE(image_in(other));
}

TEST_CASE("an NV12 picture of an odd size is refused, and colours that are not stated depend on the height") {
    CHECK_THROWS_WITH(image_format_of(pixel_format::nv12, 63, 48), contains("must be even"));
    const frame_format without{"carousel.image.nv12", {}, {}};
    CHECK(colours_of(without, 719) == yuv_colours{601, false});
    CHECK(colours_of(without, 720) == yuv_colours{709, false});
}
