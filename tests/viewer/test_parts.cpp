// The viewer's plain parts: camera, settings, numbers, axes.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/catch.hpp"
#include "viewer/session/camera.hpp"
#include "viewer/session/settings.hpp"
#include "viewer/ui/plot.hpp"
#include "viewer/ui/ui.hpp"

using namespace carousel;
using namespace carousel::viewer;

namespace {
struct folder {
    std::filesystem::path path;
    folder() {
        char name[] = "/tmp/carousel-viewer-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~folder() { std::filesystem::remove_all(path); }
};
}  // namespace

TEST_CASE("a camera is converted to angles and back to the same position") {
    viewer::camera c;
    for (const f32 x : {-3.0F, 0.5F, 2.0F})
        for (const f32 y : {-1.5F, 0.0F, 1.0F}) {
            c.eye[0] = x;
            c.eye[1] = y;
            c.eye[2] = 1.25F;
            viewer::camera again = c;
            place_camera(orbit_of(c), again);
            for (int k = 0; k < 3; ++k) CHECK(std::abs(again.eye[k] - c.eye[k]) < 1e-4F);
        }
}

TEST_CASE("the camera never reaches the pole or its target, and survives NaN and infinity") {
    orbit o;
    for (int k = 0; k < 100; ++k) turn(o, 0.3F, 0.5F);
    CHECK(o.pitch < 1.5708F);
    for (int k = 0; k < 300; ++k) dolly(o, 3);
    CHECK(o.distance > 0.1F);
    for (int k = 0; k < 300; ++k) dolly(o, -3);
    CHECK(o.distance < 100);
    viewer::camera c;
    c.eye[0] = std::nanf("");
    c.target[1] = INFINITY;
    place_camera(orbit_of(c), c);
    for (int k = 0; k < 3; ++k) CHECK(std::isfinite(c.eye[k]));
    f32 light[3] = {0, 0, 0};
    place_direction(angles_of(light), light);
    CHECK(light[2] == 1);
}

TEST_CASE("a drag to the right turns the scene to the right, and moving keeps the distance") {
    orbit o;
    viewer::camera c;
    turn(o, 0.1F, 0);
    place_camera(o, c);
    CHECK(c.eye[0] < 0);  // the eye goes left
    const f32 before = o.distance;
    shift(o, 0.2F, 0.1F, c.fov_y);
    CHECK(o.distance == before);
    CHECK(o.target[1] > 0);
}

TEST_CASE("settings come back as they were kept") {
    const folder f;
    const std::string path = (f.path / "deep" / "viewer.ini").string();
    settings s;
    s.dark = false;
    s.main_split = 0.25F;
    s.right_splits = {0.2F, 0.4F, 0.6F};
    s.plot_span_s = 30;
    CHECK(save_settings(path, s).empty());
    CHECK(load_settings(path) == s);
    std::size_t files = 0;
    for (const auto& e : std::filesystem::directory_iterator(f.path / "deep")) files += e.exists() ? 1 : 0;
    CHECK(files == 1);  // no temporary file stays
}

TEST_CASE("settings that can't be read keep their defaults, and values stay within bounds") {
    const folder f;
    const std::string path = (f.path / "viewer.ini").string();
    CHECK(load_settings(path) == settings{});
    std::ofstream(path) << "main_split=nan\nleft_split=7\nright_split_0=0.9\nright_split_1=0."
                           "1\ngarbage\nwidth=-5\ntimeline_ms=abc\n\xff\xfe=1\n";
    const settings s = load_settings(path);
    CHECK(s.main_split == settings{}.main_split);
    CHECK(s.left_split == 0.9F);
    CHECK(s.right_splits[0] <= s.right_splits[1]);
    CHECK(s.width == 320);
    CHECK(s.timeline_ms == settings{}.timeline_ms);
}

TEST_CASE("settings that can't be written are a sentence, and the old ones stay") {
    const folder f;
    std::ofstream(f.path / "file") << "x";
    CHECK_THAT(save_settings((f.path / "file" / "viewer.ini").string(), {}),
               test::contains("keeping the layout"));
}

TEST_CASE("settings through a symbolic link are kept in the link's target, and the link stays") {
    const folder f;
    std::filesystem::create_symlink("mine.ini", f.path / "viewer.ini");
    REQUIRE(save_settings((f.path / "viewer.ini").string(), {}).empty());
    CHECK(std::filesystem::is_symlink(f.path / "viewer.ini"));
    CHECK(std::filesystem::file_size(f.path / "mine.ini") > 0);
}

TEST_CASE("a viewer killed while saving its settings leaves complete ones and no lasting litter") {
    const folder f;
    const std::string path = (f.path / "viewer.ini").string();
    settings dark, light;
    light.dark = false;
    light.plot_span_s = 30;
    light.main_split = 0.25F;
    REQUIRE(save_settings(path, dark).empty());
    int dark_ones = 0, light_ones = 0;
    for (int round = 0; round < 40; ++round) {
        const pid_t child = ::fork();
        if (child == 0)
            for (;;) {
                (void)save_settings(path, light);
                (void)save_settings(path, dark);
            }
        ::usleep(static_cast<useconds_t>(500 + round * 137));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        const settings found = load_settings(path);
        ++(found == dark ? dark_ones : light_ones);
        REQUIRE((found == dark || found == light));
    }
    CHECK(dark_ones + light_ones == 40);
    REQUIRE(save_settings(path, dark).empty());
    std::size_t files = 0;
    for (const auto& e : std::filesystem::directory_iterator(f.path)) files += e.exists() ? 1 : 0;
    CHECK(files == 1);
}

TEST_CASE("a plot shows the value nearest to the mouse, and no value without data") {
    const f32 none = std::numeric_limits<f32>::quiet_NaN();
    const plot_line l{"fragment", 0, {{-10, 5}, {-9.9F, 6}, {-9.8F, none}, {-3, 7}, {-2.9F, 8}}};
    CHECK(value_at(l, -9.96, 1) == 5);
    CHECK(value_at(l, -9.94, 1) == 6);
    CHECK_FALSE(value_at(l, -9.8, 1));  // polled, without a frame
    CHECK_FALSE(value_at(l, -6, 1));    // no client polls
    CHECK_FALSE(value_at(l, -60, 1));   // before the first poll
    CHECK(value_at(l, -60, 0) == std::nullopt);
    CHECK(value_at(l, -2.5, 1) == 8);
    CHECK_FALSE(value_at(l, -1, 1));
    CHECK_FALSE(value_at(plot_line{}, 0, 1));
    CHECK(value_at(l, -5, 0) == 7);  // bars: from the first to the last
}

TEST_CASE("ticks are round and few") {
    CHECK(tick_step(100, 5) == 20);
    CHECK(tick_step(0.37, 4) == test::near(0.1));
    CHECK(tick_step(61, 3) == 50);
    CHECK(tick_step(0, 3) == 1);
    CHECK(tick_step(std::nan(""), 3) == 1);
}

TEST_CASE("numbers have three significant digits, and an unknown value is a dash") {
    CHECK(ui::number(59.83) == "59.8");
    CHECK(ui::number(1234.4) == "1234");
    CHECK(ui::number(0.034) == "0.03");
    CHECK(ui::number(1, false) == "-");
    CHECK(ui::number(std::nan("")) == "-");
    CHECK(ui::duration(75) == "1 min 15 s");
    CHECK(ui::duration(7260) == "2 h 01 min");
    CHECK(ui::bytes(3'670'016) == "3.50 MiB");
}
