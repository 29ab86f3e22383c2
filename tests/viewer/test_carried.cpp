// The data of a frame, as the viewer, the web UI and `top` show it.
#include "viewer/watch/picture_choice.hpp"

#include "core/clock.hpp"
#include "frame/metadata.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using viewer::carried_facts;

TEST_CASE("a frame's table has its metadata, its used extents and its capture age") {
    ring::frame_format format{"t", {{"boxes", ring::element::f32_, {50, 4}, {}, 0}}, {}};
    (void)format.lay_out();
    session::newest_frame::about frame;
    CHECK(viewer::carried_by(frame, format, 0).empty());
    CHECK(viewer::line_of({}).empty());
    std::byte room[shm::max_metadata_bytes];
    u32 used = 0;
    REQUIRE(ring::set_metadata(room, used, "exposure_ms", 3.5) == ring::metadata_change::done);
    REQUIRE(ring::set_metadata(room, used, "camera", std::string_view("left")) ==
            ring::metadata_change::done);
    frame.metadata.assign(room, room + used);
    ring::set_used(frame.used, format, "boxes", std::vector<u64>{7});
    frame.capture_ns = 100 * ns_per_ms;
    frame.clock = shm::capture_clock::live;
    const carried_facts facts = viewer::carried_by(frame, format, 112 * ns_per_ms + ns_per_ms / 2);
    CHECK(facts == carried_facts{{"exposure_ms", "3.5"},
                                 {"camera", "\"left\""},
                                 {"in use", "boxes 7 x 4 of 50 x 4"},
                                 {"captured", "12.5 ms ago"}});
    CHECK(viewer::line_of(facts) ==
          "exposure_ms 3.5 · camera \"left\" · in use boxes 7 x 4 of 50 x 4 · captured 12.5 ms ago");
    frame.clock = shm::capture_clock::recorded;  // the age of a recording is not a figure of this run
    frame.metadata.resize(used - 1);
    CHECK(viewer::carried_by(frame, format, 0) == carried_facts{{"exposure_ms", "3.5"},
                                                                {"metadata", "damaged from here on"},
                                                                {"in use", "boxes 7 x 4 of 50 x 4"}});
}

TEST_CASE("a frame's table has the sampled frames of its producer") {
    ring::frame_format format{"t", {{"boxes", ring::element::f32_, {50, 4}, {}, 0}}, {}};
    (void)format.lay_out();
    session::newest_frame::about frame;
    frame.sampled_frames = {12, shm::no_sampled_frame};
    CHECK(viewer::carried_by(frame, format, 0) == carried_facts{{"sampled inputs", "frame 12, none yet"}});
}
