// Parameters between a viewer and a pretended supervisor: whose change counts, what is merged, what a refusal
// and a silence do.

#include <unistd.h>

#include <algorithm>

#include "core/json.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/watcher.hpp"
#include "viewer/session/parameter_values.hpp"

using namespace carousel;
using namespace carousel::viewer;
using nlohmann::json;
using test::fake_options;
using test::fake_run;
using test::place_of_runs;
using test::watcher;

namespace {

f64 value_in(const watcher& w, const char* name) {
    const ring::parameter* p = w.m.schema.find(name);
    REQUIRE(p != nullptr);
    return number_in(*p, w.m.values);
}

/// As in a panel.
void edit(watcher& w, const char* name, f64 value) {
    const ring::parameter* p = w.m.schema.find(name);
    REQUIRE(p != nullptr);
    put_number(*p, w.m.values, 0, value);
    w.m.values_changed = true;
}

bool knows(watcher& w) {
    return w.until([&] { return w.m.has_parameters(); });
}

std::size_t times_reported(const watcher& w, const std::string& text) {
    const auto& all = w.m.events.events();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const telemetry::run_event& e) {
        return e.text.find(text) != std::string::npos;
    }));
}

void wait(watcher& w, int ms) {
    const u64 end = now_ns() + static_cast<u64>(ms) * ns_per_ms;
    (void)w.until([&] { return now_ns() > end; });
}

}  // namespace

TEST_CASE("settings reach the control block by the supervisor, and those of others reach the viewer") {
    const place_of_runs place;
    fake_run run;
    watcher w, other;
    REQUIRE((knows(w) && knows(other)));
    CHECK(w.m.schema == test::scene_schema());
    edit(w, "shading", 2);
    edit(w, "eye", 1.5);
    REQUIRE(w.until([&] { return run.value_of("shading") == 2 && run.value_of("eye") == 1.5; }));
    CHECK(other.until([&] { return value_in(other, "shading") == 2 && value_in(other, "eye") == 1.5; }));
    const std::vector<std::string> sets = run.sets();
    REQUIRE(sets.size() == 1);
    CHECK(json::parse(sets[0]).size() == 2);  // what was changed, and nothing else
    run.set_values({{"exposure", 3}});
    CHECK(w.until([&] { return value_in(w, "exposure") == 3; }));
    CHECK(value_in(w, "shading") == 2);
    CHECK(times_reported(w, "set") == 0);  // a drag would fill the list
}

TEST_CASE("an own change survives an older set and reverts no other user's change") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    run.answer_as({.after_s = 0.3, .refusal = ""});
    edit(w, "exposure", 2);
    w.step();
    run.set_values({{"ambient", 0.5}, {"exposure", 3}});  // counts before ours, which is on its way
    bool pulled_back = false;
    REQUIRE(w.until([&] {
        pulled_back = pulled_back || value_in(w, "exposure") != 2;
        return value_in(w, "ambient") == 0.5 && run.value_of("exposure") == 2;
    }));
    wait(w, 100);
    CHECK_FALSE(pulled_back);
    CHECK(value_in(w, "exposure") == 2);
    CHECK(run.value_of("ambient") == 0.5);
    run.answer_as({});
    run.set_values({{"exposure", 1}});  // the control: with nothing on its way the newest counts
    CHECK(w.until([&] { return value_in(w, "exposure") == 1; }));
}

TEST_CASE("a drag sends one set at a time and its last value, and no frame waits for the supervisor") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    run.answer_as({.after_s = 0.4, .refusal = ""});
    u32 delayed = 0;
    const u64 since = now_ns();
    for (int k = 1; k <= 60; ++k) {
        edit(w, "exposure", 1 + k * 0.01);
        const u64 began = now_ns();
        w.step();
        if (now_ns() - began > 300 * ns_per_ms) ++delayed;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const u64 dragged_ms = (now_ns() - since) / ns_per_ms;
    CHECK(delayed <= 1);  // other programs may do it once, the supervisor would do it with each set
    CHECK(value_in(w, "exposure") == test::near(1.6));
    REQUIRE(w.until([&] { return std::abs(run.value_of("exposure") - 1.6) < 1e-6; }));
    CHECK(run.sets().size() <= 3 + dragged_ms / 400);
    wait(w, 500);
    CHECK(value_in(w, "exposure") == test::near(1.6));
}

TEST_CASE("a refused change is reverted and reported once") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    run.answer_as({.refusal = "exposure = 2: not today"});
    for (int k = 0; k < 3; ++k) {
        edit(w, "exposure", 2);
        w.step();
        REQUIRE(w.until([&] { return value_in(w, "exposure") == 1; }));
    }
    CHECK(run.sets().size() == 3);
    CHECK(times_reported(w, "set: exposure = 2: not today") == 1);
    run.answer_as({});
    edit(w, "exposure", 2);
    CHECK(w.until([&] { return run.value_of("exposure") == 2; }));
    edit(w, "near", 500);  // the schema's own refusal: not below far
    w.step();
    CHECK(w.until([&] {
        return times_reported(w, "near must be below far") == 1 && value_in(w, "near") == test::near(0.1F);
    }));
}

