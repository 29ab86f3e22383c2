// The arithmetic of `carousel bench pipeline`, on data with a known answer.
#include <cmath>
#include <random>

#include "bench/pipeline_bench.hpp"
#include "bench/statistics.hpp"
#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::bench;

namespace {
bool near(f64 a, f64 b, f64 by = 1e-9) { return std::abs(a - b) <= by; }
}  // namespace

TEST_CASE("The median of an even number of runs is between the two middle ones, in any order") {
    REQUIRE(median_of({}) == 0);
    REQUIRE(median_of({7}) == 7);
    REQUIRE(median_of({9, 1, 5}) == 5);
    REQUIRE(median_of({4, 1, 100, 2}) == 3);
    const spread s = spread_of({3, 1, 2});
    REQUIRE((s.median == 2 && s.least == 1 && s.most == 3));
}

TEST_CASE("A quantile of counts lies in the range that holds it, in proportion") {
    const std::vector<counted_range> counts = {{0, 10, 50}, {10, 20, 40}, {40, 80, 10}};
    REQUIRE(quantile_of({}, 0.5) == 0);
    REQUIRE(near(quantile_of(counts, 0.5), 10));
    REQUIRE(near(quantile_of(counts, 0.25), 5));
    REQUIRE(near(quantile_of(counts, 0.7), 15));
    REQUIRE(near(quantile_of(counts, 0.99), 76));
    REQUIRE(near(quantile_of(counts, 1), 80));
}

TEST_CASE("Only frames between two readings are counted: the slow first frames are in no figure") {
    const std::vector<counted_range> before = {{0, 1, 5}, {100, 200, 3}},
                                     after = {{0, 1, 95}, {1, 2, 10}, {100, 200, 3}};
    const auto window = added(before, after);
    REQUIRE(window == std::vector<counted_range>{{0, 1, 90}, {1, 2, 10}});
    REQUIRE(quantile_of(window, 0.99) < 2);
    REQUIRE(quantile_of(after, 0.99) > 100);
    REQUIRE(added(after, after).empty());
}

TEST_CASE("The paired interval is that of Student's t over the logarithms") {
    // Ratios e^0.01, e^0.02, e^0.03: mean 0.02, standard deviation 0.01; t(0.975, 2) = 4.302653.
    const std::vector<f64> a = {100, 200, 50},
                           b = {100 * std::exp(0.01), 200 * std::exp(0.02), 50 * std::exp(0.03)};
    const difference d = paired_difference(a, b);
    REQUIRE(d.known);
    const f64 half = 4.302652729911275 * 0.01 / std::sqrt(3.0);
    REQUIRE(near(d.percent, 100 * std::expm1(0.02), 1e-6));
    REQUIRE(near(d.low, 100 * std::expm1(0.02 - half), 1e-6));
    REQUIRE(near(d.high, 100 * std::expm1(0.02 + half), 1e-6));
}

TEST_CASE("Noise that hits both builds of a round alike cancels out") {
    std::vector<f64> a, b;
    for (const f64 machine : {100.0, 60.0, 140.0, 80.0, 120.0})
        a.push_back(machine), b.push_back(machine * 0.95);
    const difference d = paired_difference(a, b);
    REQUIRE(near(d.percent, -5, 1e-6));
    REQUIRE((d.low > -5.01 && d.high < -4.99));
    REQUIRE(verdict_on_rate(d, 0.1) == "B is 5.0 % slower, 95 %: 5.0 to 5.0");
    REQUIRE(verdict_on_rate(paired_difference(b, a), 0.1) == "B is 5.3 % faster, 95 %: 5.3 to 5.3");
}

TEST_CASE("The interval holds the true difference in about 95 of 100 measurements") {
    std::mt19937_64 random(90210);
    std::normal_distribution<f64> noise(0, 0.08);
    int held = 0;
    constexpr int times = 4000;
    for (int k = 0; k < times; ++k) {
        std::vector<f64> a, b;
        for (int round = 0; round < 5; ++round) a.push_back(100), b.push_back(103 * std::exp(noise(random)));
        const difference d = paired_difference(a, b);
        held += d.low <= 3 && d.high >= 3 ? 1 : 0;
    }
    CAPTURE(held);
    REQUIRE((held > 0.935 * times && held < 0.965 * times));
}

TEST_CASE("Equal rates in turns are no difference, and neither is a difference of one frame") {
    const std::vector<f64> a = {101, 99, 100, 102, 98}, b = {99, 101, 102, 98, 100};
    REQUIRE(verdict_on_rate(paired_difference(a, b), 0).starts_with("no difference beyond noise ("));
    const difference exact =
        paired_difference(std::vector<f64>{100, 100, 100}, std::vector<f64>{100.2, 100.2, 100.2});
    REQUIRE(exact.beyond_noise(0.1));
    REQUIRE_FALSE(exact.beyond_noise(0.5));
    REQUIRE_FALSE(paired_difference(std::vector<f64>{100}, std::vector<f64>{50}).known);
    REQUIRE_FALSE(paired_difference(std::vector<f64>{1, 0}, std::vector<f64>{1, 1}).known);
    REQUIRE(verdict_on_rate({}, 0).find("two rounds") != std::string::npos);
}

