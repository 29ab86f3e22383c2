// The data of frames, read without a lease: for reports and traces.
#include "telemetry/frame_facts.hpp"

#include "core/json.hpp"
#include "frame/metadata.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/rig.hpp"

using namespace carousel;
using namespace carousel::telemetry;
using nlohmann::json;

namespace {

/// source -> sink, whose frames bear their number.
struct numbered_frames {
    numbered_frames() {
        r.sit_all();
        r.work = [this](u32 seat, const ring::job& j) {
            if (seat != 0) return;
            shm::frame_header& h = r.block().frames[0].header[j.output[0].index];
            h.metadata_bytes = 0;
            REQUIRE(ring::set_metadata(h.metadata, h.metadata_bytes, "number", j.ring_sequence) ==
                    ring::metadata_change::done);
        };
    }
    /// Those that are seen, in the order of their numbers.
    [[nodiscard]] std::vector<u64> seen() const {
        std::vector<u64> out;
        for (u32 k = 0; k < shm::max_slots; ++k)
            if (const auto f = facts_in_passing(c, 0, k)) {
                out.push_back(f->ring_sequence);
                CHECK(metadata_json(f->metadata) == json{{"number", f->ring_sequence}});
            }
        std::sort(out.begin(), out.end());
        return out;
    }
    test::rig r{test::chain_of(2)};
    const shm::control_block& c = r.block();
};

}  // namespace

TEST_CASE("frames that are ready are read, those that are being written or are free are not") {
    numbered_frames f;
    CHECK(f.seen().empty());
    REQUIRE(f.r.pass(0));
    REQUIRE(f.r.pass(0));
    REQUIRE(f.r.begin(0));
    CHECK(f.seen() == std::vector<u64>{0, 1});
    REQUIRE(f.r.pass(1));
    CHECK(f.seen() == std::vector<u64>{1});
    CHECK_FALSE(facts_in_passing(f.c, 0, shm::max_slots));
    CHECK_FALSE(facts_in_passing(f.c, 7, 0));
}

TEST_CASE("the last frame is the newest delivered one, not one started after the end") {
    numbered_frames f;
    CHECK_FALSE(last_facts(f.c, 0));
    for (const u32 seat : {0U, 1U})
        for (int k = 0; k < 3; ++k) REQUIRE(f.r.pass(seat));
    REQUIRE(f.r.pass(0));   // into the buffer of frame 0
    REQUIRE(f.r.begin(0));  // and of frame 1
    const auto last = last_facts(f.c, 0);
    REQUIRE(last);
    CHECK(last->ring_sequence == 2);
    CHECK(metadata_json(last->metadata) == json{{"number", 2}});
    CHECK_FALSE(last_facts(f.c, 1));
}

TEST_CASE("metadata of each kind, used extents and empty metadata are printed as JSON") {
    std::byte room[shm::max_metadata_bytes];
    u32 used = 0;
    const std::byte raw[3] = {};
    for (const auto& [key, value] :
         std::vector<std::pair<const char*, ring::metadata_value>>{{"truth", true},
                                                                   {"whole", i64{-7}},
                                                                   {"natural", u64{7}},
                                                                   {"real", 0.5},
                                                                   {"text", "left"},
                                                                   {"raw", raw}})
        REQUIRE(ring::set_metadata(room, used, key, value) == ring::metadata_change::done);
    CHECK(metadata_json(std::span(room).first(used)) == json{{"truth", true},
                                                             {"whole", -7},
                                                             {"natural", 7},
                                                             {"real", 0.5},
                                                             {"text", "left"},
                                                             {"raw", {{"bytes", 3}}}});
    CHECK(metadata_json({}) == json::object());
    ring::frame_format f{"a", {{"n", ring::element::f32_, {40, 3}}, {"m", ring::element::f32_, {5}}}, {}};
    (void)f.lay_out();
    shm::used_extents extents{};
    CHECK(used_json(f, extents) == json::object());
    ring::set_used(extents, f, "n", std::vector<u64>{7});
    CHECK(used_json(f, extents) == json{{"n", {7, 3}}});
    extents.of[0][0] = 99;  // of a process that is broken
    CHECK(used_json(f, extents) == json{{"n", {40, 3}}});
}
