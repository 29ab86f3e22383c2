// <carousel/testing.hpp> itself, with a stage as users write them.

#include <fmt/format.h>
#include <carousel/cpu.hpp>
#include <carousel/hash.hpp>
#include <carousel/testing.hpp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ledger/ledger.hpp"
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

/// The value that configure() received, and its input multiplied by the frame's gain.
class amplifier : public stage {
public:
    explicit amplifier(bool names_parameters = true) : names_(names_parameters) {}
    configuration received;

    description configure(const configuration& with) override {
        received = with;
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
    c.provide("source", wave);
    auto object = std::make_unique<amplifier>();
    const amplifier& stage = *object;
    c.add("amplifier", std::move(object), "{}", {"source"});
    c.prepare();
    c.fill("source", "wave", std::vector<f32>{1, 2, 3, 4});
    c.run(0);
    CHECK(c.read<f32>("amplifier", "wave") == std::vector<f32>{2, 4, 6, 8});
    c.run(1, gain{.factor = 0.5F});
    CHECK(c.read<f32>("amplifier", "wave") == std::vector<f32>{0.5F, 1, 1.5F, 2});
    CHECK(stage.received.fps == 30);
    CHECK(stage.received.device == "cpu");
    CHECK(stage.received.path("calibration/a.json") == "/somewhere/calibration/a.json");
    CHECK(stage.received.path("/b.json") == "/b.json");
}

TEST_CASE("metadata and capture time that a stage sets reach its downstream stages") {
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
                contains("metadata \"name\" is text (\"left\"), but was requested as a number"));
            CHECK_THROWS_WITH(m.get<u64>("exposure_ms"), contains("was requested as a whole number"));
            CHECK_THROWS_AS(f.metadata().set("a", 1), std::logic_error);
            CHECK(f.input_metadata().entries().size() == 3);
        }
    };
    const scratch_folder folder;
    testing::chain c({.runtime_directory = folder.path.string()});
    auto object = std::make_unique<reader>();
    const reader& at_end = *object;
    c.add("camera", std::make_unique<camera>());
    c.add("reader", std::move(object), "{}", {"camera"});
    c.prepare();
    c.run(0);
    CHECK(at_end.seen == "3.5 2 left false 77");
    CHECK(c.metadata("camera").get<f64>("exposure_ms") == 3.5);
    CHECK(c.read<f32>("camera", "wave").size() == 3);
    CHECK_THROWS_WITH(c.metadata("camera").set("two words", 1),
                      contains("expected a key of 1 to 63 characters"));
    CHECK_THROWS_WITH(c.metadata("camera").set("long", std::string(2000, 'x')),
                      contains("bytes are used, and this entry does not fit"));
}

TEST_CASE("a hash covers a plane's used extents and how much that is") {
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
    testing::chain c({.runtime_directory = folder.path.string()});
    c.provide("source", wave);
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
    c.provide("source", wave);
    c.add("amplifier", std::make_unique<amplifier>(false), "{}", {"source"});
    c.prepare();
    CHECK_THROWS_WITH(c.run(0), contains("reads parameters of type test.gain") && contains("names none"));
    const scratch_folder folder;
    testing::chain d({.runtime_directory = folder.path.string()});
    d.add("curious", std::make_unique<curious>());
    d.prepare();
    CHECK_THROWS_WITH(d.run(0),
                      contains("reads parameters of type test.other") && contains("names test.gain"));
}

TEST_CASE("a stand-in accepts exactly the size of its plane") {
    testing::chain c({});
    c.provide("source", wave);
    c.add("amplifier", std::make_unique<amplifier>(), "{}", {"source"});
    c.prepare();
    CHECK_THROWS_WITH(c.fill("source", "wave", std::vector<f32>{1}),
                      contains("has 16 bytes, but is given 4"));
    CHECK_THROWS_WITH(c.fill("source", "wave", std::vector<u8>(16)),
                      contains("was requested as u8, but it is f32"));
    CHECK_THROWS_WITH(c.fill("amplifier", "wave", std::vector<f32>(4)),
                      contains("only a stand-in made by give()"));
    CHECK_THROWS_WITH(c.read<f32>("amplifer", "wave"), contains("no stage \"amplifer\""));
}

TEST_CASE("several outputs are refused where one is possible") {
    const description d{.outputs = {wave, wave}};
    CHECK_THROWS_WITH(output_of(d), contains("2 outputs"));
}

