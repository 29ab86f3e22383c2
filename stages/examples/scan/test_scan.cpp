// Tests source and sink, one after the other, within this process: no supervisor, no rings.

#include <unistd.h>

#include <carousel/testing.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "scan_sink.hpp"
#include "scan_source.hpp"

namespace {

namespace fs = std::filesystem;

int failures = 0;
void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    ++failures;
}

/// Returns the largest distance, in x and y, of any of the source's points from the origin.
float farthest(carousel::testing::chain& c) {
    const std::vector<float> at = c.read<float>("source", "points");
    float most = 0;
    for (std::size_t k = 0; k < at.size(); k += 3) most = std::fmax(most, std::hypot(at[k], at[k + 1]));
    return most;
}

void check_frames(const fs::path& folder) {
    carousel::testing::chain c({.runtime_directory = folder.string(), .output_directory = folder.string()});
    c.add("source", std::make_unique<scan_source>(), R"({"points": 100})");
    c.add("sink", std::make_unique<scan_sink>(), R"({"files": true})", {"source"});
    c.prepare();
    c.run(0);
    const std::vector<float> first = c.read<float>("source", "points");
    check(first.size() == 300, "each point has three coordinates");
    check(std::fabs(farthest(c) - 5) < 0.01F, "the farthest point is at the initial range");
    c.run(1, scan_parameters{.range = 20});
    check(std::fabs(farthest(c) - 20) < 0.04F, "a changed range applies from its frame on");
    c.run(0);
    check(c.read<float>("source", "points") == first, "the same frame again has the same points");

    std::ifstream file(folder / "points-000001.xyz");
    float x = 0, y = 0, z = 0, strength = 0;
    file >> x >> y >> z >> strength;
    check(bool(file) && std::fabs(std::hypot(x, y) - 20) < 0.04F, "the sink has written a file per frame");

    // In a run, process() of the next frames is called before finish() of this one.
    c.run(1);
    const auto alone = c.hash("sink", 0), alone_too = c.hash("sink", 1);
    c.run_in_flight(0, 2);
    check(alone != alone_too && c.hash("sink", 0) == alone && c.hash("sink", 1) == alone_too,
          "frames in flight do not mix");
}

void check_refusal() {
    carousel::testing::chain c({});
    c.provide("a picture", carousel::image_format(4, 4));
    try {
        c.add("sink", std::make_unique<scan_sink>(), "{}", {"a picture"});
        check(false, "a picture is refused");
    } catch (const carousel::config_error& e) {
        check(std::string(e.what()).find("example.scan") != std::string::npos,
              "the refusal names what is expected");
    }
}

}  // namespace

int main() try {
    const fs::path folder = fs::temp_directory_path() / ("carousel-scan-" + std::to_string(::getpid()));
    fs::create_directory(folder);
    check_frames(folder);
    check_refusal();
    fs::remove_all(folder);
    return failures == 0 ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
