#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/errors.hpp"
#include "picture/png.hpp"
#include "stages/assets/texture.hpp"
#include "stages/display/picture_file.hpp"
#include "stages/display/picture_sequence.hpp"
#include "stages/sdk/configuration.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::stages;
using test::contains;

namespace {

std::string name_of(const std::string& pattern, u64 frame_number) {
    return picture_name("out", pattern).of(frame_number, "/runs").string();
}

std::string refusal(const std::string& pattern) {
    try {
        picture_name("out", pattern);
    } catch (const settings_error& e) {
        CHECK(e.key() == "out");
        return e.what();
    }
    return "accepted";
}

std::vector<std::byte> some_picture(u32 width, u32 height, u32 seed) {
    std::vector<std::byte> rgba(std::size_t{width} * height * 4);
    for (std::size_t i = 0; i < rgba.size(); ++i) {
        seed = seed * 1664525 + 1013904223;
        rgba[i] = i % 4 == 3 ? std::byte{255} : static_cast<std::byte>(i % 97 < 60 ? i / 97 : seed >> 24);
    }
    return rgba;
}

}  // namespace

TEST_CASE("a picture's name gives its frame, and no other name does") {
    const picture_name n("out", "/some/where/a%%_%03d.png");
    CHECK(n.number_of("a%_007.png") == 7);
    CHECK(n.number_of("a%_1234.png") == 1234);
    for (const char* other : {"a%_07.png", "a%_0007.png", "a%_.png", "a%_-07.png", "a%_007.pn", "b%_007.png",
                              "a%_007.png.png", "", "a%_99999999999999999999999.png"})
        CHECK_FALSE(n.number_of(other));
}

TEST_CASE("a pattern names one file a frame") {
    CHECK(name_of("frame_%05d.png", 7) == "/runs/frame_00007.png");
    CHECK(name_of("frame_%05d.png", 1234567) == "/runs/frame_1234567.png");
    CHECK(name_of("%d.png", 7) == "/runs/7.png");
    CHECK(name_of("sub/a%03d_b.png", 7) == "/runs/sub/a007_b.png");
    CHECK(name_of("/elsewhere/100%%_%02d.png", 7) == "/elsewhere/100%_07.png");
    CHECK(name_of("%020d.png", 7) == "/runs/00000000000000000007.png");
    CHECK(picture_name("out", "sub/a%03d.png").parent("/runs") == "/runs/sub");
}

