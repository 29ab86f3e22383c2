// Frame parameters by name: what a schema may be, what may be set, and that displayed values can be set again
// bit for bit.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "parameters/parameter_schema.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;
using ring::parameter;
using ring::parameter_kind;
using ring::parameter_schema;
using test::contains;

namespace {

using bytes = std::vector<std::byte>;

/// One field of every kind, and every use of them.
parameter_schema lamp() {
    parameter_schema s{.type = "test.lamp", .bytes = 64, .fields = {}};
    s.fields = {
        {.name = "exposure",
         .offset = 0,
         .initial = {1},
         .low = 0,
         .high = 1000,
         .usual_low = 0.1,
         .usual_high = 4,
         .unit = "x"},
        {.name = "near",
         .offset = 4,
         .initial = {0.1F},
         .low = 0.01,
         .high = 100,
         .role = "hidden",
         .below = "far"},
        {.name = "far", .offset = 8, .initial = {50}, .low = 0.01, .high = 100, .step = 0.5},
        {.name = "light",
         .offset = 12,
         .count = 3,
         .initial = {0, 0, 1},
         .low = -1e6,
         .high = 1e6,
         .role = "direction"},
        {.name = "eye",
         .offset = 24,
         .count = 3,
         .initial = {1, 2, 3},
         .low = -10,
         .high = 10,
         .label = "where from",
         .role = "camera.eye"},
        {.name = "shading",
         .kind = parameter_kind::choice,
         .offset = 36,
         .choices = {"lit", "normals", "triangles", "depth"}},
        {.name = "wireframe", .kind = parameter_kind::flag, .offset = 40},
        {.name = "count",
         .kind = parameter_kind::integer,
         .offset = 44,
         .initial = {-2},
         .low = -5,
         .high = 7},
        {.name = "sides", .kind = parameter_kind::flag, .offset = 48, .count = 2, .initial = {1, 0}},
    };
    return s;
}

/// The message with which a value is refused; no byte may have been written.
std::string refusal(const parameter_schema& s, const std::string& name, const json& value) {
    bytes values = s.initial_values();
    try {
        s.set(values, name, value);
    } catch (const config_error& e) {
        CHECK(values == s.initial_values());
        return e.what();
    }
    return "";
}

/// The message with which a schema is refused.
std::string fault(const parameter_schema& s) {
    try {
        s.check();
    } catch (const config_error& e) {
        return e.what();
    }
    return "";
}

f64 value_of(const parameter_schema& s, const bytes& values, const char* name, u32 index = 0) {
    return parameter_schema::element_of(*s.find(name), values, index);
}

/// All displayed values, set into fresh values.
bytes set_again(const parameter_schema& s, const bytes& values) {
    const json shown = json::parse(s.values_json(values).dump());
    bytes out = s.initial_values();
    for (const auto& [name, value] : shown.items()) s.set(out, name, value);
    return out;
}

}  // namespace

TEST_CASE("a schema's fields begin with their initial values") {
    const parameter_schema s = lamp();
    CHECK(fault(s) == "");
    const bytes values = s.initial_values();
    CHECK(values.size() == 64);
    CHECK(value_of(s, values, "exposure") == 1);
    CHECK(value_of(s, values, "eye", 2) == 3);
    CHECK(value_of(s, values, "count") == -2);
    CHECK(value_of(s, values, "sides", 0) == 1);
    CHECK(s.is_possible(values));
    CHECK(s.names().size() == 9);
    CHECK(s.find("nothing") == nullptr);
    CHECK(s.describe() ==
          "test.lamp (64 bytes: exposure, near, far, light, eye, shading, wireframe, count, sides)");
    CHECK(parameter_schema{}.describe() == "no parameters");
    CHECK_FALSE(parameter_schema{});
}

