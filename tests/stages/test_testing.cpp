// <carousel/testing.hpp> itself, by a stage as users write them.

#include <fmt/format.h>
#include <carousel/cpu.hpp>
#include <carousel/hash.hpp>
#include <carousel/testing.hpp>
#include <memory>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using test::contains;

namespace {

struct gain {
    f32 factor = 2;
    static constexpr const char* type = "test.gain";
    static parameter_schema schema() {
        return {
            .type = type, .bytes = sizeof(gain), .fields = {{.name = "factor", .initial = {2}, .high = 10}}};
    }
};

struct other_gain : gain {
    static constexpr const char* type = "test.other";
};

/// What configure() was told, and its input times the frame's gain.
class amplifier : public stage {
public:
    explicit amplifier(bool names_parameters = true) : names_(names_parameters) {}
    configuration told;

    description configure(const configuration& with) override {
        told = with;
        description d{.outputs = {with.inputs.at(0).format}};
        if (names_) d.parameters = gain::schema();
        return d;
    }
    void process(frame& f) override {
        const plane_view<const f32> in = f.input().plane<const f32>("wave");
        const plane_view<f32> out = f.output().plane<f32>("wave");
        cpu::for_each(f, in.size(), 2,
                      [=, by = f.parameters<gain>().factor](u64 k) { out.data()[k] = in.data()[k] * by; });
    }

private:
    bool names_;
};

class curious : public stage {
public:
    description configure(const configuration&) override { return {.parameters = gain::schema()}; }
    void process(frame& f) override { (void)f.parameters<other_gain>(); }
};

const frame_format wave{"test.wave", {{"wave", element::f32_, {4}}}, {}};

}  // namespace

TEST_CASE("a stage's output for a given input, with parameters as at the start and with others") {
    testing::chain c({.fps = 30, .folder = "/somewhere"});
    c.give("source", wave);
    auto object = std::make_unique<amplifier>();
    const amplifier& stage = *object;
    c.add("amplifier", std::move(object), "{}", {"source"});
    c.prepare();
    c.fill("source", "wave", std::vector<f32>{1, 2, 3, 4});
    c.run(0);
    CHECK(c.read<f32>("amplifier", "wave") == std::vector<f32>{2, 4, 6, 8});
    c.run(1, gain{.factor = 0.5F});
    CHECK(c.read<f32>("amplifier", "wave") == std::vector<f32>{0.5F, 1, 1.5F, 2});
    CHECK(stage.told.fps == 30);
    CHECK(stage.told.device == "cpu");
    CHECK(stage.told.path("calibration/a.json") == "/somewhere/calibration/a.json");
    CHECK(stage.told.path("/b.json") == "/b.json");
}

TEST_CASE("metadata and capture time that a stage sets are seen by those behind it") {
    class camera : public stage {
        description configure(const configuration&) override { return {.outputs = {wave}}; }
        void process(frame& f) override {
            f.set_capture_ns(77);
            f.metadata().set("exposure_ms", 3.5);
            f.metadata().set("gain", 2);
            f.metadata().set("name", "left");
            f.output().set_used("wave", {3});
        }
    };
    class reader : public stage {
    public:
        std::string seen;

    private:
        description configure(const configuration&) override { return {}; }
        void process(frame& f) override {
            const frame_metadata m = f.metadata();
            seen = fmt::format("{} {} {} {} {}", m.get<f32>("exposure_ms").value_or(0),
                               m.get<u8>("gain").value_or(0), m.get<std::string>("name").value_or(""),
                               m.get<i32>("none").has_value(), f.capture_ns());
            CHECK_THROWS_WITH(
                m.get<f64>("name"),
                contains("metadata \"name\" is text (\"left\"), but it is asked for as a number"));
            CHECK_THROWS_WITH(m.get<u64>("exposure_ms"), contains("asked for as a whole number"));
            CHECK_THROWS_AS(f.metadata().set("a", 1), std::logic_error);
            CHECK(f.input_metadata().entries().size() == 3);
        }
    };
    const scratch_folder folder;
    testing::chain c({.run_directory = folder.path.string()});
    auto object = std::make_unique<reader>();
    const reader& at_end = *object;
    c.add("camera", std::make_unique<camera>());
    c.add("reader", std::move(object), "{}", {"camera"});
    c.prepare();
    c.run(0);
    CHECK(at_end.seen == "3.5 2 left false 77");
    CHECK(c.metadata("camera").get<f64>("exposure_ms") == 3.5);
    CHECK(c.read<f32>("camera", "wave").size() == 3);
    CHECK_THROWS_WITH(c.metadata("camera").set("two words", 1), contains("a key has 1 to 63 letters"));
    CHECK_THROWS_WITH(c.metadata("camera").set("long", std::string(2000, 'x')),
                      contains("bytes are taken, and this entry finds no room"));
}

