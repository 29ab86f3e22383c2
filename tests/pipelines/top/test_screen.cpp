// The interactive screen of `carousel top`: its text for a size and a selection, and the effects of keys.

#include <fmt/format.h>

#include <algorithm>

#include "core/json.hpp"
#include "os/table.hpp"
#include "tests/support/catch.hpp"
#include "top/interaction.hpp"
#include "top/screen.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;
using mode = interaction::mode;
using kind = interaction::effect::kind;

namespace {

/// A chain of running stages s0, s1, ...: each has one instance and, except the last, a ring.
struct chain {
    telemetry::snapshot snap;
    telemetry::rates rates;
    std::deque<telemetry::run_event> events;
    explicit chain(u32 stages) {
        snap.pipeline = "chain";
        rates.span_s = 2;
        for (u32 k = 0; k < stages; ++k) {
            telemetry::stage_view& stage = snap.stages.emplace_back();
            stage.name = fmt::format("s{}", k);
            stage.first_seat = k;
            stage.seats = 1;
            if (k + 1 < stages) stage.outputs = {k};
            if (k > 0) stage.inputs = {k - 1};
            telemetry::seat_view& seat = snap.seats.emplace_back();
            seat.stage = k;
            seat.pid = 1000 + k;
            seat.state = ring::entry_state::live;
            rates.stages.emplace_back();
            if (k + 1 == stages) break;
            telemetry::link_view& link = snap.links.emplace_back();
            link.name = stage.name;
            link.slots.resize(6);
            link.groups.resize(1);
            link.groups[0].stage = k + 1;
            rates.links.emplace_back();
        }
    }
    [[nodiscard]] top_input input(std::size_t width, std::size_t rows) const {
        top_input in;
        in.snap = &snap;
        in.rates = &rates;
        in.events = &events;
        in.width = width;
        in.rows = rows;
        return in;
    }
};

/// The whole screen, one text with line ends.
std::string screen_of(const chain& c, interaction& ui, std::size_t width, std::size_t rows,
                      const std::vector<std::string>& text = {}) {
    top_input in = c.input(width, rows);
    ui.set_rows(stage_rows(in));
    const std::vector<std::string> footer = footer_lines(ui, false, width, rows);
    in.rows = rows - std::min(rows, footer.size());
    const std::vector<std::string> lines = with_footer(body_lines(in, ui, text), footer, rows);
    CHECK(lines.size() == rows);
    std::string all;
    for (const std::string& line : lines) {
        CHECK(width_of(line) <= width);
        all += line + "\n";
    }
    return all;
}

void press(interaction& ui, const std::string& keys) {
    for (const char key : keys) (void)ui.press(key);
}

interaction with_rows(const std::vector<stage_row>& rows) {
    interaction ui;
    ui.set_rows(rows);
    return ui;
}

}  // namespace

TEST_CASE("the selected stage of twenty is on the screen at any size, with its mark as text") {
    const chain c(20);
    for (const auto& [width, rows] :
         {std::pair<std::size_t, std::size_t>{80, 24}, {120, 40}, {40, 10}, {60, 7}}) {
        interaction ui;
        for (u32 k = 0; k < 20; ++k) {
            const std::string all = screen_of(c, ui, width, rows);
            INFO(all);
            CHECK_THAT(all, contains(fmt::format("\n> s{} ", k)));
            CHECK(std::count(all.begin(), all.end(), '>') == 1);
            CHECK_THAT(all, contains("STATE") && contains("q quit"));
            (void)ui.press(key_down);
        }
    }
}

TEST_CASE("a screen without room for all stages and rings states which it shows") {
    const chain c(20);
    interaction ui;
    (void)screen_of(c, ui, 80, 24);
    press(ui, "jjjjjjjjjj");
    const std::string all = screen_of(c, ui, 80, 24);
    INFO(all);
    CHECK_THAT(all,
               contains(" of 20\n") && contains("  stages ") && contains("  rings ") && contains(" of 19\n"));
    CHECK_THAT(all, contains("\ns10 "));  // the ring that the selected stage writes
    CHECK_THAT(screen_of(chain(4), ui, 80, 24), !contains(" of 4\n"));
}

TEST_CASE("the newest event is shown although the rings do not fit") {
    chain c(20);
    c.events.push_back({1, telemetry::event_kind::bad, 2, "s2 (pid 1002) died"});
    interaction ui;
    CHECK_THAT(screen_of(c, ui, 80, 24), contains("s2 (pid 1002) died"));
}

TEST_CASE("an action is requested only after y, for the stage that was selected when it was asked") {
    interaction ui = with_rows({{"a", "running", "11"}, {"b.1", "running", "12"}});
    (void)ui.press(key_down);
    CHECK(ui.press('r').what == kind::none);
    CHECK(ui.now() == mode::confirmation);
    CHECK(ui.prompt() == "restart b.1 (pid 12)? y/n");
    ui.set_rows({{"a", "running", "11"}});  // the row has gone
    const interaction::effect e = ui.press('y');
    CHECK(e.what == kind::command);
    CHECK(e.words == std::vector<std::string>{"restart", "b.1"});
    CHECK(ui.prompt() == "restart b.1 ...");
    ui.finish(true, "restarted b.1");
    CHECK(ui.prompt() == "restarted b.1");
    for (const int key : {int('n'), int('\n'), int('\x1b'), int(key_up), int('r')}) {
        (void)ui.press('x');
        CHECK(ui.press(key).what == kind::none);
        CHECK(ui.now() == mode::table);
        CHECK(ui.prompt() == "cancelled: kill a");
    }
}