TEST_CASE("values are set by name, each as its kind is written") {
    const parameter_schema s = lamp();
    bytes values = s.initial_values();
    s.set(values, "exposure", 2.5);
    s.set(values, "shading", "triangles");
    s.set(values, "wireframe", true);
    s.set(values, "count", -5);
    s.set(values, "eye", {-1, 0.25, 10});
    s.set(values, "sides", {false, true});
    CHECK(value_of(s, values, "exposure") == 2.5);
    CHECK(value_of(s, values, "shading") == 2);
    CHECK(value_of(s, values, "wireframe") == 1);
    CHECK(value_of(s, values, "count") == -5);
    CHECK(value_of(s, values, "eye", 1) == 0.25);
    CHECK(value_of(s, values, "sides", 1) == 1);
    CHECK(s.is_possible(values));
    s.set(values, "near", 0.01);  // the range includes its ends, although this one is slightly smaller as f32
    CHECK(s.is_possible(values));
}

TEST_CASE("an invalid set is refused with the expected value and a similar name or choice") {
    const parameter_schema s = lamp();
    CHECK(refusal(s, "exposure", 5000) == "exposure = 5000: expected a number from 0 to 1000");
    CHECK(refusal(s, "exposure", -0.5) == "exposure = -0.5: expected a number from 0 to 1000");
    CHECK(refusal(s, "exposure", "much") == "exposure = \"much\": expected a number from 0 to 1000");
    CHECK(refusal(s, "exposure", true) == "exposure = true: expected a number from 0 to 1000");
    CHECK(refusal(s, "exposure", {1, 2}) == "exposure = [1,2]: expected a number from 0 to 1000");
    CHECK(refusal(s, "exposure", std::nan("")) == "exposure = null: expected a number from 0 to 1000");
    CHECK(refusal(s, "exposure", 1e300) == "exposure = 1e+300: expected a number from 0 to 1000");
    CHECK(refusal(s, "shading", "lift") ==
          "shading = \"lift\": expected \"lit\" or \"normals\" or \"triangles\" or \"depth\"; did you mean "
          "\"lit\"?");
    CHECK(refusal(s, "shading", 1) ==
          "shading = 1: expected \"lit\" or \"normals\" or \"triangles\" or \"depth\"");
    CHECK(refusal(s, "wireframe", 1) == "wireframe = 1: expected true or false");
    CHECK(refusal(s, "count", 8) == "count = 8: expected a whole number from -5 to 7");
    CHECK(refusal(s, "count", 1.5) == "count = 1.5: expected a whole number from -5 to 7");
    CHECK(refusal(s, "eye", 1) == "eye = 1: expected a list of 3 numbers from -10 to 10");
    CHECK(refusal(s, "eye", {1, 2}) == "eye = [1,2]: expected a list of 3 numbers from -10 to 10");
    CHECK(refusal(s, "eye", {1, 2, 11}) == "eye = [1,2,11]: expected 3 numbers from -10 to 10");
    CHECK(refusal(s, "exposre", 1) == "no parameter \"exposre\"; did you mean \"exposure\"?");
    CHECK(refusal(s, "bananas", 1) == "no parameter \"bananas\"");
    CHECK(refusal(s, "exposure", std::string(5000, 'x')).size() < 200);
}

TEST_CASE("a direction is normalised in double precision, and one that points nowhere is refused") {
    const parameter_schema s = lamp();
    bytes values = s.initial_values();
    s.set(values, "light", {1, 1, 1});
    for (u32 k = 0; k < 3; ++k)
        CHECK(std::bit_cast<u32>(static_cast<f32>(value_of(s, values, "light", k))) ==
              std::bit_cast<u32>(0.577350269F));
    s.set(values, "light", {0, -3e5, 0});
    CHECK(value_of(s, values, "light", 1) == -1);
    CHECK(refusal(s, "light", {0, 0, 0}) == "light = [0,0,0]: expected a direction other than [0, 0, 0]");
    CHECK_THAT(refusal(s, "light", {1e-60, 0, 0}), contains("a direction other than"));
    CHECK_THAT(refusal(s, "light", {2e6, 0, 0}), contains("3 numbers from -1000000 to 1000000"));
}

TEST_CASE("a field that must be below another is held to it when all are set") {
    const parameter_schema s = lamp();
    bytes values = s.initial_values();
    CHECK_NOTHROW(s.check_values(values));
    s.set(values, "far", 0.1F);
    CHECK_THROWS_WITH(s.check_values(values), "near must be below far");
    CHECK_FALSE(s.is_possible(values));
    s.set(values, "near", 0.05);
    CHECK_NOTHROW(s.check_values(values));
    CHECK(s.is_possible(values));
}