TEST_CASE("A poll reads the output of ps, and an older ps has no counts") {
    const sample now = read_sample(R"({"pipeline": {"pid": 7, "frames": 12, "uptime_s": 1.5}, "stages": [
        {"name": "vertex", "instance": 0, "end_to_end": null},
        {"name": "display", "instance": 0, "end_to_end": [[0, 1, 5], [2, 3, 7]]},
        {"name": "display", "instance": 1, "end_to_end": [[0, 1, 5], [2, 3, 7]]}]})");
    REQUIRE((now.supervisor_pid == 7 && now.frames == 12 && now.uptime_s == 1.5 && now.counts_latency));
    REQUIRE(now.latencies == std::vector<std::vector<counted_range>>{{{0, 1, 5}, {2, 3, 7}}});
    const sample old = read_sample(
        R"({"pipeline": {"pid": 7, "frames": 12, "uptime_s": 1.5}, "stages": [{"name": "display"}]})");
    REQUIRE((!old.counts_latency && old.latencies.empty() && !old.tries));
    for (const auto& [reach, tries] : {std::pair{"trying", true}, {"mapping", false}, {"copy", false}})
        REQUIRE(read_sample(std::string(R"({"pipeline": {"pid": 7, "frames": 12, "uptime_s": 1.5}, "stages": [
            {"name": "vertex", "reach": null}, {"name": "fragment", "reach": ")") +
                            reach + "\"}]}")
                    .tries == tries);
    REQUIRE_THROWS(read_sample("{}"));
    REQUIRE_THROWS(read_sample(""));
}

TEST_CASE("A build is a build folder or an installed prefix") {
    const carousel::scratch_folder folder;
    REQUIRE_THROWS_WITH(programs_of(folder.path.string()),
                        test::contains("contains the program \"carousel\""));
}

TEST_CASE("The table ends with its cells and verdicts, an unmeasured GPU is left out") {
    pipeline_bench_result r;
    r.options.file = "demo.toml";
    r.builds = {"/a", "/b"};
    r.cells = {{"process", picture_size{64, 36}, std::nullopt, false, {}}};
    for (const f64 rate : {100.0, 90.0}) {
        auto& runs = r.cells[0].runs.emplace_back();
        for (int k = 0; k < 3; ++k) runs.push_back({rate, 1, 2, 0, 0, 3, 4096, 8192, -1, true, 500, 5});
    }
    const std::string text = table_of(r);
    CAPTURE(text);
    REQUIRE(text.ends_with("B is 10.0 % slower, 95 %: 10.0 to 10.0\n"));
    REQUIRE(text.find("GPU") == std::string::npos);
    REQUIRE(near(resolution_percent(r.cells[0]), 0.2));
    REQUIRE(json_of(r).find("\"gpu_bytes\": null") != std::string::npos);
}

TEST_CASE("A cell is compared with only the kernels at its size: share of rate, multiple of time") {
    pipeline_bench_result r;
    r.options.file = "demo.toml", r.options.rounds = 2, r.options.lone = true;
    r.builds = {"/a"};
    r.bounds = {{picture_size{64, 36}, {{0.5, 1000, 2, 1}, {0.5, 2000, 2, 2}}}, {picture_size{128, 72}, {}}};
    for (const bool lone : {false, true}) {
        bench_cell& c =
            r.cells.emplace_back(bench_cell{"process", picture_size{64, 36}, forced_depth{3, 4}, lone, {{}}});
        for (const f64 rate : {900.0, 1800.0})
            c.runs[0].push_back({rate, lone ? 1.0 : 9.0, 2, 0, 0, 3, 4096, 8192, -1, true, 500, 5});
    }
    const std::string text = table_of(r);
    CAPTURE(text);
    REQUIRE_THAT(text, test::contains("0.90 of the kernels' 1500 frames/s"));
    REQUIRE_THAT(text, test::contains("2.00 of the kernels' 0.5 ms"));
    REQUIRE_THAT(text, test::contains("process, 64x36, 3 in flight, windows of 4, single frames\n"));
    const std::string json = json_of(r);
    REQUIRE_THAT(json, test::contains("\"load\": \"lone\"") && test::contains("\"in_flight\": 3"));
    r.cells[0].size = r.cells[1].size = picture_size{128, 72};  // whose bound was not measured
    REQUIRE_THAT(table_of(r), !test::contains("of the kernels'"));
}

TEST_CASE("The plot of a pipeline bench has a curve per mode and depth, and the kernels dashed") {
    pipeline_bench_result r;
    r.options.file = "some/demo.toml", r.options.rounds = 1;
    r.bounds = {{picture_size{64, 36}, {{0.5, 1000, 2, 1}}}};
    const run_figures run{900, 1, 2, 0, 0, 3, 4096, 8192, -1, true, 500, 5};
    for (const u32 depth : {1U, 3U})
        r.cells.push_back({"mps", picture_size{64, 36}, forced_depth{depth, 4}, false, {{run}}});
    const std::string by_size = plot_of(r);
    REQUIRE_THAT(by_size, test::contains(">demo.toml: as fast as possible<") && test::contains(">mps 3/4<"));
    REQUIRE_THAT(by_size, test::contains("stroke-dasharray") && test::contains("pixels of a picture"));
    r.options.depths = {forced_depth{1, 4}, forced_depth{3, 4}};
    r.options.lone = true;
    const std::string by_depth = plot_of(r);
    REQUIRE_THAT(by_depth, test::contains("frames in flight") && test::contains(">mps 64x36<"));
    REQUIRE_THAT(by_depth, test::contains("a single frame"));
}
