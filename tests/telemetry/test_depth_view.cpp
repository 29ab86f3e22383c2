#include "telemetry/depth.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::telemetry;

TEST_CASE("a depth is packed into its word and unpacked, and a value that is too large is clamped") {
    const depth_view d{14, 16, depth_reason::turns, 4, 66'000};
    CHECK(depth_view::of(d.pack()) == d);
    for (const reach_state reach :
         {reach_state::none, reach_state::trying, reach_state::mapping, reach_state::copy}) {
        const depth_view played{14, 16, depth_reason::finishing, 4, 66'000, true, reach};
        CHECK(depth_view::of(played.pack()) == played);
    }
    const depth_view large{1000, 300, depth_reason::hops, 999, ~0U};
    const depth_view back = depth_view::of(large.pack());
    CHECK(back.lanes == 255);
    CHECK(back.window == 255);
    CHECK(back.why == depth_reason::hops);
    CHECK(back.contexts == 255);
    CHECK(back.work_ns == ~0U);
}

TEST_CASE("each reason has its own text, and an unset or unknown word has no text") {
    CHECK(depth_view::of(0).reason().empty());
    CHECK(depth_view::of(~u64{0}).reason().empty());
    CHECK(depth_view{14, 16, depth_reason::turns, 4, 66'000}.reason() ==
          "4 contexts take turns on the GPU, with 0.066 ms per frame over all contexts");
    CHECK(depth_view{5, 7, depth_reason::hops, 1, 150'000}.reason() ==
          "0.150 ms per frame, which hides the latency to the next process");
    std::vector<std::string> seen;
    for (int k = 1; k <= 6; ++k) {
        depth_view d;
        d.why = static_cast<depth_reason>(k);
        const std::string text = d.reason();
        CHECK_FALSE(text.empty());
        CHECK(std::find(seen.begin(), seen.end(), text) == seen.end());
        seen.push_back(text);
    }
}