TEST_CASE("a hash is of what of a plane is in use, and tells how much that is") {
    class sink : public stage {
    public:
        u64 hash = 0;

    private:
        description configure(const configuration&) override { return {}; }
        void prepare(environment& env) override { hasher_ = std::make_unique<plane_hasher>(env); }
        void process(frame& f) override { hasher_->enqueue(f, "wave"); }
        [[nodiscard]] bool commits_on_host() const override { return true; }
        void finish(frame& f) override { hash = hasher_->value(f); }
        std::unique_ptr<plane_hasher> hasher_;
    };
    const scratch_folder folder;
    testing::chain c({.run_directory = folder.path.string()});
    c.give("source", wave);
    auto object = std::make_unique<sink>();
    const sink& at_end = *object;
    c.add("sink", std::move(object), "{}", {"source"});
    c.prepare();
    const auto hash_of = [&](const std::vector<f32>& values, u64 used) {
        c.fill("source", "wave", values);
        c.set_used("source", "wave", {used});
        c.run(0);
        return at_end.hash;
    };
    const u64 two = hash_of({1, 2, 3, 4}, 2);
    CHECK(hash_of({1, 2, 9, 9}, 2) == two);
    CHECK(hash_of({1, 3, 9, 9}, 2) != two);
    CHECK(hash_of({1, 2, 3, 4}, 3) != two);
    CHECK(hash_of({1, 2, 3, 4}, 0) == hash_of({5, 6, 7, 8}, 0));
}

TEST_CASE("a schema that a pipeline would refuse is refused here, too") {
    class out_of_range : public stage {
        description configure(const configuration&) override {
            parameter_schema schema = gain::schema();
            schema.fields[0].initial = {11};
            return {.parameters = schema};
        }
        void process(frame&) override {}
    };
    testing::chain c({});
    CHECK_THROWS_WITH(c.add("wrong", std::make_unique<out_of_range>()),
                      contains("test.gain") && contains("factor"));
}

TEST_CASE("parameters that configure() has not named are refused") {
    testing::chain c({});
    c.give("source", wave);
    c.add("amplifier", std::make_unique<amplifier>(false), "{}", {"source"});
    c.prepare();
    CHECK_THROWS_WITH(c.run(0), contains("reads parameters of type test.gain") && contains("names none"));
    const scratch_folder folder;
    testing::chain d({.run_directory = folder.path.string()});
    d.add("curious", std::make_unique<curious>());
    d.prepare();
    CHECK_THROWS_WITH(d.run(0),
                      contains("reads parameters of type test.other") && contains("names test.gain"));
}

TEST_CASE("a stand-in takes just what its plane holds") {
    testing::chain c({});
    c.give("source", wave);
    c.add("amplifier", std::make_unique<amplifier>(), "{}", {"source"});
    c.prepare();
    CHECK_THROWS_WITH(c.fill("source", "wave", std::vector<f32>{1}),
                      contains("has 16 bytes, but is given 4"));
    CHECK_THROWS_WITH(c.fill("source", "wave", std::vector<u8>(16)),
                      contains("is asked for as u8, but it is f32"));
    CHECK_THROWS_WITH(c.fill("amplifier", "wave", std::vector<f32>(4)), contains("give() makes a stand-in"));
    CHECK_THROWS_WITH(c.read<f32>("amplifer", "wave"), contains("no stage \"amplifer\""));
}

TEST_CASE("several outputs are refused where one is possible") {
    const description d{.outputs = {wave, wave}};
    CHECK_THROWS_WITH(output_of(d), contains("2 outputs"));
}

