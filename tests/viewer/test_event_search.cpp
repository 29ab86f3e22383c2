// The search in the events: the words that it finds, and the field in the panel.

#include "tests/support/catch.hpp"
#include "tests/viewer/canvas.hpp"
#include "tests/viewer/models.hpp"
#include "viewer/panels/event_filter.hpp"

using namespace carousel;
using test::canvas;
using test::watched;
using viewer::event_matches;

namespace {

/// Types into the field that has the focus.
void type_text(canvas& s, viewer::model& m, const char* text) {
    ImGui::GetIO().AddInputCharactersUTF8(text);
    s.draw(m, 2);
}

}  // namespace

TEST_CASE("a search finds words in the text and in the stage's name, without regard to case") {
    CHECK(event_matches("", "", ""));
    CHECK(event_matches("   ", "vertex", "died"));
    CHECK(event_matches("SIGKILL", "", "fragment (pid 12) died: signal 9 (SIGKILL)"));
    CHECK(event_matches("sigkill", "", "fragment (pid 12) died: signal 9 (SIGKILL)"));
    CHECK(event_matches("Frag", "fragment", "its process has ended"));
    CHECK(event_matches("ended  frag", "fragment", "its process has ended"));
    CHECK_FALSE(event_matches("ended vertex", "fragment", "its process has ended"));
    CHECK_FALSE(event_matches("processed", "fragment", "its process has ended"));
    CHECK(event_matches("größe", "", "die größe"));
    CHECK_FALSE(event_matches("GRÖSSE", "", "die größe"));  // case is ignored for ASCII only
}

TEST_CASE("the events panel shows how many events match, and Esc clears the search") {
    watched w(test::demo_plan(64, 64));
    w.r.sit_all();
    w.run(5);
    w.m.events.clear();
    for (int k = 0; k < 40; ++k)
        w.m.events.add({w.m.now_ns, telemetry::event_kind::info, k % 4 == 0 ? 1U : shm::none,
                        "something happened: number " + std::to_string(k)});
    for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{700, 500}}) {  // columns and tabs
        INFO(width << " x " << height);
        canvas s(false, width, height);
        s.draw(w.m);
        for (const viewer::key_press key : {viewer::key_press{'F', true, false}, {'/', false, false}}) {
            s.screen.on_key(w.m, {'D', false, false});  // in the columns another panel is in front
            s.screen.on_key(w.m, key);
            s.draw(w.m, 6);  // a tab is shown in the next frame, and the focus moves after that
            REQUIRE(canvas::find("events.search") != nullptr);
            CHECK(canvas::find("events.count.40 of 40") != nullptr);
            CHECK(ImGui::GetIO().WantTextInput);
            type_text(s, w.m, "VERTEX");
            CHECK(canvas::find("events.count.10 of 40") != nullptr);
            type_text(s, w.m, " 36");
            CHECK(canvas::find("events.count.1 of 40") != nullptr);
            CHECK(canvas::find("events.none") == nullptr);
            type_text(s, w.m, "x");
            CHECK(canvas::find("events.count.0 of 40") != nullptr);
            CHECK(canvas::find("events.none") != nullptr);
            s.screen.on_key(w.m, {viewer::key::escape, false, false});
            s.draw(w.m, 4);
            CHECK(canvas::find("events.count.40 of 40") != nullptr);
            CHECK_FALSE(ImGui::GetIO().WantTextInput);
            CHECK(canvas::sane());
        }
    }
}