TEST_CASE("a pattern that names no file, or the same one for all frames, is refused") {
    CHECK_THAT(refusal("frame.png"), contains("no placeholder for the frame's number"));
    CHECK_THAT(refusal("%d_%d.png"), contains("more than one placeholder"));
    CHECK_THAT(refusal("frame_%s.png"), contains("\"%s.p\" is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%n.png"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%5d.png"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%-5d.png"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%021d.png"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%099999999999999999999d.png"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%0d.png"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%ld.png"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("frame_%"), contains("is not a placeholder for a number"));
    CHECK_THAT(refusal("run_%d/frame.png"), contains("not in the folder's"));
    CHECK_THAT(refusal("frame_%d.gif"), contains("files that end in .png, .jpg, .jpeg, .rgba or .npy"));
    CHECK_THAT(refusal("frame_%d"), contains("files that end in .png"));
}

TEST_CASE("the extension of a pattern selects the picture format") {
    const auto format = [](const char* pattern) { return picture_name("out", pattern).format(); };
    CHECK(format("%d.png") == picture_format::png);
    CHECK(format("%d.rgba") == picture_format::rgba);
    CHECK(format("%d.npy") == picture_format::npy);
    if (!why_not_written(picture_format::jpeg).empty()) {
        CHECK_THAT(refusal("%d.jpg"), contains("libturbojpeg"));
        return;
    }
    CHECK(format("%d.jpg") == picture_format::jpeg);
    CHECK(format("%d.jpeg") == picture_format::jpeg);
}

TEST_CASE("raw pictures are the pixels, those for NumPy follow a header") {
    const auto rgba = some_picture(7, 5, 1);
    const encoded_picture raw = encode_picture(picture_format::rgba, rgba, 7, 5);
    CHECK(raw.head.empty());
    CHECK(raw.pixels_follow);
    const encoded_picture npy = encode_picture(picture_format::npy, rgba, 7, 5);
    CHECK(npy.pixels_follow);
    CHECK(npy.head.size() % 64 == 0);
    const std::string head(reinterpret_cast<const char*>(npy.head.data()), npy.head.size());
    CHECK(head.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
    CHECK(static_cast<u8>(head[8]) + 256 * static_cast<u8>(head[9]) + 10U == head.size());
    CHECK_THAT(head, contains("{'descr': '|u1', 'fortran_order': False, 'shape': (5, 7, 4), }"));
    CHECK(head.ends_with("\n"));
    scratch_folder folder;
    write_picture_file(folder.path / "p.npy", npy.head, {}, rgba);
    CHECK(std::filesystem::file_size(folder.path / "p.npy") == head.size() + rgba.size());
}

TEST_CASE("a JPEG shows the picture, nearly") {
    if (!why_not_written(picture_format::jpeg).empty()) CAROUSEL_SKIP("this build writes no JPEG");
    scratch_folder folder;
    constexpr u32 width = 64, height = 33;
    std::vector<std::byte> rgba;
    for (u32 k = 0; k < width * height; ++k)
        for (const u32 value : {k % width * 3, 255 - k % width * 2, k / width * 7, 77U})
            rgba.push_back(static_cast<std::byte>(value));
    const encoded_picture jpeg = encode_picture(picture_format::jpeg, rgba, width, height);
    CHECK_FALSE(jpeg.pixels_follow);
    write_picture_file(folder.path / "p.jpg", jpeg.head);
    const auto back = load_texture({folder.path / "p.jpg", {}, {}}, "texture");
    REQUIRE(back.width == width);
    REQUIRE(back.height == height);
    int worst = 0;
    for (std::size_t k = 0; k < rgba.size(); ++k)
        if (k % 4 != 3) worst = std::max(worst, std::abs(static_cast<int>(rgba[k]) - int{back.rgba[k]}));
    CHECK(worst < 24);
    CHECK(worst > 0);
}

TEST_CASE("a picture of a killed writer is complete or absent, and the next writer cleans up") {
    scratch_folder folder;
    const auto old_picture = encode_png(some_picture(200, 200, 1), 200, 200);
    const auto new_picture = encode_png(some_picture(400, 300, 2), 400, 300);
    const auto file = folder.path / "p.png";
    write_picture_file(file, old_picture);
    for (int round = 0; round < 30; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            for (int i = 0;; ++i) {
                write_picture_file(file, i % 2 == 0 ? new_picture : old_picture);
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(300 + 170 * round));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        const auto size = std::filesystem::file_size(file);
        REQUIRE((size == old_picture.size() || size == new_picture.size()));
        REQUIRE_NOTHROW(load_texture({file, {}, {}}, "texture"));
    }
    prepare_folder(folder.path);
    CHECK(folder.names() == std::vector<std::string>{"p.png"});
}

TEST_CASE("the folder for pictures is made, and one that can't be written to is named with a remedy") {
    scratch_folder folder;
    prepare_folder(folder.path / "a" / "b");
    CHECK(std::filesystem::is_directory(folder.path / "a" / "b"));
    std::ofstream(folder.path / "file") << "x";
    CHECK_THROWS_WITH(prepare_folder(folder.path / "file" / "b"), contains("file/b") && contains("--out"));
    CHECK_THROWS_AS(prepare_folder("/proc/carousel"), output_error);
    CHECK_THROWS_AS(write_picture_file(folder.path / "absent" / "p.png", {}), output_error);
}

TEST_CASE("a file size limit is an output error that leaves neither a picture nor a temporary file") {
    scratch_folder folder;
    const auto picture = encode_png(some_picture(200, 200, 1), 200, 200);
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit tight{1000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    std::string message;
    int code = 0;
    try {
        write_picture_file(folder.path / "p.png", picture);
    } catch (const output_error& e) {
        message = e.what();
        code = e.code();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(code == exit_code::output);
    CHECK_THAT(message, contains("p.png") && contains("(ulimit -f): raise that limit"));
    CHECK(folder.names().empty());
}

TEST_CASE("textures that can't be read are refused with the file's name") {
    scratch_folder folder;
    const auto bad = [&](const std::string& name) {
        try {
            (void)load_texture({folder.path / name, {}, {}}, "texture");
        } catch (const settings_error& e) {
            CHECK(e.key() == "texture");
            return std::string(e.what());
        }
        return std::string("accepted");
    };
    CHECK_THAT(bad("absent.png"), contains("absent.png") && contains("No such file"));
    std::ofstream(folder.path / "text.png") << "this is no picture, whatever its name says";
    CHECK_THAT(bad("text.png"), contains("text.png") && contains("PNG"));
    std::ofstream(folder.path / "empty.png");
    CHECK_THAT(bad("empty.png"), contains("empty.png"));
    const auto whole = encode_png(some_picture(64, 64, 1), 64, 64);
    std::ofstream(folder.path / "half.png")
        .write(reinterpret_cast<const char*>(whole.data()), static_cast<std::streamsize>(whole.size() / 2));
    CHECK_THAT(bad("half.png"), contains("half.png"));
    std::filesystem::create_directory(folder.path / "folder.png");
    CHECK_THAT(bad("folder.png"), contains("not a file"));
}
