// Which keys of a changed pipeline file a running pipeline takes over, and which it refuses.

#include "supervisor/plan/plan_changes.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "spec/describe.hpp"
#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/compatibility.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

run_setup three_stages() {
    run_setup s;
    s.name = "demo";
    s.stages.resize(3);
    s.stages[0].spec.name = "source";
    s.stages[0].spec.settings = {{"mesh", "cube"}};
    s.stages[1].spec.name = "filter";
    s.stages[1].spec.settings = {{"gain", 1}};
    s.stages[2].spec.name = "port";
    s.stages[2].spec.run = s.stages[2].program = "port";
    s.assets = {{"mesh", 100, 0, {0, 1}}};
    s.parameters.schema = {.type = "test.lamp", .bytes = 4, .fields = {{.name = "level", .initial = {0.25}}}};
    s.parameters.values = s.parameters.schema.initial_values();
    return s;
}

std::vector<plan_change> changes_to(const run_setup& now) {
    const run_setup then = three_stages();
    return changes_between(values_of_plan(identity_of(then), then), values_of_plan(identity_of(now), now));
}

/// The only change, as "live: stage filter: restart: ...".
std::string change_to(const run_setup& now) {
    const std::vector<plan_change> all = changes_to(now);
    REQUIRE(all.size() == 1);
    constexpr const char* kinds[] = {"live: ", "restart: ", "refused: "};
    return kinds[static_cast<std::size_t>(all.front().kind)] + all.front().text();
}

}  // namespace

TEST_CASE("a changed key is live, needs a restart, or is refused with its stage and both values") {
    run_setup now = three_stages();
    CHECK(changes_to(now).empty());
    stage_spec& filter = now.stages[1].spec;
    SECTION("keys that the supervisor reads each time") {
        SECTION("restart") {
            filter.restart = restart_policy::no;
            CHECK(change_to(now) == "live: stage filter: restart: \"always\" -> \"no\"");
        }
        SECTION("standby, which is not part of the identity") {
            filter.standby = true;
            CHECK(change_to(now) == "live: stage filter: standby: false -> true");
        }
        SECTION("allow_dead_letters, which is not part of the identity") {
            now.allow_dead_letters = ~u64{0};
            CHECK(change_to(now) == "live: allow_dead_letters: 0 -> true");
        }
        SECTION("a parameter") {
            now.parameters.schema.set(now.parameters.values, "level", 0.5);
            CHECK(change_to(now) == "live: parameters.level: 0.25 -> 0.5");
        }
        SECTION("a timeout that the stages inherit is reported once") {
            now.frame_timeout_ms = 3000;
            for (stage_setup& s : now.stages) s.spec.frame_timeout_ms = 3000;
            CHECK(change_to(now) == "live: frame_timeout_ms: 2000 -> 3000");
        }
    }
    SECTION("keys that a stage reads at its start") {
        SECTION("its settings") {
            filter.settings = {{"gain", 2}};
            CHECK(change_to(now) == "restart: stage filter: settings.gain: 1 -> 2");
        }
        SECTION("a setting that is removed") {
            filter.settings = nlohmann::json::object();
            CHECK(change_to(now) == "restart: stage filter: settings.gain: 1 -> absent");
        }
        SECTION("its program") {
            now.stages[1].program = "/opt/filter";
            CHECK(change_to(now) == "restart: stage filter: run: \"\" -> \"/opt/filter\"");
        }
        SECTION("its tool") {
            filter.prefix = {"nice"};
            CHECK(change_to(now) == "restart: stage filter: prefix: [] -> [\"nice\"]");
        }
    }
    SECTION("keys that are fixed while a run lasts") {
        SECTION("of the pipeline") {
            now.width = 640;
            CHECK(change_to(now) == "refused: size: [1280,720] -> [640,720]");
        }
        SECTION("of a ring") {
            now.stages[0].link.window = 9;
            CHECK(change_to(now) == "refused: stage source: window: \"auto\" -> 9");
        }
        SECTION("the frames of a new program") {
            now.stages[1].format = {{"type", "t"}};
            CHECK(change_to(now) == "refused: stage filter: format: absent -> {\"type\":\"t\"}");
        }
        SECTION("the stages") {
            now.stages.pop_back();
            CHECK(change_to(now) ==
                  "refused: stages: [\"source\",\"filter\",\"port\"] -> [\"source\",\"filter\"]");
        }
        SECTION("the settings of a stage that fills an asset") {
            now.stages[0].spec.settings["mesh"] = "cone";
            CHECK(
                change_to(now) ==
                "refused: stage source: settings.mesh: \"cube\" -> \"cone\" (the stage fills the asset mesh "
                "once per run)");
        }
        SECTION("the settings of a port") {
            now.stages[2].spec.settings["vacant"] = "skip";
            CHECK(change_to(now) ==
                  "refused: stage port: settings.vacant: absent -> \"skip\" (the program of "
                  "a port is not restarted)");
        }
    }
}

TEST_CASE("every key that may change is taken over, so that nothing is left to change") {
    run_setup running = three_stages(), now = three_stages();
    now.allow_dead_letters = 3;
    now.frame_timeout_ms = now.stall_timeout_ms = 7000;
    now.parameters.schema.set(now.parameters.values, "level", 0.5);
    stage_setup& filter = now.stages[1];
    filter.program = "/opt/filter";
    filter.spec.restart = restart_policy::no;
    filter.spec.standby = true;
    filter.spec.frame_timeout_ms = 1;
    filter.spec.first_frame_timeout_ms = 2;
    filter.spec.prefix = {"nice"};
    filter.spec.settings["gain"] = 2;
    const auto values = [](const run_setup& s) { return values_of_plan(identity_of(s), s); };
    const std::vector<plan_change> all = changes_between(values(running), values(now));
    CHECK(all.size() == 11);
    CHECK(std::none_of(all.begin(), all.end(), [](const auto& c) { return c.kind == change_kind::refused; }));
    take_over(running, now);
    CHECK(values(running) == values(now));
}
