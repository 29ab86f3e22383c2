// The pace of a recording that is played, by the times that its frames have when they are recorded again. The
// speed of the machine does not matter, only how early a frame may come at all.
#include <fmt/format.h>

#include <algorithm>

#include "tests/crash/number_run.hpp"
#include "tests/crash/recorded_frames.hpp"
#include "tests/crash/run_fixture.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;
using stages::frame_facts;

constexpr f64 longest_rest_ns = 5e8;  ///< a longer one is shortened: a frame has a deadline

/// Plays rec.mcap with these keys, and returns the frames of a recording of that run.
std::vector<frame_facts> played_at(run_fixture& run, const std::string& name, const std::string& keys) {
    const std::string text = fmt::format(
        "[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\n[[stage]]\nname = \"tape\"\nrun = "
        "\"carousel-replay\"\nfile = \"rec.mcap\"\n{}[link.tape]\nrecord = true\n",
        name, keys);
    run.start(run.pipeline(name, text + number_stage("sink", "tape", "sink = true\ncarries = true\n")));
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(run.report()["restarts"] == 0);
    CHECK(run.report()["dead_letter_count"] == 0);
    const recorded_frames again = read_recording(run.path(name + ".mcap"));
    CHECK(is_whole(again));
    return again.facts;
}

/// The earliest time after the first frame of `played` at which the k-th may begin: the time at which its
/// predecessor is due.
f64 earliest_ns(const std::vector<frame_facts>& recorded, std::size_t k, f64 rate) {
    f64 sum = 0;
    for (std::size_t j = 1; j < k; ++j) {
        const auto rest = static_cast<f64>(recorded[j].born_ns - recorded[j - 1].born_ns);
        sum += std::min(rest / rate, longest_rest_ns);
    }
    return sum;
}

bool none_is_early(const std::vector<frame_facts>& recorded, const std::vector<frame_facts>& played,
                   f64 rate) {
    for (std::size_t k = 1; k < played.size(); ++k)
        if (static_cast<f64>(played[k].born_ns - played[0].born_ns) + 1e4 < earliest_ns(recorded, k, rate))
            return false;
    return true;
}

bool carry_the_same(const std::vector<frame_facts>& recorded, const std::vector<frame_facts>& played) {
    for (std::size_t k = 0; k < played.size(); ++k)
        if (played[k].capture_ns != recorded[k].capture_ns || played[k].time_s != recorded[k].time_s ||
            played[k].metadata != recorded[k].metadata)
            return false;
    return true;
}

f64 span_ns(const std::vector<frame_facts>& frames) {
    return static_cast<f64>(frames.back().born_ns - frames.front().born_ns);
}

}  // namespace

TEST_CASE("a recording is played at a multiple of its original rate, and frames keep their data") {
    constexpr const char* carries = "carries = true\n";
    run_fixture run;
    run.start(run.pipeline("rec", number_pipeline("rec", "fps = 25\n", carries, carries, carries) +
                                      "[link.middle]\nrecord = true\n"),
              {"--frames", "25"});
    REQUIRE(run.wait() == 0);
    const std::vector<frame_facts> recorded = read_recording(run.path("rec.mcap")).facts;
    REQUIRE(recorded.size() == 25);

    const auto slow = played_at(run, "slow", "rate = 0.5\ncount = 12\n");
    REQUIRE(slow.size() == 12);
    CHECK(none_is_early(recorded, slow, 0.5));
    CHECK(carry_the_same(recorded, slow));

    const auto fast = played_at(run, "fast", "rate = 10.0\n");
    REQUIRE(fast.size() == 25);
    CHECK(none_is_early(recorded, fast, 10.0));
    CHECK(span_ns(fast) < span_ns(recorded) / 2);  // five times the tenth that it takes
    CHECK(carry_the_same(recorded, fast));

    // 4 s from frame to frame: longer than a stage may take for one
    const auto slowest = played_at(run, "slowest", "rate = 0.01\ncount = 3\n");
    REQUIRE(slowest.size() == 3);
    CHECK(none_is_early(recorded, slowest, 0.01));
}
