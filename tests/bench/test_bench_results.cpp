// Quantiles, bytes, and the plot of synthetic results.

#include "bench/raster.hpp"
#include "core/json.hpp"
#include "kernels/body/shade.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::bench;

namespace {

u32 count(const std::string& text, const std::string& part) {
    u32 n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
}

bench_result two_cells() {
    bench_result r;
    r.device = "a <device> & \"more\"", r.scene = "bumpy-sphere", r.frames = 3, r.instances = 1,
    r.bandwidth = 1e9;
    r.peer_renderer = "theirs", r.peer_version = "4.5", r.peer_timing = "wall";
    for (const u32 triangles : {1000U, 100'000U}) {
        cell_result c;
        c.triangles = c.triangles_wanted = triangles;
        c.size = {640, 480};
        c.frame = {2.0, 3.0}, c.peer = {8.0, 9.0}, c.with_peer = true, c.ratio_to_peer = 0.25;
        c.bytes = {1'000'000, 1'500'000};
        r.cells.push_back(c);
    }
    return r;
}

}  // namespace

TEST_CASE("Median and 95th percentile are samples, for any order of the samples") {
    std::vector<f64> samples;
    for (int k = 100; k > 0; --k) samples.push_back(k);
    REQUIRE(quantiles_of(samples).median == 51);
    REQUIRE(quantiles_of(samples).p95 == 96);
    REQUIRE(quantiles_of({7}).median == 7);
    REQUIRE(quantiles_of({7}).p95 == 7);
}

TEST_CASE("Pictures differ where the mesh differs visibly, for any background") {
    constexpr u32 width = 4, height = 2, grey = 0xff808080U;
    std::vector<u32> ours(width * height), theirs(width * height, 0xff000000U);
    for (u32 i = 0; i < ours.size(); ++i) ours[i] = kernels::body::background(i % width, i / width, height);
    REQUIRE(share_unlike(ours, theirs, width, height) == 0);
    ours[0] = ours[1] = ours[2] = ours[3] = theirs[0] = theirs[1] = grey;
    theirs[2] = 0xff809080U;  // 16 off: still alike
    theirs[3] = 0xff809180U;
    REQUIRE(share_unlike(ours, theirs, width, height) == 0.25);
}

TEST_CASE("Ring and floor bytes are those of the filled planes") {
    // 64 + 96 + 4 listed, and the picture; the floor: bounds of two clusters, 60 of 150 triangles with their
    // share of the vertices, twice
    const kernels::mesh_counts mesh{100, 150, 1, 1};
    const frame_bytes b = bytes_of_frame(mesh, 1, 60, 10, 5);
    const u64 triangles = 64 + 96 + 240, picture = 200;
    REQUIRE(b.ring == triangles + picture);
    REQUIRE(b.floor == 2 * 48 + 2 * 40 * 12 + 60 * 4 + 60 * 12 + 2 * triangles + picture);
    REQUIRE(bytes_of_frame(mesh, 2, 60, 10, 5).ring == 64 + 2 * 96 + 240 + picture);
    // never more than the list holds
    REQUIRE(bytes_of_frame(mesh, 1, 9999, 10, 5).ring == 64 + 96 + 600 + picture);
}

TEST_CASE("The JSON has null for what was not measured, and the floor by its formula") {
    const nlohmann::json j = nlohmann::json::parse(json_of(two_cells()));
    const nlohmann::json& c = j.at("results").at(0);
    REQUIRE(c.at("raster_ms").is_null());
    REQUIRE(c.at("cpu_ms").is_null());
    REQUIRE(c.at("peer_cpu_ms").is_null());
    REQUIRE(c.at("floor_ms") == test::near(1.5));
    REQUIRE(c.at("fraction_of_floor") == test::near(0.75));
    REQUIRE(c.at("ratio_to_peer") == test::near(0.25));
}

TEST_CASE("The plot has a line and a legend a renderer, a dot a cell, and takes any name") {
    const std::string svg = plot_of(two_cells());
    REQUIRE(count(svg, "<polyline") == 2);
    REQUIRE(count(svg, "<circle") == 4);
    REQUIRE(count(svg, "Carousel 640x480") == 1);
    REQUIRE(count(svg, "OpenGL 640x480") == 1);
    REQUIRE(svg.find("a &lt;device&gt; &amp; &quot;more&quot;") != std::string::npos);
    REQUIRE(svg.find("ms per frame") != std::string::npos);
    REQUIRE(svg.find("nan") == std::string::npos);
    REQUIRE(svg.find("inf") == std::string::npos);
}

TEST_CASE("A plot of one cell has axes, too") {
    bench_result r = two_cells();
    r.cells.resize(1);
    const std::string svg = plot_of(r);
    REQUIRE(count(svg, "<circle") == 2);
    REQUIRE(svg.find("nan") == std::string::npos);
}
