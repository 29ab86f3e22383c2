// Pictures for meshes in every supported format, and in some unsupported ones. The files are those of the
// fuzz target.
#include <fstream>
#include <iterator>

#include "kernels/assets.hpp"
#include "picture/png.hpp"
#include "stages/display/picture_file.hpp"
#include "stages/geometry/mesh_source.hpp"
#include "stages/sdk/configuration.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::stages;
using test::contains;

namespace {

picture corpus(const std::string& name) { return {std::filesystem::path(CAROUSEL_CORPUS) / name, {}, {}}; }

std::string refusal(const picture& p) {
    try {
        (void)load_texture(p, "texture");
    } catch (const settings_error& e) {
        CHECK(e.key() == "texture");
        CHECK(std::string(e.what()).find('\n') == std::string::npos);
        return e.what();
    }
    return "accepted";
}

#define NEEDS_JPEG()                                                                               \
    if (refusal(corpus("jpeg_colour")).find("built without libjpeg-turbo") != std::string::npos) { \
        CAROUSEL_SKIP("built without libjpeg-turbo");                                              \
    }

/// Compares red, green, blue of pixel `i`, each with a tolerance of 3: JPEG rounds.
bool about(const texture_data& t, std::size_t i, int r, int g, int b) {
    const int wanted[3] = {r, g, b};
    for (std::size_t k = 0; k < 3; ++k) {
        if (std::abs(t.rgba[4 * i + k] - wanted[k]) > 3) return false;
    }
    return t.rgba[4 * i + 3] == 255;
}

}  // namespace

TEST_CASE("PNG of 16 bits, with a palette and in grey become eight-bit RGBA") {
    for (const char* name : {"grey16_interlaced", "palette", "rgb"}) {
        INFO(name);
        const texture_data t = load_texture(corpus(name), "texture");
        const texture_size s = size_of_texture(corpus(name), "texture");
        CHECK(t.width == s.width);
        CHECK(t.rgba.size() == std::size_t{s.width} * s.height * 4);
    }
}

TEST_CASE("JPEG pictures in colour and in grey are read, for any file name") {
    NEEDS_JPEG();
    const texture_data t = load_texture(corpus("jpeg_colour"), "texture");
    REQUIRE(t.width == 5);
    REQUIRE(t.height == 3);
    CHECK(about(t, 0, 255, 128, 0));
    CHECK(about(t, 14, 255, 128, 0));
    const texture_data grey = load_texture(corpus("jpeg_grey"), "texture");
    CHECK(grey.width == 7);
    CHECK(about(grey, 0, 255, 255, 255));
    CHECK(about(grey, 62, 0, 0, 0));
    std::ifstream in(corpus("jpeg_colour").file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    picture inside{{}, {}, "m.glb: images[0]"};
    for (const char c : bytes) inside.bytes.push_back(static_cast<std::byte>(c));
    CHECK(load_texture(inside, "mesh").rgba == t.rgba);
    inside.bytes.resize(30);
    CHECK_THAT(refusal(inside), contains("m.glb: images[0]"));
}

TEST_CASE("broken JPEG pictures and those in CMYK are refused") {
    NEEDS_JPEG();
    CHECK_THAT(refusal(corpus("jpeg_cmyk")),
               contains("jpeg_cmyk: its colours are CMYK") && contains("convert"));
    CHECK_THAT(refusal(corpus("jpeg_progressive_truncated")),
               contains("jpeg_progressive_truncated") && contains("convert"));
    CHECK_THAT(refusal(corpus("jpeg_truncated")), contains("jpeg_truncated") && contains("Premature end"));
}

TEST_CASE("a picture larger than the largest is refused by its header") {
    scratch_folder folder;
    const std::vector<std::byte> row(std::size_t{largest_texture + 1} * 4);
    write_picture_file(folder.path / "wide.png", encode_png(row, largest_texture + 1, 1));
    CHECK_THAT(refusal({folder.path / "wide.png", {}, {}}), contains("wide.png") && contains("8192 x 8192"));
}

TEST_CASE("a set of textures is contiguous, each with its levels and its factor") {
    scratch_folder folder;
    const auto png = [&](const char* name, u32 width, u32 height, u8 code) {
        std::vector<std::byte> rgba(std::size_t{width} * height * 4, static_cast<std::byte>(code));
        write_picture_file(folder.path / name, encode_png(rgba, width, height));
        return picture{folder.path / name, {}, {}};
    };
    const std::vector<surface> three = {surface{png("a.png", 3, 5, 200), {1, 1, 1}},
                                        surface{{}, {1, 0, 0.5F}},
                                        surface{png("b.png", 1, 1, 255), {0.5F, 1, 1}}};
    const texture_set set(three, "mesh", true);
    kernels::mesh_counts counts;
    set.describe(counts);
    CHECK(counts.texture_count == 3);
    CHECK(counts.texel_count == 15 + 2 + 1 + 1 + 1);
    CHECK(set.records()[0].levels == 3);
    CHECK(set.records()[2].begin[0] == 19);
    std::vector<u32> texels(kernels::texture_texels(counts));
    set.fill(texels.data());
    for (std::size_t i = 0; i < 18; ++i) CHECK(texels[i] == 0xc8c8c8c8U);
    CHECK(texels[18] == 0xffbc00ffU);
    CHECK(texels[19] == 0xffffffbcU);
    const texture_set alone({three[0]}, "mesh", false);
    kernels::mesh_counts one;
    alone.describe(one);
    CHECK(one == kernels::mesh_counts{0, 0, 3, 5});
    std::filesystem::remove(folder.path / "a.png");
    CHECK_THROWS_AS(set.fill(texels.data()), settings_error);
    png("a.png", 2, 2, 0);
    CHECK_THROWS_WITH(set.fill(texels.data()), contains("has changed since the run began"));
}
