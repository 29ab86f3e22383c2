// The parameters of a run while it is running: what is set, from which frame on, and what a second supervisor
// finds.

#include <cstring>
#include <memory>

#include "control/request_message.hpp"
#include "ring/check/block_check.hpp"
#include "ring/parameter_box.hpp"
#include "ring/topology.hpp"
#include "supervisor/engine/parameters.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using nlohmann::json;
using test::contains;

/// One source with an output ring, and two parameters.
struct lamp_run {
    parameter_plan plan;
    std::unique_ptr<shm::control_block> c = std::make_unique<shm::control_block>(),
                                        made = std::make_unique<shm::control_block>();
    std::unique_ptr<live_parameters> live;

    lamp_run() {
        plan.schema = {.type = "test.lamp",
                       .bytes = 8,
                       .fields = {{.name = "level", .offset = 0, .initial = {0.25}, .low = 0, .high = 2},
                                  {.name = "on", .kind = ring::parameter_kind::flag, .offset = 4}}};
        plan.values = plan.schema.initial_values();
        c->magic = made->magic = shm::control_magic;
        c->sources = made->sources = 1;
        live = std::make_unique<live_parameters>(plan);
        live->write_into(*c, 0);
        live->write_into(*made, 0);
    }
    run::parameter_state set(const json& values) { return live->set({.values = values}, *c, *made); }
    std::string refusal(const json& values) {
        try {
            (void)set(values);
            return "";
        } catch (const run::refused_for_now& e) {
            return std::string("later: ") + e.what();
        } catch (const config_error& e) {
            return e.what();
        }
    }
    f64 level_of(u64 frame) {
        return ring::parameter_schema::element_of(*plan.schema.find("level"),
                                                  ring::parameters_for(c->parameters, frame)->value);
    }
};

}  // namespace

TEST_CASE("a set counts from the first frame without parameters, and the answer names it") {
    lamp_run r;
    CHECK(r.level_of(0) == 0.25);
    CHECK(r.level_of(4) == 0.25);
    const run::parameter_state reply = r.set({{"level", 1.5}});
    CHECK(reply.from == 5);
    CHECK(reply.number == 1);
    CHECK(reply.message == "level = 1.5 from frame 5 on");
    CHECK(r.level_of(5) == 1.5);
    CHECK(r.level_of(4) == 0.25);
    CHECK(r.live->answer().values == json{{"level", 1.5}, {"on", false}});
}

TEST_CASE("a set that changes no value, or is refused, is not recorded") {
    lamp_run r;
    CHECK_THAT(r.set({{"level", 0.25}}).message, contains("no change"));
    CHECK_THAT(r.refusal({{"level", 7}}), contains("level = 7"));
    CHECK_THAT(r.refusal({{"on", true}, {"lever", 1}}), contains("did you mean \"level\"?"));
    CHECK_THAT(r.refusal(json::object()), contains("known are level, on"));
    CHECK_THAT(r.refusal(3), contains("expected values by name"));
    CHECK(r.live->number() == 0);
    CHECK(r.live->report()["changes"].empty());
    CHECK(r.live->answer().values["on"] == false);
}

TEST_CASE("changes up to the limit wait for frames, and the next is refused until frames move") {
    lamp_run r;
    (void)r.level_of(0);
    u32 taken = 0;
    while (taken < 1000 && r.refusal({{"level", taken % 2 == 0 ? 1.0 : 0.5}}).empty()) ++taken;
    CHECK(taken == ring::readable_sets - 1);
    CHECK_THAT(r.refusal({{"level", 2}}), contains("later: ") && contains("no frame moves"));
    (void)r.level_of(1);
    r.c->link[0].tail.store(1);
    CHECK(r.set({{"level", 2}}).from == 2);
}

TEST_CASE("the reference copy has each change, and damage in the block is not copied into it") {
    lamp_run r;
    (void)r.level_of(6);
    r.c->link[0].tail.store(7);
    for (u32 k = 0; k < 200; ++k) {
        (void)r.set({{"level", k % 2 == 0 ? 1.0 : 0.5}});
        (void)r.level_of(7 + k);
        r.c->link[0].tail.store(8 + k);
    }
    for (const ring::finding& f : ring::check_static(*r.c, *r.made)) FAIL_CHECK(f.text());
    r.c->parameters.set[3].value[0] ^= std::byte{1};
    (void)r.set({{"level", 2}});
    CHECK_FALSE(ring::check_static(*r.c, *r.made).empty());
}

TEST_CASE("reset restores the initial values of the run") {
    lamp_run r;
    (void)r.set({{"level", 2}, {"on", true}});
    const run::parameter_state reply = r.live->set({.reset = true}, *r.c, *r.made);
    CHECK(reply.values == json{{"level", 0.25}, {"on", false}});
    CHECK(reply.number == 2);
}

TEST_CASE("the report lists each change with its frame and the changed parameters") {
    lamp_run r;
    (void)r.level_of(9);
    (void)r.set({{"on", true}});
    const json report = r.live->report();
    CHECK(report["type"] == "test.lamp");
    CHECK(report["start"]["on"] == false);
    CHECK(report["change_count"] == 1);
    CHECK(report["changes"] == json::array({{{"number", 1}, {"frame", 10}, {"values", {{"on", true}}}}}));
}