TEST_CASE("displayed values can be set again and give the same bits") {
    const parameter_schema s = lamp();
    std::mt19937_64 random(11);
    const auto any = [&](f64 low, f64 high) {
        return low + (high - low) * (static_cast<f64>(random() >> 11U) * 0x1p-53);
    };
    for (int round = 0; round < 3000; ++round) {
        bytes values = s.initial_values();
        // down to the subnormal numbers of f32
        s.set(values, "exposure", any(0, 1000) * std::pow(2, -any(0, 160)));
        s.set(values, "near", any(0.01, 1));
        s.set(values, "light", {any(-1, 1), any(-1, 1), any(-1, 1) * std::pow(2, -any(0, 80))});
        s.set(values, "eye", {any(-10, 10), any(-1e-3, 1e-3), -0.0});
        s.set(values, "shading", s.find("shading")->choices[random() % 4]);
        s.set(values, "count", static_cast<i64>(random() % 13) - 5);
        s.set(values, "sides", {random() % 2 == 0, random() % 2 == 0});
        REQUIRE(s.is_possible(values));
        REQUIRE(set_again(s, values) == values);
    }
}

TEST_CASE("numbers are shown as short as they can be, and only those that differ if that is asked for") {
    const parameter_schema s = lamp();
    bytes values = s.initial_values();
    const bytes before = values;
    CHECK(s.values_json(values, before) == json::object());
    s.set(values, "exposure", 0.1);
    s.set(values, "shading", "depth");
    CHECK(s.values_json(values, before).dump() == R"({"exposure":0.1,"shading":"depth"})");
    CHECK(s.values_json(values).size() == 9);
    CHECK(s.values_json(values)["eye"] == json({1, 2, 3}));
    CHECK(s.values_json(values)["sides"] == json({true, false}));
    CHECK(s.values_json(values)["count"] == -2);
}

TEST_CASE("bytes that no process can have set are not trusted") {
    const parameter_schema s = lamp();
    const auto with = [&](const char* name, auto value, u32 index = 0) {
        bytes values = s.initial_values();
        std::memcpy(values.data() + s.find(name)->offset + 4 * index, &value, 4);
        return s.is_possible(values);
    };
    CHECK(with("exposure", 1000.0F));
    CHECK_FALSE(with("exposure", 1000.1F));
    CHECK_FALSE(with("exposure", std::nanf("")));
    CHECK_FALSE(with("eye", INFINITY, 2));
    CHECK_FALSE(with("light", 0.5F, 2));
    CHECK(with("light", 1.0005F, 2));
    CHECK_FALSE(with("light", std::nanf(""), 1));
    CHECK_FALSE(with("near", 60.0F));
    CHECK_FALSE(with("wireframe", u32{2}));
    CHECK_FALSE(with("shading", u32{4}));
    CHECK(with("shading", u32{3}));
    CHECK_FALSE(with("count", i32{8}));
    CHECK_FALSE(with("sides", ~u32{0}, 1));
    CHECK_FALSE(s.is_possible(bytes(63)));
    const bytes damaged(64, std::byte{0xFF});
    CHECK(s.values_json(damaged)["exposure"].is_null());
    CHECK(s.values_json(damaged)["shading"].is_null());
    CHECK(parameter_schema::element_of(*s.find("count"), bytes(46)) == 0);
}

TEST_CASE("a schema passes through JSON unchanged, and default values are omitted") {
    const parameter_schema s = lamp();
    CHECK(parameter_schema::from_json(json::parse(s.to_json().dump())) == s);
    const json j = s.to_json();
    CHECK(j["fields"][6] == json({{"name", "wireframe"}, {"kind", "flag"}, {"offset", 40}}));
    CHECK(j["fields"][2]["step"] == 0.5);
}

