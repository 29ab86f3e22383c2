// The layout of a lesson: in a terminal, on the page, in plots.
#include <algorithm>
#include <sstream>

#include "core/errors.hpp"
#include "lab/lesson_report.hpp"
#include "plot/chart.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::lab;
using namespace carousel::test;

namespace {

lesson_result result_of(const char* name, std::map<std::string, f64> values) {
    lesson_result r;
    r.about = &lesson_from(name);
    r.measured.values = std::move(values);
    r.measured.missing["gpu"] = "no GPU <here>";
    r.verdicts = judge(*r.about, r.measured);
    return r;
}

std::size_t widest(const std::string& text) {
    std::istringstream lines(text);
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return most;
}

}  // namespace

TEST_CASE("a lesson is found by its number, its name and its folder") {
    for (const char* word : {"5", "05", "coherence", "05_coherence"}) CHECK(lesson_from(word).number == 5);
    CHECK_THROWS_WITH(lesson_from("cohernce"), contains("did you mean \"coherence\""));
    CHECK_THROWS_WITH(lesson_from("99"), contains("`carousel lab` lists all lessons"));
    CHECK_THROWS_AS(lesson_from(""), config_error);
}

TEST_CASE("each lesson has a page of at most one screen") {
    for (const lesson* l : all_lessons()) {
        CAPTURE(l->name);
        const std::string html = page_of(*l);
        CHECK(html.size() > 200);
        CHECK(std::count(html.begin(), html.end(), '\n') <= 24);
        CHECK(widest(html) <= 96);
        CHECK(list_text(80).find(l->name) != std::string::npos);
        CHECK(widest(question_text(*l, 100)) <= 100);
    }
}

TEST_CASE("predictions are read as people type them") {
    CHECK(answer_from("b", 3) == 1);
    CHECK(answer_from(" B) ", 3) == 1);
    for (const char* typed : {"", "d", "bc", "1", "?"}) CHECK_FALSE(answer_from(typed, 3));
}

TEST_CASE("a result has the prediction, the figures and the kill last") {
    const std::string text = result_text(
        result_of("events", {{"hang.released", 0}, {"early.wrong", 50}, {"early.tries", 50}}), 0, 100);
    CHECK(text.find("You predicted a); the answer is b)") != std::string::npos);
    CHECK(text.find("50 of 50 frames were read") != std::string::npos);
    CHECK(text.find("the kill: a signal") > text.find("ready is set before the work"));
    CHECK(text.find("UNEXPLAINED: no explanation fits the measured figures: late.wrong is missing") !=
          std::string::npos);
    CHECK(text.find("FAILED in") != std::string::npos);
    CHECK(result_text(result_of("events", {{"hang.released", 0}}), 1, 100).find("prediction was right") !=
          std::string::npos);
}

TEST_CASE("claims that can't be measured here are named once, with figures recorded elsewhere") {
    lesson_result r = result_of("events", {});
    r.recorded_on = "NVIDIA H200, yesterday";
    recording elsewhere = recording_from("NVIDIA H200, yesterday\nfigure cuda.never.query 0\n");
    CHECK(elsewhere.machine == r.recorded_on);
    const std::string before = result_text(r, std::nullopt, 1000);
    CHECK(before.find("not here: no GPU <here>: CUDA: ") != std::string::npos);
    CHECK(before.find("recorded on") == std::string::npos);
    for (const claim& c : r.about->claims)  // figures that each of its claims explains
        for (const condition& one : c.rows.front().when)
            elsewhere.measured.values[one.figure] =
                one.is == relation::below ? one.bound - 1 : one.bound + (one.is == relation::above ? 1 : 0);
    add_recorded(elsewhere, r.verdicts);
    const std::string text = result_text(r, std::nullopt, 1000);
    const std::string reason = "not here: no GPU <here>";
    CHECK(text.find(reason) != std::string::npos);
    CHECK(text.find(reason) == text.rfind(reason));
    CHECK(text.find("shown by figures recorded on NVIDIA H200, yesterday") != std::string::npos);
    CHECK(text.find("  recorded: ") != std::string::npos);
    CHECK(html_report({r}, {"p", "s", "w"}).find("<th>recorded on NVIDIA H200, yesterday</th>") !=
          std::string::npos);
}

TEST_CASE("the prediction that agrees with the C++ standard is right for any compiler's behaviour") {
    for (const f64 sees : {0., 1., 2.})
        CHECK(result_text(result_of("coherence", {{"plain.sees", sees}}), 1, 100)
                  .find("Your prediction was right: b)") != std::string::npos);
}

TEST_CASE("each lesson with a program for a GPU has recorded figures that its claims explain") {
    for (const lesson* l : all_lessons()) {
        CAPTURE(l->name);
        const recording from = recording_from(recorded_of(*l));
        bool has_gpu_program = false;
        for (const lesson_program& p : l->programs) has_gpu_program |= std::string(p.needs) == "gpu";
        CHECK(from.machine.empty() == !has_gpu_program);
        if (!has_gpu_program) continue;
        for (const claim& c : l->claims) {
            CAPTURE(c.name);
            if (std::string(c.needs) == "gpu") CHECK(judge(c, from.measured).what == outcome::explained);
        }
    }
}

TEST_CASE("the page needs no other files and escapes quoted text") {
    lesson_result r = result_of("events", {{"word.us", 85}});
    r.failures.emplace_back("<script>");
    const std::string html = html_report({r}, {"a & b", "Linux", "today"});
    CHECK(html.find("a &amp; b") != std::string::npos);
    CHECK(html.find("&lt;script&gt;") != std::string::npos);
    CHECK(html.find("<script>") == std::string::npos);
    CHECK(html.find("<code>ready</code>") != std::string::npos);
    CHECK(html.find("<svg") != std::string::npos);
    for (const char* external_reference : {"src=", "@import", "url("})
        CHECK(html.find(external_reference) == std::string::npos);
    CHECK(html.find("Not here (no GPU &lt;here&gt;): CUDA: an event that was never recorded; ") !=
          std::string::npos);
    CHECK(failures_text({r}) == "1 of 1 lessons failed: 2 (events)\n");
}

TEST_CASE("plots omit values that a logarithmic axis can't show, and keep within their width") {
    const plot::chart c{"t", "s", "bytes", "GB/s", {{"a<b", {{1, 1}, {0, 5}, {1e6, 3e3}}, false, 0}}};
    const std::string svg = plot::svg_of(c);
    CHECK(svg.find("a&lt;b") != std::string::npos);
    std::size_t dots = 0;
    for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
        ++dots;
    CHECK(dots == 2);
    CHECK(widest(plot::text_of(c, 60)) <= 60);
    const plot::bar_chart b{"t", "s", "us", {{"one", 3}, {"none", 0}, {"long name of a bar", 4000}}};
    CHECK(widest(plot::text_of(b, 60)) <= 60);
    CHECK(plot::text_of(b, 60).find("none -") != std::string::npos);
    CHECK(plot::svg_of(b).find(">4000<") != std::string::npos);
    CHECK(plot::value_text(12236.4) == "12236");
    CHECK(plot::value_text(0.012345) == "0.0123");
    CHECK(plot::svg_of(plot::chart{}).find("no data") != std::string::npos);
    CHECK(plot::text_of(plot::bar_chart{"t", "", "us", {}}, 60).find("no data") != std::string::npos);
}
