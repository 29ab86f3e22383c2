// carousel-video frame by frame: formats, colours, times, loops, changes of the size. Sample videos are made
// by the program ffmpeg.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <carousel/testing.hpp>
#include "core/clock.hpp"
#include "stages/video/video.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using carousel::stages::video_source;
using test::contains;

namespace {

#define NEEDS_FFMPEG() \
    if (std::system("ffmpeg -version >/dev/null 2>&1") != 0) CAROUSEL_SKIP("there is no ffmpeg")

std::string command(const std::string& arguments) {
    return "ffmpeg -nostdin -loglevel error -y " + arguments;
}
void ffmpeg(const std::string& arguments) { REQUIRE(std::system(command(arguments).c_str()) == 0); }

/// The bytes that ffmpeg prints.
std::vector<u8> output_of(const std::string& arguments) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command(arguments + " -").c_str(), "r"),
                                                     ::pclose);
    std::vector<u8> all;
    u8 part[65536];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, pipe.get())) > 0;)
        all.insert(all.end(), part, part + got);
    return all;
}

struct rig {
    const scratch_folder folder;
    std::unique_ptr<carousel::testing::chain> chain;
    int runs = 0;

    rig() { ::setenv("XDG_CACHE_HOME", folder.path.c_str(), 1); }
    std::string file(const std::string& name) const { return (folder.path / name).string(); }
    void open(const std::string& keys) {
        carousel::testing::chain_options options;
        options.folder = folder.path.string();
        options.runtime_directory = file(fmt::format("run-{}", ++runs));
        std::filesystem::create_directory(options.runtime_directory);
        chain = std::make_unique<carousel::testing::chain>(options);
        chain->add("video", std::make_unique<video_source>(), keys);
        chain->prepare();
    }
};

int largest_difference(const std::vector<u8>& a, const std::vector<u8>& b) {
    REQUIRE(a.size() == b.size());
    int worst = 0;
    for (std::size_t k = 0; k < a.size(); ++k) worst = std::max(worst, std::abs(int{a[k]} - int{b[k]}));
    return worst;
}

}  // namespace

TEST_CASE("a test card has FFmpeg's colours within 1, for each matrix and range") {
    NEEDS_FFMPEG();
    rig r;
    const std::string input = r.file("card.mkv");
    for (const auto& [matrix, space] :
         {std::pair("bt601", "smpte170m"), {"bt709", "bt709"}, {"bt2020", "bt2020nc"}})
        for (const std::string range : {"tv", "pc"}) {
            CAPTURE(matrix, range);
            ffmpeg(fmt::format(
                "-f lavfi -i smptehdbars=size=128x72 -vf "
                "scale=out_color_matrix={}:out_range={},format=yuv420p -colorspace {} -color_range {} "
                "-frames:v 1 -c:v ffv1 {}",
                matrix, range, space, range, input));
            const auto expected = output_of(fmt::format(
                "-i {} -vf scale=in_color_matrix={}:in_range={}:flags=bicubic+accurate_rnd+full_chroma_int "
                "-f "
                "rawvideo -pix_fmt rgba",
                input, matrix, range));
            r.open(R"({"url": "card.mkv"})");
            r.chain->run(0);
            CHECK(largest_difference(r.chain->read<u8>("video", "color"), expected) <= 1);
            // NV12 has the values of the file
            r.open(R"({"url": "card.mkv", "pixel_format": "nv12"})");
            r.chain->run(0);
            auto luma = r.chain->read<u8>("video", "y");
            const auto chroma = r.chain->read<u8>("video", "uv");
            for (const std::size_t first : {0, 1})
                for (std::size_t k = first; k < chroma.size(); k += 2) luma.push_back(chroma[k]);
            const auto values = output_of(fmt::format("-i {} -f rawvideo -pix_fmt yuv420p", input));
            CHECK(largest_difference(luma, values) == 0);
        }
}

