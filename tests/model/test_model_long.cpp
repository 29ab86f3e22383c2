// The larger set-ups: the same properties with more frames, groups, incarnations and jobs in flight. Up to 4
// GiB, minutes.

#include "reentry_model.hpp"
#include "test_support.hpp"

using namespace carousel::model;

// The largest set-ups; they run by name only: ./tests/run --campaign models.
TEST_CASE("the protocol as written holds in the large set-ups of one stage", "[.largest]") {
    check_entries(holding_entries(), effort::lengthy, true);
}

TEST_CASE("sizes hold with two jobs in flight") { check_entries(sizing_entries(), effort::lengthy, true); }

TEST_CASE("sizes that are too small for two jobs in flight are detected") {
    check_entries(sizing_entries(), effort::lengthy, false);
}

TEST_CASE("the large pipelines hold") { check_entries(pipeline_entries(), effort::lengthy, true); }

TEST_CASE("the large forks hold") { check_entries(output_entries(), effort::lengthy, true); }

TEST_CASE("states enter the words of two rebuilds in a row") {
    CHECK(explore_reentry({.state = true, .rebuilds = 2}).sound());
}