TEST_CASE("while a command is outstanding no second one is requested") {
    interaction ui = with_rows({{"a", "running", "11"}});
    press(ui, "r");
    CHECK(ui.press('y').what == kind::command);
    press(ui, "x");
    CHECK(ui.now() == mode::table);
    CHECK(ui.failed());
    CHECK_THAT(ui.prompt(), contains("`restart a` has not returned yet"));
    press(ui, "sgain=2");
    CHECK(ui.press('\n').what == kind::none);
    CHECK(ui.failed());
    CHECK_THAT(ui.prompt(), contains("`restart a` has not returned yet"));
    ui.finish(false, "error: refused");
    CHECK(ui.failed());
    CHECK(ui.prompt() == "error: refused");
}

TEST_CASE("the offered actions follow the state of the stage") {
    interaction ui = with_rows({{"a", "stopped", "11"}});
    press(ui, "\n");
    CHECK_THAT(ui.prompt(), contains("a (stopped):") && contains("p continue") && contains("x kill"));
    press(ui, "p");
    CHECK(ui.prompt() == "cont a (pid 11)? y/n");
    CHECK(ui.press('y').words == std::vector<std::string>{"cont", "a"});
    ui = with_rows({{"a", "down", "-"}});
    press(ui, "\n");
    CHECK_THAT(ui.prompt(), contains("d start (up)") && !contains("kill"));
    press(ui, "d");
    CHECK(ui.prompt() == "up a? y/n");
    press(ui, "n");
    press(ui, "x");  // not offered
    CHECK(ui.now() == mode::table);
    ui = with_rows({});
    press(ui, "\nrxpd");
    CHECK(ui.now() == mode::table);
}

TEST_CASE("a parameter is typed, corrected and set, or left with Esc") {
    interaction ui = with_rows({{"a", "running", "11"}});
    press(ui,
          "sxy\x15"
          "gain=25\x7f");
    CHECK(ui.prompt() == "set KEY=VALUE: gain=2_");
    CHECK(ui.press('\n').words == std::vector<std::string>{"set", "gain=2"});
    ui.finish(true, "gain is 2 from frame 7 on");
    press(ui, "squit\x1b");
    CHECK(ui.now() == mode::table);
    press(ui, "s");
    CHECK(ui.press('\n').what == kind::show_text);
    CHECK(ui.press('\x1b').what == kind::close_text);
}

TEST_CASE("help closes with any key and fits into 80 x 24") {
    const chain c(3);
    interaction ui;
    (void)screen_of(c, ui, 80, 24);
    press(ui, "?");
    const std::string all = screen_of(c, ui, 80, 24);
    CHECK_THAT(all, contains("Keys\n") && contains("quarantined") && contains("any key closes this help") &&
                        !contains("\u2026"));
    press(ui, "x");
    CHECK(ui.now() == mode::table);
    CHECK(ui.prompt().empty());
}

TEST_CASE("a text is shown from its end, and scrolls up to its beginning") {
    const chain c(3);
    std::vector<std::string> text;
    for (int k = 1; k <= 100; ++k) text.push_back(fmt::format("line {}", k));
    interaction ui;
    (void)screen_of(c, ui, 80, 24);
    CHECK(ui.press('l').words == std::vector<std::string>{"logs", "-f", "-n", "1000", "--no-color", "s0"});
    CHECK_THAT(screen_of(c, ui, 80, 24, text),
               contains("log of s0: 79 to 100 of 100\n") && contains("line 79\n") && contains("line 100\n"));
    (void)ui.press(key_home);
    CHECK_THAT(screen_of(c, ui, 80, 24, text), contains("log of s0: 1 to 22 of 100\nline 1\n"));
    (void)ui.press('j');
    CHECK_THAT(screen_of(c, ui, 80, 24, text), contains("log of s0: 2 to 23 of 100\n"));
    (void)ui.press(key_end);
    CHECK_THAT(screen_of(c, ui, 80, 24, text), contains("79 to 100"));
    CHECK_THAT(screen_of(c, ui, 80, 24), contains("log of s0: no lines yet\n"));
    text.assign(1, "\x1b[2Jcleared");
    CHECK_THAT(screen_of(c, ui, 80, 24, text), contains("\\x1b[2Jcleared"));
}

TEST_CASE("a question and a long error leave the tables most of a small screen") {
    const chain c(4);
    interaction ui;
    (void)screen_of(c, ui, 30, 9);
    press(ui, "r");
    CHECK_THAT(screen_of(c, ui, 30, 9), contains("restart s0 (pid 1000)? y/n") && contains("y confirms"));
    press(ui, "y");
    std::string words = "refused";
    for (int k = 0; k < 60; ++k) words += " because";
    ui.finish(false, words);
    const std::string all = screen_of(c, ui, 30, 9);
    CHECK_THAT(all, contains("error: refused because") && contains("> s0"));
    press(ui, "r");
    CHECK_THAT(screen_of(c, ui, 30, 2), contains("y/n"));  // the question has the only line of the footer
}