TEST_CASE("a grey picture has the values of its range after each conversion of NV12 of equal size") {
    for (const u32 matrix : {601U, 709U, 2020U})
        for (const bool from_full : {false, true})
            for (const bool to_full : {false, true}) {
                CAPTURE(matrix, from_full, to_full);
                stages::media::picture_layout from{AV_PIX_FMT_YUV420P, 32, 16, {}}, to = from;
                from.colours.matrix = to.colours.matrix = matrix;
                to.pixels = AV_PIX_FMT_NV12;
                from.colours.full_range = from_full;
                to.colours.full_range = to_full;
                const std::vector<u8> luma(32 * 16, from_full ? u8{200} : u8{188}), chroma(16 * 8, 128);
                std::vector<u8> y(32 * 16), uv(32 * 8);
                const u8* const planes[4] = {luma.data(), chroma.data(), chroma.data(), nullptr};
                const int strides[4] = {32, 16, 16, 0}, out_strides[4] = {32, 32, 0, 0};
                u8* const out[4] = {y.data(), uv.data(), nullptr, nullptr};
                stages::media::converter by;
                by.prepare(from, to);
                by.convert(planes, strides, out, out_strides);
                // 16 + 200 * 219 / 255 = 188
                CHECK(largest_difference(y, std::vector<u8>(y.size(), to_full ? u8{200} : u8{188})) <= 1);
                CHECK(largest_difference(uv, std::vector<u8>(uv.size(), 128)) <= 1);
            }
}

TEST_CASE("grey pictures and pictures of 16 bits are FFmpeg's within 1") {
    NEEDS_FFMPEG();
    rig r;
    ffmpeg(fmt::format("-f lavfi -i testsrc=size=64x48 -frames:v 1 -c:v ffv1 -pix_fmt gbrp10le {}",
                       r.file("a.mkv")));
    r.open(R"({"url": "a.mkv", "pixel_format": "rgba16"})");
    r.chain->run(0);
    const auto wide = r.chain->read<u16>("video", "color");
    const auto expected = output_of(fmt::format("-i {} -f rawvideo -pix_fmt rgba64le", r.file("a.mkv")));
    REQUIRE(expected.size() == wide.size() * 2);
    int worst = 0;
    for (std::size_t k = 0; k < wide.size(); ++k)
        worst = std::max(worst, std::abs(int{wide[k]} - (expected[2 * k] | expected[2 * k + 1] << 8)));
    CHECK(worst <= 64);  // one step of the file's 10 bits
    r.open(R"({"url": "a.mkv", "pixel_format": "gray8"})");
    r.chain->run(0);
    const auto grey = output_of(
        fmt::format("-i {} -vf scale=flags=bicubic+accurate_rnd -f rawvideo -pix_fmt gray", r.file("a.mkv")));
    CHECK(largest_difference(r.chain->read<u8>("video", "gray"), grey) <= 1);
}

TEST_CASE("a frame has its presentation time and whether it is a key frame") {
    NEEDS_FFMPEG();
    rig r;
    ffmpeg(fmt::format("-f lavfi -i testsrc2=size=64x48:rate=25 -frames:v 20 -c:v libx264 -bf 2 -g 10 {}",
                       r.file("a.mp4")));
    r.open(R"({"url": "a.mp4"})");
    for (u64 k = 0; k < 20; ++k) {
        r.chain->run(k);
        CHECK(r.chain->metadata("video").get<i64>("pts_ns") == static_cast<i64>(k) * 40'000'000);
        CHECK(r.chain->metadata("video").get<bool>("key_frame") == (k % 10 == 0));
    }
    r.chain->run(20);
    CHECK(r.chain->has_ended());
}

TEST_CASE("a video that loops shows its first picture after its last one") {
    NEEDS_FFMPEG();
    rig r;
    ffmpeg(fmt::format("-f lavfi -i testsrc2=size=64x48 -frames:v 7 -c:v libx264 {}", r.file("a.mp4")));
    r.open(R"({"url": "a.mp4", "loop": true})");
    std::vector<std::vector<u8>> pictures;
    for (u64 k = 0; k < 20; ++k) {
        r.chain->run(k);
        pictures.push_back(r.chain->read<u8>("video", "color"));
        if (k >= 7) CHECK(pictures[k] == pictures[k % 7]);
    }
    CHECK(pictures[0] != pictures[3]);
}