TEST_CASE("a second supervisor continues with the block's parameters, even if its file is older") {
    lamp_run r;
    (void)r.set({{"level", 1}});
    const json older = r.live->state(*r.made);
    (void)r.set({{"level", 2}});
    live_parameters second(r.plan);
    CHECK(second.adopt(*r.c, *r.made, older).empty());
    CHECK(second.number() == 2);
    CHECK(second.answer().values["level"] == 2.0);
    CHECK(second.report()["changes"].size() == 2);
    CHECK(second.set({.values = {{"on", true}}}, *r.c, *r.made).number == 3);
    live_parameters with_nothing(r.plan);
    CHECK(with_nothing.adopt(*r.c, *r.made, nullptr).empty());
    CHECK(with_nothing.number() == 3);
}

TEST_CASE("a state file whose values have wrong types is not adopted, and ends no supervisor") {
    const json types[] = {"a text", -1, 1e300, true, nullptr, json::array({7}), json{{"number", "x"}}};
    for (const char* key : {"changes", "sets", "number", "from", "values"}) {
        for (const json& wrong : types) {
            CAPTURE(key, wrong.dump());
            lamp_run r;
            (void)r.set({{"level", 1}});
            json state = r.live->state(*r.made);
            state[key] = wrong;
            r.c->parameters.state.store(ring::load(r.c->parameters.state) ^ 6U);  // so that the file counts
            live_parameters second(r.plan);
            (void)second.adopt(*r.c, *r.made, state);
            CHECK(second.number() <= 1);
            CHECK(second.report()["changes"].is_array());
            CHECK_NOTHROW(second.set({.values = {{"on", true}}}, *r.c, *r.made));
        }
    }
}

TEST_CASE("values that no supervisor can have set are not taken over") {
    lamp_run r;
    const f32 nonsense = 1e30F;
    std::memcpy(r.c->parameters.set[0].value, &nonsense, sizeof nonsense);
    live_parameters second(r.plan);
    CHECK_FALSE(second.adopt(*r.c, *r.made, nullptr).empty());
    CHECK_FALSE(ring::intact(ring::load(r.made->parameters.state)));
    CHECK(second.answer().values["level"] == 0.25);
}

TEST_CASE("a second supervisor finds the valid sets after their word was damaged unsupervised") {
    lamp_run r;
    r.c->link[0].window = r.made->link[0].window = 12;
    (void)r.level_of(3);
    (void)r.set({{"level", 1}});
    (void)r.level_of(9);
    for (u32 k = 0; k < 10; ++k)  // done
        r.c->source[0].sequence_lease[k].store(ring::lease_word{1, 0, 0, 0, ring::lease_state::wait}.pack());
    const json older = r.live->state(*r.made);
    const bool after_file = GENERATE(false, true), filled = GENERATE(false, true);
    CAPTURE(after_file, filled);
    if (after_file) (void)r.set({{"level", 2}});
    const u64 truth = ring::load(r.c->parameters.state);
    // A supervisor that died between filling a set and counting it.
    if (filled && !after_file) r.c->parameters.set[2].from = 10, r.c->parameters.set[2].number = 2;
    u32 exact = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
        CAPTURE(bit);
        r.c->parameters.state.store(truth ^ u64{1} << bit);
        live_parameters second(r.plan);
        const std::string error = second.adopt(*r.c, *r.made, older);
        const ring::parameter_state is = ring::parameter_state::of(ring::load(r.made->parameters.state)),
                                    was = ring::parameter_state::of(truth);
        if (error.empty()) {
            ++exact;
            CHECK(is.sets == was.sets);
            CHECK(is.horizon >= was.horizon);
            CHECK(second.answer().values["level"] == (after_file ? 2.0 : 1.0));
        } else {  // then the file's, and the block is rebuilt
            CHECK(second.answer().values["level"] == 1.0);
            CHECK_FALSE(ring::intact(ring::load(r.made->parameters.state)));
        }
    }
    CHECK(exact >= (after_file || filled ? 60 : 64));
}

TEST_CASE("a rebuilt block has the last set for all its frames") {
    lamp_run r;
    (void)r.set({{"level", 2}});
    const auto fresh = std::make_unique<shm::control_block>();
    r.live->write_into(*fresh, 40);
    r.c = std::make_unique<shm::control_block>();
    std::memcpy(static_cast<void*>(&r.c->parameters), static_cast<const void*>(&fresh->parameters),
                sizeof fresh->parameters);
    CHECK(r.level_of(40) == 2);
    CHECK(ring::newest_parameters(r.c->parameters).number == 1);
}

TEST_CASE("a pipeline without parameters reports that") {
    const parameter_plan none;
    live_parameters live(none);
    const auto c = std::make_unique<shm::control_block>(), made = std::make_unique<shm::control_block>();
    live.write_into(*c, 0);
    CHECK_FALSE(live.answer().schema);
    CHECK(live.report() == nullptr);
    CHECK_THROWS_AS(live.set({.values = {{"x", 1}}}, *c, *made), config_error);
}
