// Any plane as a picture: which planes of a ring qualify, and where their pixels are.
#include "viewer/watch/plane_picture.hpp"

#include "frame/metadata.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::viewer;
using ring::element;
using ring::plane;

namespace {

std::vector<std::string> names_of(ring::frame_format f) {
    (void)f.lay_out();
    std::vector<std::string> out;
    for (const plane_picture& p : pictures_of(f)) out.push_back(p.name);
    return out;
}

plane_picture only(ring::frame_format f) {
    (void)f.lay_out();
    const auto p = picture_of(f);
    REQUIRE(p);
    return *p;
}
plane_picture only(plane p) { return only(ring::frame_format{"any", {std::move(p)}, {}}); }

}  // namespace

TEST_CASE("the colour plane is shown if there is one, else the first plane with rows and columns") {
    const plane color{"color", element::u8_, {4, 6, 4}}, depth{"depth", element::f32_, {4, 6}},
        list{"list", element::u32_, {24}}, points{"points", element::f32_, {100, 3}},
        rows{"rows", element::f32_, {1, 24}};
    CHECK(picture_of({"a", {depth, color}, {}})->name == "color");
    CHECK(picture_of({"a", {list, depth}, {}})->name == "depth");
    CHECK_FALSE(picture_of({"a", {list, rows}, {}}));
    CHECK(picture_of({"a", {points}, {}})->width == 3);
    CHECK(picture_of({"a", {depth, color}, {}}, "depth")->type == element::f32_);
    CHECK_FALSE(picture_of({"a", {depth, color}, {}}, "normals"));
    CHECK(names_of({"a", {depth, list, color, points}, {}}) ==
          std::vector<std::string>{"depth", "color", "points"});
}

TEST_CASE("channels come last or first, and a picture in four dimensions is its batch's only one") {
    const plane_picture last = only({"n", element::f32_, {4, 6, 3}}),
                        first = only({"n", element::f32_, {3, 4, 6}});
    CHECK((last.height == 4 && last.width == 6 && last.channels == 3));
    CHECK((first.height == 4 && first.width == 6 && first.channels == 3));
    CHECK((last.pixel_bytes == 12 && last.channel_bytes == 4 && last.row_bytes == 72));
    CHECK((first.pixel_bytes == 4 && first.channel_bytes == 96 && first.row_bytes == 24));
    CHECK(only({"n", element::f16_, {1, 3, 4, 6}}).channel_bytes == 48);
    CHECK(only({"n", element::f16_, {1, 4, 6, 2}}).channels == 2);
    CHECK_FALSE(picture_of({"a", {{"n", element::f32_, {2, 3, 4, 6}}}, {}}));
    CHECK_FALSE(picture_of({"a", {{"n", element::f32_, {8, 4, 6}}}, {}}));
    CHECK_FALSE(picture_of({"a", {{"n", element::f32_, {20'000, 6}}}, {}}));
}

TEST_CASE("rows further apart than their pixels are a picture, and no plain one") {
    const plane_picture strided = only({"color", element::u8_, {4, 6, 4}, {64, 4, 1}});
    CHECK((strided.kind == picture_kind::colours && strided.row_bytes == 64));
    CHECK(strided.bytes == 3 * 64 + 24);
    CHECK(only({"color", element::u8_, {4, 6, 4}}).is_rgba());
    CHECK(only({"color", element::u8_, {4, 6, 4}, {24, 4, 1}}).is_rgba());
    CHECK(only({"color", element::u8_, {4, 6, 3}}).kind == picture_kind::colours);
    CHECK(only({"grey", element::u8_, {4, 6}}).kind == picture_kind::values);
}

TEST_CASE("NV12 is recognised by its planes' names or by the format's type") {
    const plane one{"nv12", element::u8_, {6, 4}}, y{"y", element::u8_, {4, 4}},
        uv{"uv", element::u8_, {2, 2, 2}}, flat{"uv", element::u8_, {2, 4}},
        odd{"nv12", element::u8_, {7, 4}}, wide{"uv", element::u8_, {2, 6}};
    const plane_picture single = only(one);
    CHECK((single.kind == picture_kind::nv12 && single.width == 4 && single.height == 4));
    CHECK((single.chroma_at == 16 && single.chroma_row == 4 && single.bytes == 24));
    const plane_picture pair = only({"a", {y, uv}, {}});
    CHECK((pair.kind == picture_kind::nv12 && pair.name == "y + uv" && pair.height == 4));
    CHECK((pair.chroma_at == 256 && pair.chroma_row == 4 && pair.bytes == 264));  // each plane aligned
    CHECK(only({"a", {y, flat}, {}}).kind == picture_kind::nv12);
    CHECK(names_of({"a", {y, uv}, {}}) == std::vector<std::string>{"y + uv", "y", "uv"});
    // not of its shape
    CHECK(only(odd).kind == picture_kind::values);
    CHECK(only({"a", {y, wide}, {}}).name == "y");
    // other names, with the type's word
    plane frame = one;
    frame.name = "frame";
    CHECK(only({"a", {frame}, {}}).kind == picture_kind::values);
    CHECK(only({"camera.nv12", {frame}, {}}).kind == picture_kind::nv12);
    plane luma = y, chroma = uv;
    luma.name = "luma";
    chroma.name = "chroma";
    CHECK(only({"camera.nv12", {luma, chroma}, {}}).name == "luma + chroma");
}

TEST_CASE("the meaning of an NV12 picture's values is given by constants, else by its height") {
    const plane small{"nv12", element::u8_, {6, 4}}, large{"nv12", element::u8_, {1080, 4}};
    CHECK(only(small).colours == ring::yuv_colours{601, false});
    CHECK(only(large).colours == ring::yuv_colours{709, false});
    const plane_picture annotated = only({"a", {small}, {{"yuv_matrix", 2020}, {"full_range", 1}}});
    CHECK(annotated.colours == ring::yuv_colours{2020, true});
}

TEST_CASE("each format of Carousel's own pictures is shown as one") {
    for (const ring::pixel_format pixels : ring::pixel_formats) {
        CAPTURE(ring::name_of(pixels));
        ring::frame_format f = ring::image_format_of(pixels, 8, 4);
        (void)f.lay_out();
        const auto shown = picture_of(f);
        REQUIRE(shown);
        CHECK((shown->width == 8 && shown->height == 4));
        CHECK((shown->kind == picture_kind::values) == (pixels == ring::pixel_format::gray8));
    }
}

TEST_CASE("the part of a picture in use is that of its rows and columns") {
    ring::frame_format f{"a", {{"n", element::f32_, {3, 40, 60}}, {"d", element::f32_, {40, 60}}}, {}};
    (void)f.lay_out();
    shm::used_extents used{};
    CHECK(picture_of(f, "n")->used_of(f, used) == picture_part{});
    ring::set_used(used, f, "n", std::vector<u64>{3, 30, 50});
    CHECK(picture_of(f, "n")->used_of(f, used) == picture_part{50, 30});
    CHECK(picture_of(f, "d")->used_of(f, used) == picture_part{});
    ring::set_used(used, f, "d", std::vector<u64>{7});
    CHECK(picture_of(f, "d")->used_of(f, used) == picture_part{60, 7});
}