TEST_CASE("a still picture that loops is shown in each frame") {
    NEEDS_FFMPEG();
    rig r;
    ffmpeg(fmt::format("-f lavfi -i testsrc2=size=64x48 -frames:v 1 -c:v ffv1 {}", r.file("a.mkv")));
    r.open(R"({"url": "a.mkv", "loop": true})");
    r.chain->run(0);
    const auto first = r.chain->read<u8>("video", "color");
    for (u64 k = 1; k < 5; ++k) {
        r.chain->run(k);
        CHECK_FALSE(r.chain->has_ended());
        CHECK(r.chain->read<u8>("video", "color") == first);
    }
}

TEST_CASE("pictures that change their size are scaled, or end the stream") {
    NEEDS_FFMPEG();
    rig r;
    const std::string part =
        "-f lavfi -i testsrc2=size={}:rate=25 -frames:v 5 -c:v libx264 -tune zerolatency {}";
    ffmpeg(fmt::format(fmt::runtime(part), "64x48", r.file("1.ts")));
    ffmpeg(fmt::format(fmt::runtime(part), "96x64", r.file("2.ts")));
    REQUIRE(std::system(
                fmt::format("cat {} {} > {}", r.file("1.ts"), r.file("2.ts"), r.file("a.ts")).c_str()) == 0);
    const auto frames = [&] {
        u64 k = 0;
        for (; k < 20; ++k) {
            r.chain->run(k);
            if (r.chain->has_ended()) break;
            CHECK(r.chain->read<u8>("video", "color").size() == 64 * 48 * 4);
        }
        return k;
    };
    r.open(R"({"url": "a.ts"})");
    CHECK(frames() == 10);
    r.open(R"({"url": "a.ts", "on_change": "end"})");
    CHECK(frames() == 5);
}

TEST_CASE("a live input ends with an error that a later attempt would have again") {
    NEEDS_FFMPEG();
    namespace video = carousel::stages::video;
    const rig r;
    const std::string fifo = r.file("live.fifo");
    ffmpeg(fmt::format("-f lavfi -i testsrc2=size=64x48 -frames:v 3 -c:v ffv1 {}", r.file("a.mkv")));
    REQUIRE(std::system(
                fmt::format("mkfifo {0} && (timeout 5 cat {1} > {0} &)", fifo, r.file("a.mkv")).c_str()) ==
            0);
    const carousel::stages::media::options wrong(std::map<std::string, std::string>{{"colour", "red"}});
    video::live_video camera(video::address_of(fifo, fifo), -1, wrong, true, [] {});
    const auto wait = [&] {
        for (const u64 until = now_ns() + 5 * ns_per_s; now_ns() < until && !camera.has_ended();)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    CHECK_THROWS_WITH(wait(), contains("has an option colour"));
}

TEST_CASE("a file on a server is not a live input") {
    using stages::video::address_of;
    CHECK(address_of("https://host/a.mp4", "").is_on_server());
    CHECK_FALSE(address_of("https://host/a.mp4", "").is_live());
    CHECK_FALSE(address_of("rtsp://host/a", "").is_on_server());
    CHECK_FALSE(address_of("a.mp4", "/a.mp4").is_on_server());
}

TEST_CASE("keys that do not fit together are refused") {
    rig r;
    CHECK_THROWS_WITH(r.open(R"({})"), contains("no video is named"));
    CHECK_THROWS_WITH(r.open(R"({"url": "rtsp://host/x", "live": false})"), contains("can't be read again"));
    CHECK_THROWS_WITH(r.open(R"({"url": "rtsp://host/x", "size": "1280"})"),
                      contains("expected e.g. \"1280x720\""));
    CHECK_THROWS_WITH(r.open(R"({"url": "rtsp://host/x", "size": "63x48", "pixel_format": "nv12"})"),
                      contains("can't be NV12"));
    CHECK_THROWS_WITH(r.open(R"({"url": "none.mp4"})"), contains("No such file or directory"));
}
