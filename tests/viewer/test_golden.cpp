// The whole window compared with a saved picture: a fixed run at a fixed time with a fixed font, drawn
// without a display, scaled down and compared with a tolerance, because GL drivers and ImGui versions differ
// by a pixel here and there. To save a new one: CAROUSEL_KEEP_GOLDEN=1 build/release/test_viewer "the window
// looks*", then inspect tests/viewer/golden.png.

#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"
#include "viewer/watch/picture_choice.hpp"

using namespace carousel;

namespace {

constexpr u32 full_width = 1920, full_height = 1080, shrink = 4, small_width = full_width / shrink,
              small_height = full_height / shrink;
const std::string golden = std::string(CAROUSEL_SOURCE) + "/tests/viewer/golden.png";

std::vector<u8> shrunk(const std::vector<u8>& pixels) {
    std::vector<u8> out(std::size_t{small_width} * small_height * 4);
    for (u32 y = 0; y < small_height; ++y)
        for (u32 x = 0; x < small_width; ++x)
            for (u32 c = 0; c < 4; ++c) {
                u32 sum = 0;
                for (u32 k = 0; k < shrink * shrink; ++k)
                    sum +=
                        pixels[(std::size_t{y * shrink + k / shrink} * full_width + x * shrink + k % shrink) *
                                   4 +
                               c];
                out[(std::size_t{y} * small_width + x) * 4 + c] = static_cast<u8>(sum / (shrink * shrink));
            }
    return out;
}

std::vector<u8> read_png(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
    const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png(spng_ctx_new(0), spng_ctx_free);
    spng_set_png_buffer(png.get(), bytes.data(), bytes.size());
    std::size_t size = 0;
    if (spng_decoded_image_size(png.get(), SPNG_FMT_RGBA8, &size) != 0) return {};
    std::vector<u8> out(size);
    return spng_decode_image(png.get(), out.data(), size, SPNG_FMT_RGBA8, 0) == 0 ? out : std::vector<u8>();
}

struct difference {
    f64 mean = 0;   // of all channels, 0..255
    f64 share = 0;  // of pixels that differ a lot
};
difference compare(const std::vector<u8>& a, const std::vector<u8>& b) {
    difference d;
    for (std::size_t k = 0; k < a.size(); k += 4) {
        int most = 0;
        for (std::size_t c = 0; c < 3; ++c) {
            const int by = std::abs(a[k + c] - b[k + c]);
            d.mean += by;
            most = std::max(most, by);
        }
        d.share += most > 40 ? 1 : 0;
    }
    d.mean /= static_cast<f64>(a.size()) * 0.75;
    d.share /= static_cast<f64>(a.size()) / 4;
    return d;
}

std::vector<u8> draw(test::canvas& s, test::watched& w) {
    std::vector<u32> frame(640 * 360);
    for (u32 y = 0; y < 360; ++y)
        for (u32 x = 0; x < 640; ++x)
            frame[y * 640 + x] = 0xFF000000U | (x * 255 / 640) | (y * 255 / 360) << 8U |
                                 ((x / 40 + y / 40) % 2 * 120 + 60) << 16U;
    REQUIRE(s.store->resize(640, 360).empty());
    s.store->upload(reinterpret_cast<const std::byte*>(frame.data()));
    viewer::picture_model& p = w.m.picture;
    p.width = 640;
    p.height = 360;
    p.pixels = reinterpret_cast<const std::byte*>(frame.data());
    p.ring_sequence = 118;
    p.stage = "fragment";
    p.path = "plain upload (host memory)";
    s.draw(w.m, 3);
    p.pixels = nullptr;
    u32 wide = 0, high = 0;
    return shrunk(s.window->read_pixels(wide, high));
}

}  // namespace

TEST_CASE("the window equals the reference picture") {
    std::unique_ptr<test::canvas> s;
    try {
        s = std::make_unique<test::canvas>(true, full_width, full_height);
    } catch (const error& e) {
        CAROUSEL_SKIP((std::string("no offscreen GL here: ") + e.what()).c_str());
    }
    if (!std::filesystem::exists("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"))
        CAROUSEL_SKIP("the kept picture is in DejaVu Sans, which is not here");
    test::watched w(test::demo_plan(640, 360));
    w.fixed = true;
    w.r.sit_all();
    w.run(300);
    for (const u32 seat : {0U, 0U, 0U, 1U, 1U, 2U}) REQUIRE(w.r.pass(seat));
    REQUIRE(w.r.begin(3));
    REQUIRE(w.r.begin(2));
    w.r.die(2);
    w.time_ns += 40 * ns_per_ms;
    w.read();
    const std::vector<u8> now = draw(*s, w);
    if (std::getenv("CAROUSEL_KEEP_GOLDEN") != nullptr)
        viewer::write_picture(golden, now, small_width, small_height);
    const std::vector<u8> kept = read_png(golden);
    REQUIRE(kept.size() == now.size());
    const difference d = compare(now, kept);
    const std::string seen = (std::filesystem::temp_directory_path() / "carousel-viewer-seen.png").string();
    if (d.mean >= 2 || d.share >= 0.015) viewer::write_picture(seen, now, small_width, small_height);
    INFO("mean difference " << d.mean << ", share of pixels that differ a lot " << d.share
                            << "; what was drawn: " << seen);
    CHECK(d.mean < 2);
    CHECK(d.share < 0.015);

    // The control: a window that differs by what a reader would notice is found.
    w.m.report.push_back({});
    w.m.phase = viewer::run_phase::ended;
    w.m.kept.main_split += 0.03F;
    CHECK(compare(draw(*s, w), kept).share > 0.015);
}
