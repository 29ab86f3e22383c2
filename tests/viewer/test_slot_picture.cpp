// The picture of one slot: the bytes are those of the frame that was in it, or the reason is reported.

#include <algorithm>
#include <cstring>

#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"
#include "tests/viewer/watcher.hpp"

using namespace carousel;
using namespace carousel::viewer;
using test::canvas;
using test::fake_run;
using test::place_of_runs;
using test::watched;
using test::watcher;

namespace {

constexpr u32 slot_width = 320, slot_height = 180;

void choose_slot(model& m, u32 slot) {
    m.slot_picture.wanted = slot_choice{};
    m.slot_picture.wanted->ring = "fragment";
    m.slot_picture.wanted->slot = slot;
    m.slot_picture.requested = true;
}

u32 latest_members(const model& m) {
    return static_cast<u32>(
        std::count_if(m.snap.links[2].groups.begin(), m.snap.links[2].groups.end(),
                      [](const telemetry::group_view& g) { return g.state == ring::group_state::latest; }));
}

}  // namespace

TEST_CASE("the picture of a slot equals the frame that it names, byte for byte") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    const u32 slots = static_cast<u32>(w.m.snap.links[2].slots.size());
    int pictures = 0;
    for (u32 k = 0; k < 4 * slots; ++k) {
        choose_slot(w.m, k % slots);
        const u64 before = w.m.slot_picture.version;
        REQUIRE(w.until([&] { return w.m.slot_picture.version > before; }));
        const slot_sample& s = w.m.slot_picture.sample;
        INFO(s.text);
        CHECK(s.of.slot == k % slots);
        CHECK(latest_members(w.m) <= 1);  // the image's own tap: a slot's picture takes no place
        if (!s.whole) continue;           // the slot is seldom used
        ++pictures;
        REQUIRE(s.rgba.size() == slot_width * slot_height * 4);
        std::vector<u32> expected(slot_width * slot_height);
        for (u32 y = 0; y < slot_height; ++y)
            for (u32 x = 0; x < slot_width; ++x)
                expected[y * slot_width + x] =
                    fake_run::color_of(s.about.ring_sequence, x, y, slot_width, slot_height);
        CHECK(std::memcmp(expected.data(), s.rgba.data(), s.rgba.size()) == 0);
    }
    CHECK(pictures >= 4);
    CHECK(run.commands().empty());
}

TEST_CASE("a slot without a frame, and a slot that the ring does not have, are reported") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
    choose_slot(w.m, 1000);
    REQUIRE(w.until([&] { return w.m.slot_picture.version == 1; }));
    CHECK_FALSE(w.m.slot_picture.sample.whole);
    CHECK_THAT(w.m.slot_picture.sample.text, test::contains("slot 1000: its word"));
    run.end_with(0);
    REQUIRE(w.until([&] { return w.m.phase == run_phase::ended; }));
    choose_slot(w.m, 0);
    REQUIRE(w.until([&] { return w.m.slot_picture.version == 2; }));
    CHECK_THAT(w.m.slot_picture.sample.text, test::contains("no run is watched"));
}

TEST_CASE("a sentence describes every state of a slot from which no frame was copied") {
    carousel::session::slot_stamp s;
    using carousel::session::slot_content;
    const auto text = [&](slot_content content, u32 reused = 0) {
        s.content = content;
        s.facts.ring_sequence = 12;
        return describe_slot(s, 3, reused);
    };
    s.word = ring::slot_word{1, 0, 0, ring::slot_state::free}.pack();
    CHECK(text(slot_content::free) == "slot 3 is free: frame 12 was the last one in it");
    s.word = 0;
    CHECK(text(slot_content::free) == "slot 3 is free: no frame has been in it");
    CHECK(text(slot_content::filling) == "slot 3 is being filled: its frame is complete after the commit");
    CHECK(text(slot_content::tombstone) == "slot 3 holds the tombstone of frame 12: it has no picture");
    CHECK_THAT(text(slot_content::quarantined), test::contains("its writer died"));
    CHECK_THAT(text(slot_content::frame, 7), test::contains("was reused during each of 7 copies"));
    CHECK_THAT(text(slot_content::frame), test::contains("the frame is damaged"));
}

TEST_CASE("a click on a slot opens its window, and Esc closes it") {
    watched w(test::demo_plan(64, 64));
    w.r.sit_all();
    w.run(5);
    canvas s(false, 1280, 720);
    s.draw(w.m, 3);
    REQUIRE(s.click(w.m, "rings.slot.fragment.1"));
    REQUIRE(w.m.slot_picture.wanted.has_value());
    CHECK(w.m.slot_picture.wanted->ring == "fragment");
    CHECK(w.m.slot_picture.wanted->slot == 1);
    CHECK(w.m.slot_picture.requested);
    s.draw(w.m, 3);
    CHECK(canvas::find("slot.window") != nullptr);
    CHECK(canvas::find("slot.picture") == nullptr);
    w.m.slot_picture.sample.of = *w.m.slot_picture.wanted;
    w.m.slot_picture.sample.whole = true;
    w.m.slot_picture.sample.text = "frame 4 in slot 1";
    w.m.slot_picture.sample.about.width = w.m.slot_picture.sample.about.height = 64;
    w.m.slot_picture.sample.rgba.resize(64 * 64 * 4);
    s.draw(w.m, 3);
    CHECK(canvas::find("slot.picture") != nullptr);
    CHECK(canvas::sane());
    s.screen.on_key(w.m, {key::escape, false, false});
    s.draw(w.m, 2);
    CHECK(canvas::find("slot.window") == nullptr);
    CHECK_FALSE(w.m.slot_picture.wanted.has_value());
}