namespace {

/// The sum of its input and its sampled input, and as a second output their difference.
class mixer : public stage {
public:
    std::vector<u64> sampled_numbers;

private:
    description configure(const configuration& with) override {
        CHECK(with.sampled.size() == 1);
        description d{.outputs = {{"sum", wave}, {"difference", wave}}};
        d.accepts_sampled_inputs = true;
        return d;
    }
    void process(frame& f) override {
        CHECK_THROWS_WITH(f.sampled("beside you"), contains("it was added with beside"));
        CHECK_THROWS_WITH(f.sampled(1), contains("requests sampled input 1; it was added with 1"));
        const sampled_frame sampled = f.sampled("beside");
        const f32* b = sampled ? sampled.plane<const f32>("wave").data() : nullptr;
        sampled_numbers.push_back(sampled ? sampled.frame_number() : shm::no_sampled_frame);
        if (sampled) f.metadata().set("side_capture_ns", sampled.capture_ns());
        if (sampled) f.metadata().set("side_says", sampled.metadata().get<i64>("says").value_or(-1));
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

/// Records with which sampled frames its input was made.
class downstream_mixer : public stage {
public:
    std::vector<u64> received;

private:
    description configure(const configuration& with) override {
        CHECK(with.inputs.at(0).stage == "mixer.difference");
        return {.outputs = {with.inputs[0].format}};
    }
    void process(frame& f) override { received = {f.input_sampled().begin(), f.input_sampled().end()}; }
};

}  // namespace

TEST_CASE("a stage has sampled inputs, none before the first, and each output is read by name") {
    testing::chain c({.fps = 10});
    c.provide("source", wave);
    c.provide("beside", wave);
    auto object = std::make_unique<mixer>();
    auto downstream = std::make_unique<downstream_mixer>();
    const mixer& stage = *object;
    const downstream_mixer& last = *downstream;
    c.add("mixer", std::move(object), "{}", {"source"}, {"beside"});
    c.add("behind", std::move(downstream), "{}", {"mixer.difference"});
    c.prepare();
    c.fill("source", "wave", std::vector<f32>{1, 2, 3, 4});
    c.fill("beside", "wave", std::vector<f32>{10, 20, 30, 40});
    c.run(0);
    CHECK(c.read<f32>("mixer", "wave") == std::vector<f32>{1, 2, 3, 4});
    CHECK(last.received == std::vector<u64>{shm::no_sampled_frame});
    c.metadata("beside").set("says", 3);
    c.newest("beside", 7);
    c.run(1);
    c.run(2);
    CHECK(stage.sampled_numbers == std::vector<u64>{shm::no_sampled_frame, 7, 7});
    CHECK(last.received == std::vector<u64>{7});
    CHECK(c.read<f32>("mixer.sum", "wave") == std::vector<f32>{11, 22, 33, 44});
    CHECK(c.read<f32>("mixer.difference", "wave") == std::vector<f32>{-9, -18, -27});
    CHECK(c.metadata("mixer").get<i64>("side_says") == 3);
    CHECK_THROWS_WITH(c.read<f32>("mixer.quotient", "wave"),
                      contains("no output \"quotient\"; the outputs are: sum, difference"));
    CHECK_THROWS_WITH(c.newest("mixer", 1), contains("\"mixer\" is a stage, which has its own frames"));
}

TEST_CASE("a sampled input gets the newest frame of the named stage, and invalid names are refused") {
    testing::chain c({});
    c.provide("fork", {{"number", wave}, {"square", wave}});
    c.provide("source", wave);
    c.add("early", std::make_unique<amplifier>(), "{}", {"fork.square"});
    CHECK_THROWS_WITH(c.add("deaf", std::make_unique<amplifier>(), "{}", {"source"}, {"source"}),
                      contains("stage deaf is added with sampled inputs but accepts none"));
    CHECK_THROWS_WITH(c.add("vain", std::make_unique<mixer>(), "{}", {"source"}, {"late"}),
                      contains("no stage \"late\" was added to this chain"));
    CHECK_THROWS_WITH(c.provide("double", {{"number", wave}, {"number", wave}}),
                      contains("two outputs are named \"number\""));
    class looker : public carousel::stage {
        description configure(const configuration& with) override {
            return {.outputs = {with.sampled.at(0).format}, .accepts_sampled_inputs = true};
        }
        void process(frame& f) override {
            CHECK(f.sampled().frame_number() == f.frame_number());
            const std::span<std::byte> out = f.output().bytes("wave");
            f.queue().copy(out.data(), f.sampled("early").bytes("wave").data(), out.size());
        }
    };
    c.add("looker", std::make_unique<looker>(), "{}", {"source"}, {"early"});
    c.prepare();
    c.fill("fork.square", "wave", std::vector<f32>{1, 4, 9, 16});
    c.run(5);
    CHECK(c.read<f32>("looker", "wave") == std::vector<f32>{2, 8, 18, 32});
}

namespace {

/// Passes a picture's sum from process() to finish(): in frame::local(), or wrongly in a member.
class summing : public stage {
public:
    explicit summing(bool in_member) : in_member_(in_member) {}
    description configure(const configuration&) override { return {}; }
    void process(frame& f) override {
        const auto in = f.input().plane<const f32>("wave");
        f32* const to = in_member_ ? &sum_ : &f.local<f32>();
        cpu::enqueue(f, [=](cpu::pool&) {
            for (u64 k = 0; k < in.size(); ++k) *to += in.data()[k];
        });
    }
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override {
        f.set_hash(static_cast<u64>(in_member_ ? std::exchange(sum_, 0) : f.local<f32>()));
    }

private:
    bool in_member_;
    f32 sum_ = 0;
};

std::vector<std::optional<u64>> hashes_in_flight(bool in_member) {
    const scratch_folder folder;
    testing::chain c({.runtime_directory = folder.path.string(), .in_flight = 3});
    c.provide("source", wave);
    c.add("sink", std::make_unique<summing>(in_member), "{}", {"source"});
    c.prepare();
    c.run_in_flight(5, 3, [&](u64 n) { c.fill<f32>("source", "wave", {static_cast<f32>(n), 0, 0, 0}); });
    return {c.hash("sink", 5), c.hash("sink", 6), c.hash("sink", 7), c.hash("sink", 8)};
}

}  // namespace

TEST_CASE("the object of frame::local() is its frame's with three frames in flight, a member is not") {
    CHECK(hashes_in_flight(false) == std::vector<std::optional<u64>>{5, 6, 7, std::nullopt});
    CHECK(hashes_in_flight(true) == std::vector<std::optional<u64>>{18, 0, 0, std::nullopt});
}

TEST_CASE("frame::local() has one type per frame") {
    class two_types : public stage {
        description configure(const configuration&) override { return {}; }
        void process(frame& f) override {
            CHECK(f.local<std::vector<int>>().empty());
            f.local<std::vector<int>>().push_back(1);
            CHECK(f.local<std::vector<int>>().size() == 1);
            CHECK_THROWS_WITH(f.local<int>(), contains("this frame's object has another type"));
        }
    };
    const scratch_folder folder;
    testing::chain c({.runtime_directory = folder.path.string()});
    c.add("sink", std::make_unique<two_types>());
    c.prepare();
    c.run(0);
    c.run(1);  // begins without a value
}

TEST_CASE("finish() gets a tombstone only of a stage that asks for it") {
    class sink : public stage {
    public:
        explicit sink(bool wants) : wants_(wants) {}
        u32 finished = 0, tombstones = 0;

    private:
        description configure(const configuration&) override { return {.wants_tombstones = wants_}; }
        void process(frame&) override {}
        [[nodiscard]] bool commits_on_host() const override { return true; }
        void finish(frame& f) override { ++(f.tombstone_reason().empty() ? finished : tombstones); }
        bool wants_;
    };
    for (const bool wants : {false, true}) {
        const scratch_folder folder;
        testing::chain c({.runtime_directory = folder.path.string()});
        auto object = std::make_unique<sink>(wants);
        const sink& at_end = *object;
        c.add("sink", std::move(object));
        c.prepare();
        c.run(0);
        c.run_tombstone(1, "given up");
        CHECK(at_end.finished == 1);
        CHECK(at_end.tombstones == (wants ? 1 : 0));
        const auto ledger =
            telemetry::ledger_reader::open(telemetry::ledger_path(folder.path.string(), "sink"));
        REQUIRE(ledger);
        CHECK(ledger->size() == 2);  // a tombstone is recorded in either case
    }
}

TEST_CASE("a plane that configure() names and the input lacks is refused at configuration") {
    class reader : public stage {
    public:
        explicit reader(plane_read reads) : reads_(std::move(reads)) {}

    private:
        description configure(const configuration&) override { return {.reads = {reads_}}; }
        void process(frame&) override {}
        plane_read reads_;
    };
    const auto refusal = [](plane_read reads) -> std::string {
        testing::chain c({});
        c.provide("source", wave);
        try {
            c.add("reader", std::make_unique<reader>(std::move(reads)), "{}", {"source"});
            return "";
        } catch (const config_error& e) {
            return e.what();
        }
    };
    CHECK(refusal({"wave"}) == "");
    CHECK(refusal({"wave", element::f32_}) == "");
    CHECK_THAT(refusal({"waves"}), contains("stage reader reads the plane \"waves\", which "
                                            "its input source does not have") &&
                                       contains("did you mean \"wave\"?"));
    CHECK_THAT(refusal({"wave", element::u8_}),
               contains("reads the plane \"wave\" of its input source as u8, but it is f32"));
    CHECK_THAT(refusal({"wave", {}, 1}),
               contains("of its input 2, but it has 1 input; add stages to the key inputs"));
}

TEST_CASE("a function that refers to a variable of process() is refused when it is enqueued") {
    class stage_that_captures : public stage {
    public:
        explicit stage_that_captures(int how) : how_(how) {}
        u64 rows = 0;

    private:
        description configure(const configuration&) override { return {}; }
        void process(frame& f) override {
            u64 step = 1;
            u64* const there = &rows;
            const std::string text = "text";
            if (how_ == 0) cpu::for_each_row(f, 3, [&](u64) { rows += step; });
            if (how_ == 1) cpu::for_each(f, 3, 3, [=, p = &step](u64) { *there += *p; });
            if (how_ == 2) cpu::enqueue(f, [&step](cpu::pool&) { ++step; });
            if (how_ == 3) cpu::for_each(f, 3, 3, [=, this](u64) { rows += step; });
            if (how_ == 4) cpu::for_each(f, 3, 3, [=](u64) { *there += step + text.size() - 4; });
            if (how_ == 5) {  // an address of this call is left in the padding
                struct with_padding {
                    bool one;
                    u64* to;
                    void operator()(u64) const { *to += one ? 1 : 0; }
                };
                alignas(with_padding) std::byte memory[sizeof(with_padding)];
                const u64* const address = &step;
                std::memcpy(memory, &address, sizeof address);
                cpu::for_each(f, 3, 3, *new (memory) with_padding{true, there});
            }
        }
        int how_;
    };
#if defined(__clang__)
    constexpr int ways = 5;  // Clang cannot clear padding
#else
    constexpr int ways = 6;
#endif
    for (int how = 0; how < ways; ++how) {
        CAPTURE(how);
        const scratch_folder folder;
        testing::chain c({.runtime_directory = folder.path.string()});
        auto object = std::make_unique<stage_that_captures>(how);
        const stage_that_captures& at_end = *object;
        c.add("sink", std::move(object));
        c.prepare();
        if (how < 3) {
            CHECK_THROWS_WITH(c.run(0), contains("refers to a variable of process()") &&
                                            contains("instead of references ([&]"));
        } else {
            c.run(0);
            CHECK(at_end.rows == 3);
        }
    }
}

TEST_CASE("functions of a prepared chain report a missing prepare(), and a later add() is refused") {
    const scratch_folder folder;
    testing::chain c({.runtime_directory = folder.path.string()});
    c.provide("source", wave);
    const auto missing = contains("before prepare(); call prepare() once, after the last add() and give()");
    CHECK_THROWS_WITH(c.run(0), contains("run() ") && missing);
    CHECK_THROWS_WITH(c.run_tombstone(0, "given up"), missing);
    CHECK_THROWS_WITH(c.run_in_flight(0, 2), missing);
    CHECK_THROWS_WITH(c.fill<f32>("source", "wave", {1, 2, 3, 4}), missing);
    CHECK_THROWS_WITH(c.read<f32>("source", "wave"), missing);
    CHECK_THROWS_WITH(c.metadata("source"), missing);
    CHECK_THROWS_WITH(c.set_used("source", "wave", {1}), missing);
    c.prepare();
    c.run(0);
    CHECK_THROWS_WITH(c.provide("other", wave), contains("give() was called after prepare()"));
    CHECK_THROWS_WITH(c.add("other", std::make_unique<curious>()),
                      contains("add() was called after prepare()"));
    CHECK_THROWS_WITH(c.prepare(), contains("prepare() was called after prepare()"));
}

TEST_CASE("the output directory is created by the first stage that asks for it") {
    class writer : public stage {
        description configure(const configuration& with) override {
            writes_ = with.settings->flag("writes", false);
            return {};
        }
        void prepare(environment& env) override {
            if (!writes_) return;
            const std::string there = env.output_directory();
            CHECK(std::filesystem::is_directory(there));
        }
        void process(frame&) override {}
        bool writes_ = false;
    };
    const scratch_folder folder;
    const auto there = folder.path / "runs" / "x-1";
    for (const bool writes : {false, true}) {
        testing::chain c({.runtime_directory = folder.path.string(), .output_directory = there.string()});
        c.add("writer", std::make_unique<writer>(), writes ? R"({"writes": true})" : "{}");
        c.prepare();
        CHECK(std::filesystem::is_directory(there) == writes);
    }
    const auto taken = folder.write("taken", "");
    testing::chain c({.runtime_directory = folder.path.string(), .output_directory = taken + "/x-1"});
    c.add("writer", std::make_unique<writer>(), R"({"writes": true})");
    CHECK_THROWS_WITH(c.prepare(), contains("creating the output directory " + taken + "/x-1: ") &&
                                       contains("start the run in"));
}