TEST_CASE("JSON that is not a schema is refused") {
    const auto refused = [](const char* text) {
        CHECK_THROWS_AS(parameter_schema::from_json(json::parse(text)), config_error);
    };
    refused("null");
    refused("[]");
    refused("{}");
    refused(R"({"type": 3, "bytes": 4})");
    refused(R"({"type": "t", "bytes": -4})");
    refused(R"({"type": "t", "bytes": 4.5})");
    refused(R"({"type": "t", "bytes": 257})");
    refused(R"({"type": "t", "bytes": 4, "fields": {}})");
    refused(R"({"type": "t", "bytes": 4, "fields": [4]})");
    refused(R"({"type": "t", "bytes": 4, "fields": [{"kind": "number"}]})");
    refused(R"({"type": "t", "bytes": 4, "fields": [{"name": "a", "kind": "matrix"}]})");
    refused(R"({"type": "t", "bytes": 4, "fields": [{"name": "a", "offset": 4}]})");
    refused(R"({"type": "t", "bytes": 4, "fields": [{"name": "a", "count": 1e99}]})");
    refused(R"({"type": "t", "bytes": 4, "fields": [{"name": "a", "initial": ["0"]}]})");
    refused(R"({"type": "t", "bytes": 4, "fields": [{"name": "a", "kind": "choice", "choices": [1]}]})");
    json many{{"type", "t"}, {"bytes", 256}, {"fields", json::array()}};
    for (int k = 0; k < 65; ++k) many["fields"].push_back({{"name", "f"}});
    CHECK_THROWS_AS(parameter_schema::from_json(many), config_error);
    CHECK(parameter_schema::from_json(json::parse(R"({"type": "t", "bytes": 4, "fields": [{"name": "a"}]})"))
              .fields[0]
              .high == 1);
}

TEST_CASE("a schema that makes no sense is refused, and the fault is named") {
    const auto with = [](const auto& change) {
        parameter_schema s = lamp();
        change(s.fields[0], s);
        return fault(s);
    };
    CHECK_THAT(with([](parameter&, parameter_schema& s) { s.type = ""; }), contains("expected a type"));
    CHECK_THAT(with([](parameter&, parameter_schema& s) { s.bytes = 260; }),
               contains("260 bytes; 1 to 256 are possible"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.name = "ex posure"; }),
               contains("letters, digits and _"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.name = std::string(48, 'n'); }),
               contains("letters, digits and _"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.name = "near"; }),
               contains("\"near\" occurs twice"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.offset = 2; }), contains("not a multiple of 4"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.offset = 64; }),
               contains("not within the 64 bytes"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.offset = ~u32{3}; }),
               contains("not within the 64 bytes"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.offset = 16; }),
               contains("\"exposure\" and \"light\" overlap"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.count = 5; }), contains("5 elements; 1 to 4"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) {
                   p.initial = {1, 2};
               }),
               contains("2 initial values for 1 elements"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.initial = {1001}; }),
               contains("has the initial value 1001"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.initial = {std::nan("")}; }),
               contains("has the initial value nan"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.low = 1000; }),
               contains("can't be from 1000 to 1000"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.high = INFINITY; }),
               contains("can't be from 0 to inf"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.usual_high = 2000; }),
               contains("usually from 0.1 to 2000"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.step = -1; }), contains("step"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.unit = std::string(48, 'u'); }),
               contains("label or unit"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.role = "camera.eyes"; }),
               contains("did you mean \"camera.eye\"?"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.role = "direction"; }),
               contains("needs 3 elements of the kind number"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.below = "exposure"; }),
               contains("there is no other field of that name"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.below = "light"; }),
               contains("both must be single numbers"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.choices = {"a"}; }),
               contains("has choices, but is of the kind number"));
    CHECK_THAT(with([](parameter& p, parameter_schema&) { p.kind = parameter_kind::choice; }),
               contains("0 choices; 1 to 32"));
    CHECK_THAT(with([](parameter&, parameter_schema& s) { s.fields[5].choices.resize(33, "c"); }),
               contains("33 choices"));
    CHECK_THAT(with([](parameter&, parameter_schema& s) { s.fields[5].choices[1] = "lit"; }),
               contains("occurs twice or is not a word"));
    CHECK_THAT(with([](parameter&, parameter_schema& s) { s.fields[2].initial = {0.05}; }),
               contains("near must be below far"));
    CHECK_THAT(with([](parameter&, parameter_schema& s) {
                   s.fields[3].initial = {1, 1, 1};
               }),
               contains("not a unit vector"));
    CHECK_THAT(with([](parameter&, parameter_schema& s) { s.fields.resize(65); }), contains("65 fields"));
}
