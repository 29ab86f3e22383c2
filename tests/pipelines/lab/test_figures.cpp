// The lines that a lesson's program may print.
#include "core/errors.hpp"
#include "lab/lesson.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::lab;

TEST_CASE("figures, curve points, missing parts and other lines are distinguished") {
    figures f;
    read_figures(
        "figure a.us 12.5\ncurve own 16 3\ncurve other 16 2e1\ncurve own 32 4\nmissing gpu no driver here\n"
        "figures of speech\n",
        f);
    CHECK(f.values == std::map<std::string, f64>{{"a.us", 12.5}});
    REQUIRE(f.curves.size() == 2);
    CHECK(f.curves[0].name == "own");
    CHECK(f.curves[0].points == std::vector<std::pair<f64, f64>>{{16, 3}, {32, 4}});
    CHECK(f.missing.at("gpu") == "no driver here");
    CHECK(f.other_lines == std::vector<std::string>{"figures of speech"});
}

TEST_CASE("figures that are written as text are read back") {
    figures f, read;
    f.values = {{"a.us", 12.5}, {"b", 1e9}};
    f.curves = {{"own", {{16, 3}, {32, 4}}}};
    f.missing["gpu"] = "no GPU";
    read_figures(figures_text(f), read);
    CHECK(read.values == f.values);
    REQUIRE(read.curves.size() == 1);
    CHECK(read.curves[0].name == "own");
    CHECK(read.curves[0].points == f.curves[0].points);
    CHECK(read.missing.empty());
}

TEST_CASE("a line that begins like a figure but is invalid is refused") {
    for (const char* line : {"figure a", "figure a x", "figure a 1 2", "figure a nan", "figure a 1e999",
                             "curve a 1", "curve a 1 2 3", "missing ", "figure  "}) {
        CAPTURE(line);
        figures f;
        CHECK_THROWS_AS(read_figures(line, f), config_error);
    }
}