TEST_CASE("a set that waits for frames is sent again with the newest values") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    run.answer_as({.wait = 2, .refusal = ""});
    edit(w, "exposure", 2);
    REQUIRE(w.until([&] { return run.sets().size() == 1; }));
    edit(w, "exposure", 3);
    edit(w, "ambient", 0.75);
    REQUIRE(w.until([&] { return run.value_of("exposure") == 3; }));
    CHECK(run.value_of("ambient") == 0.75);
    CHECK(value_in(w, "exposure") == 3);
    CHECK(run.sets().size() == 3);
    CHECK(times_reported(w, "set") == 0);
    run.answer_as({.wait = 1, .refusal = ""});
    w.m.reset_values = true;
    CHECK(w.until([&] { return run.value_of("exposure") == 1; }));
    CHECK(run.sets().size() == 5);
}

TEST_CASE("a reset restores the initial values of the run and drops earlier edits") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    run.set_values({{"exposure", 3}, {"spin", 0.05}});
    REQUIRE(w.until([&] { return value_in(w, "exposure") == 3; }));
    edit(w, "ambient", 0.9);
    w.m.reset_values = true;
    REQUIRE(
        w.until([&] { return value_in(w, "exposure") == 1 && value_in(w, "spin") == test::near(0.01F); }));
    CHECK(value_in(w, "ambient") == test::near(0.1F));
    CHECK(run.sets() == std::vector<std::string>{"reset"});
}

TEST_CASE("a change back and forth is not a change") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    w.m.values_changed = true;
    w.step();
    edit(w, "exposure", 1);
    w.step();
    wait(w, 200);
    CHECK(run.sets().empty());
}

TEST_CASE("the parameters are asked for until they are known, and their lack is known, too") {
    const place_of_runs place;
    fake_run run;
    run.answer_as({.refusal = "", .unknown = 2});
    watcher w;
    REQUIRE(knows(w));
    CHECK(times_reported(w, "unknown command") == 1);
    fake_options o;
    o.name = "plain";
    o.schema = {};
    fake_run plain(o);
    watcher of_plain("plain");
    REQUIRE(of_plain.until([&] { return of_plain.m.phase == run_phase::watching; }));
    wait(of_plain, 300);
    CHECK_FALSE(of_plain.m.has_parameters());
    of_plain.m.values_changed = of_plain.m.reset_values = true;
    wait(of_plain, 100);
    CHECK(plain.sets().empty());
    w.m.chosen = "plain";  // another run: the values of the previous one are removed
    REQUIRE(w.until([&] { return w.m.phase == run_phase::watching && w.m.snap.pipeline == "plain"; }));
    wait(w, 300);
    CHECK_FALSE(w.m.has_parameters());
}

TEST_CASE("a rebuilt block has its own values and accepts changes") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    edit(w, "exposure", 2);
    REQUIRE(w.until([&] { return run.value_of("exposure") == 2; }));
    run.rebuild();
    REQUIRE(w.until(
        [&] { return w.m.snap.created_ns == run.block().created_ns && value_in(w, "exposure") == 1; }));
    edit(w, "exposure", 3);
    CHECK(w.until([&] { return run.value_of("exposure") == 3; }));
}

TEST_CASE("without a supervisor a change is reverted with the reason, and no value is written") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    ::unlink((place.path + "/carousel/demo/control.sock").c_str());
    edit(w, "exposure", 2);
    w.step();
    CHECK(w.until([&] { return value_in(w, "exposure") == 1; }));
    CHECK(times_reported(w, "no supervisor at") == 1);
    CHECK(run.value_of("exposure") == 1);
}

TEST_CASE("damaged values are not trusted, and the next change still arrives") {
    const place_of_runs place;
    fake_run run;
    watcher w;
    REQUIRE(knows(w));
    edit(w, "exposure", 2);
    REQUIRE(w.until([&] { return run.value_of("exposure") == 2; }));
    for (const int with : {0xFF, 0x7F, 0}) {
        run.damage_values(static_cast<std::byte>(with));
        wait(w, 50);
        CHECK(value_in(w, "exposure") == 2);
    }
    watcher late;
    REQUIRE(knows(late));
    CHECK(value_in(late, "exposure") == 1);  // as described
    late.m.reset_values = true;
    CHECK(late.until(
        [&] { return run.value_of("exposure") == 1 && run.value_of("ambient") == test::near(0.1F); }));
}

TEST_CASE("an invalid description is reported once, and the window continues without parameters") {
    for (
        const char* text :
        {"7", "{}",
         R"({"type": "x", "bytes": 8, "fields": [{"name": "a", "kind": "number", "offset": 4000, "count": 900}]})"}) {
        const place_of_runs place;
        fake_options o;
        o.schema_text = text;
        fake_run run(o);
        watcher w;
        REQUIRE(w.until([&] { return w.m.picture.ring_sequence > 3; }));
        wait(w, 1300);
        CHECK_FALSE(w.m.has_parameters());
        CHECK(times_reported(w, "parameters: ") == 1);
        CHECK(w.m.phase == run_phase::watching);
    }
}
