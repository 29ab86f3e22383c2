// Each lesson is fed figures that contradict it: it must fail, or choose the other explanation.
#include <algorithm>
#include <cstring>

#include "lab/lesson.hpp"
#include "lab/run_lesson.hpp"
#include "tests/pipelines/lab/contraries.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::lab;
using namespace carousel::test;

namespace {

claim_verdict judged(const contrary& c, std::map<std::string, f64> values) {
    for (const auto& [name, value] : c.change) values.insert({name, value});
    figures f;
    f.values = std::move(values);
    const lesson& l = lesson_from(c.lesson);
    const auto at = std::find_if(l.claims.begin(), l.claims.end(),
                                 [&](const claim& one) { return std::strcmp(one.name, c.claim) == 0; });
    REQUIRE(at != l.claims.end());
    return judge(*at, f);
}

}  // namespace

TEST_CASE("contradicting figures make a lesson fail or select the other explanation") {
    for (const contrary& c : all_contraries()) {
        CAPTURE(c.lesson, c.claim);
        const claim_verdict usual = judged(c, c.usual);
        CHECK(usual.what == outcome::explained);
        CHECK(usual.row == 0);
        auto values = c.change;  // insert() above keeps an existing value: the change counts
        values.insert(c.usual.begin(), c.usual.end());
        const claim_verdict other = judged(c, values);
        if (c.row == fails) {
            CHECK(other.what == outcome::unexplained);
        } else {
            CHECK(other.what == outcome::explained);
            CHECK(other.row == c.row);
        }
    }
}

TEST_CASE("each lesson has a set of contrary figures, and its deciding claim has answers") {
    for (const lesson* l : all_lessons()) {
        CAPTURE(l->name);
        CHECK(std::any_of(all_contraries().begin(), all_contraries().end(),
                          [&](const contrary& c) { return std::strcmp(c.lesson, l->name) == 0; }));
        const auto decides = std::find_if(l->claims.begin(), l->claims.end(), [&](const claim& c) {
            return std::strcmp(c.name, l->decided_by) == 0;
        });
        REQUIRE(decides != l->claims.end());
        for (const explanation_row& row : decides->rows) {
            CHECK(row.answer >= 0);
            CHECK(row.answer < static_cast<int>(l->answers.size()));
        }
    }
}

TEST_CASE("no claim is explained by no figures, and each row asks for some") {
    for (const lesson* l : all_lessons())
        for (const claim& c : l->claims) {
            CAPTURE(l->name, c.name);
            CHECK(judge(c, figures{}).what == outcome::unexplained);
            for (const explanation_row& row : c.rows) CHECK_FALSE(row.when.empty());
        }
}

TEST_CASE("without a GPU, a second GPU or MPS, those claims say so and the others are judged") {
    for (const char* need : {"gpu", "two_gpus", "mps"}) {
        figures f;
        f.missing[need] = std::string("none here: ") + need;
        u32 judged = 0;
        for (const lesson* l : all_lessons())
            for (const claim_verdict& v : judge(*l, f)) {
                CAPTURE(l->name, v.about->name);
                const bool needs = std::strcmp(v.about->needs, need) == 0;
                CHECK((v.what == outcome::unavailable) == needs);
                if (needs) CHECK(v.text == f.missing[need]);
                judged += needs;
            }
        CHECK(judged > 0);
    }
}

TEST_CASE("a claim whose requirement is missing names the reason and does not fail the lesson") {
    figures f;
    f.missing["shm"] = "no POSIX shared memory here: No such file or directory";
    const lesson& l = lesson_from("order");
    for (const claim_verdict& v : judge(l, f))
        if (std::strcmp(v.about->needs, "shm") == 0) {
            CHECK(v.what == outcome::unavailable);
            CHECK(v.text == f.missing["shm"]);
        }
    CHECK_FALSE(right_answer(l, judge(l, f)));
}