namespace {

/// The sum of its input and the newest frame beside it, and behind a second output their difference.
class mixer : public stage {
public:
    std::vector<u64> sides;

private:
    description configure(const configuration& with) override {
        CHECK(with.latest.size() == 1);
        description d{.outputs = {{"sum", wave}, {"difference", wave}}};
        d.takes_latest = true;
        return d;
    }
    void process(frame& f) override {
        CHECK_THROWS_WITH(f.latest("beside you"), contains("it was added with beside"));
        CHECK_THROWS_WITH(f.latest(1), contains("asks for latest input 1; it was added with 1"));
        const side_frame side = f.latest("beside");
        const f32* b = side ? side.plane<const f32>("wave").data() : nullptr;
        sides.push_back(side ? side.sequence() : shm::no_side_frame);
        if (side) f.metadata().set("side_capture_ns", side.capture_ns());
        if (side) f.metadata().set("side_says", side.metadata().get<i64>("says").value_or(-1));
        f.output("difference").set_used("wave", {3});
        cpu::for_each(
            f, 4, 1,
            [=, a = f.input().plane<const f32>("wave").data(), sum = f.output().plane<f32>("wave").data(),
             difference = f.output(1).plane<f32>("wave").data()](u64 k) {
                sum[k] = a[k] + (b != nullptr ? b[k] : 0);
                difference[k] = a[k] - (b != nullptr ? b[k] : 0);
            });
    }
};

/// Which side frames its input was made with.
class behind_mixer : public stage {
public:
    std::vector<u64> told;

private:
    description configure(const configuration& with) override {
        CHECK(with.inputs.at(0).stage == "mixer.difference");
        return {.outputs = {with.inputs[0].format}};
    }
    void process(frame& f) override { told = {f.input_latest().begin(), f.input_latest().end()}; }
};

}  // namespace

TEST_CASE("a stage has side inputs, none before the first, and each of its outputs is read by its name") {
    testing::chain c({.fps = 10});
    c.give("source", wave);
    c.give("beside", wave);
    auto object = std::make_unique<mixer>();
    auto behind = std::make_unique<behind_mixer>();
    const mixer& stage = *object;
    const behind_mixer& last = *behind;
    c.add("mixer", std::move(object), "{}", {"source"}, {"beside"});
    c.add("behind", std::move(behind), "{}", {"mixer.difference"});
    c.prepare();
    c.fill("source", "wave", std::vector<f32>{1, 2, 3, 4});
    c.fill("beside", "wave", std::vector<f32>{10, 20, 30, 40});
    c.run(0);
    CHECK(c.read<f32>("mixer", "wave") == std::vector<f32>{1, 2, 3, 4});
    CHECK(last.told == std::vector<u64>{shm::no_side_frame});
    c.metadata("beside").set("says", 3);
    c.newest("beside", 7);
    c.run(1);
    c.run(2);
    CHECK(stage.sides == std::vector<u64>{shm::no_side_frame, 7, 7});
    CHECK(last.told == std::vector<u64>{7});
    CHECK(c.read<f32>("mixer.sum", "wave") == std::vector<f32>{11, 22, 33, 44});
    CHECK(c.read<f32>("mixer.difference", "wave") == std::vector<f32>{-9, -18, -27});
    CHECK(c.metadata("mixer").get<i64>("side_says") == 3);
    CHECK_THROWS_WITH(c.read<f32>("mixer.quotient", "wave"),
                      contains("no output \"quotient\"; the outputs are: sum, difference"));
    CHECK_THROWS_WITH(c.newest("mixer", 1), contains("\"mixer\" is a stage, which has its own frames"));
}

TEST_CASE("a stage before is the newest frame of a side input, and what can't be one is refused") {
    testing::chain c({});
    c.give("fork", {{"number", wave}, {"square", wave}});
    c.give("source", wave);
    c.add("early", std::make_unique<amplifier>(), "{}", {"fork.square"});
    CHECK_THROWS_WITH(c.add("deaf", std::make_unique<amplifier>(), "{}", {"source"}, {"source"}),
                      contains("stage deaf is added with latest inputs and takes none"));
    CHECK_THROWS_WITH(c.add("vain", std::make_unique<mixer>(), "{}", {"source"}, {"late"}),
                      contains("no stage \"late\" was added to this chain"));
    CHECK_THROWS_WITH(c.give("double", {{"number", wave}, {"number", wave}}),
                      contains("two outputs are called \"number\""));
    class looker : public carousel::stage {
        description configure(const configuration& with) override {
            return {.outputs = {with.latest.at(0).format}, .takes_latest = true};
        }
        void process(frame& f) override {
            CHECK(f.latest().sequence() == f.sequence());
            const std::span<std::byte> out = f.output().bytes("wave");
            f.queue().copy(out.data(), f.latest("early").bytes("wave").data(), out.size());
        }
    };
    c.add("looker", std::make_unique<looker>(), "{}", {"source"}, {"early"});
    c.prepare();
    c.fill("fork.square", "wave", std::vector<f32>{1, 4, 9, 16});
    c.run(5);
    CHECK(c.read<f32>("looker", "wave") == std::vector<f32>{2, 8, 18, 32});
}
