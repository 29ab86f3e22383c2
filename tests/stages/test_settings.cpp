#include "stages/sdk/configuration.hpp"

#include "core/user_input.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using carousel::settings;
using carousel::settings_error;
using test::contains;

TEST_CASE("settings return the written value, or the default") {
    const auto s = settings::from_json(R"({"n": 5, "x": 0.25, "whole": 2, "on": true, "name": "teapot"})");
    CHECK(s.integer("n", 1, 0, 10) == 5);
    CHECK(s.integer("absent", 7, 0, 10) == 7);
    CHECK(s.number("x", 1.0, 0.0, 1.0) == 0.25);
    CHECK(s.number("whole", 1.0, 0.0, 5.0) == 2.0);
    CHECK(s.flag("on", false));
    CHECK(s.text("name", "") == "teapot");
    CHECK(s.choice("name", "cup", {"cup", "teapot"}) == "teapot");
    CHECK(s.has("x"));
    CHECK_FALSE(s.has("y"));
    CHECK_NOTHROW(s.refuse_unread());
}

TEST_CASE("a table of settings has its entries as texts") {
    const auto s = settings::from_json(R"({"options": {"preset": "fast", "crf": 18, "on": true}, "n": 1})");
    const std::map<std::string, std::string> expected{{"crf", "18"}, {"on", "true"}, {"preset", "fast"}};
    CHECK(s.texts("options") == expected);
    CHECK(s.texts("absent").empty());
    CHECK_THROWS_WITH(s.texts("n"), contains("n = 1: expected a table"));
    const auto nested = settings::from_json(R"({"options": {"list": [1]}})");
    CHECK_THROWS_AS(nested.texts("options"), settings_error);
}

TEST_CASE("a wrong type or a value out of range names the key, the value and the range") {
    const auto s = settings::from_json(R"({"n": 50, "x": "a", "big": 18446744073709551615, "half": 0.5})");
    CHECK_THROWS_WITH(s.integer("n", 1, 0, 10), contains("n = 50") && contains("0 to 10"));
    CHECK_THROWS_AS(s.integer("big", 1, -10, INT64_MAX), settings_error);
    CHECK_THROWS_AS(s.integer("half", 1, 0, 10), settings_error);
    CHECK_THROWS_AS(s.number("x", 1, 0, 10), settings_error);
    CHECK_THROWS_AS(s.flag("n", true), settings_error);
    CHECK_THROWS_AS(s.text("n", ""), settings_error);
    try {
        (void)s.integer("n", 1, 0, 10);
        FAIL("must throw");
    } catch (const settings_error& e) {
        CHECK(e.key() == "n");
        CHECK(e.code() == exit_code::usage);
    }
}

TEST_CASE("a mistyped choice is refused with a suggestion") {
    const auto s = settings::from_json(R"({"mesh": "bumpy-spehre"})");
    CHECK_THROWS_WITH(s.choice("mesh", "", {"terrain", "bumpy-sphere"}),
                      contains("did you mean \"bumpy-sphere\"?"));
}

TEST_CASE("an unread key is refused with a suggestion") {
    const auto s = settings::from_json(R"({"triangels": 100})");
    (void)s.integer("triangles", 1, 0, 10);
    CHECK_THROWS_WITH(s.refuse_unread(),
                      contains("unknown key \"triangels\"") && contains("did you mean \"triangles\"?"));
    CHECK_THROWS_AS(settings::from_json(R"({"a": 1})").refuse_unread(), settings_error);
}

TEST_CASE("a text that is not a JSON object is refused") {
    CHECK_THROWS_AS(settings::from_json("{"), config_error);
    CHECK_THROWS_AS(settings::from_json("[1]"), config_error);
}

TEST_CASE("suggestions stay near the word") {
    CHECK(carousel::did_you_mean("fragmnet", {"vertex", "fragment"}) == "fragment");
    CHECK(carousel::did_you_mean("x", {"vertex", "fragment"}).empty());
}
