#include "core/user_input.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

TEST_CASE("edit distance counts inserts, deletes, replacements and swaps of neighbours") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("restrat", "restart") == 1);
    CHECK(edit_distance("ab", "ba") == 1);
}

TEST_CASE("a mistyped word gets a suggestion, an unrelated one gets none") {
    const std::vector<std::string> words = {"in_flight", "instances", "inputs", "device"};
    CHECK(did_you_mean("in_fligth", words) == "in_flight");
    CHECK(did_you_mean("input", words) == "inputs");
    CHECK(did_you_mean("Device", words) == "device");
    CHECK(did_you_mean("dev", words) == "device");
    CHECK(did_you_mean("triangles", words).empty());
    CHECK(did_you_mean("", words).empty());
    CHECK(did_you_mean("in", words).empty());
    CHECK(did_you_mean(std::string(100'000, 'x'), words).empty());
    CHECK(did_you_mean_clause("imputs", words) == "; did you mean \"inputs\"?");
    CHECK(did_you_mean_clause("triangles", words).empty());
}

TEST_CASE("a key or option of version 0.1.0 is answered with its new name, where that is possible") {
    CHECK(did_you_mean("latest", {"inputs", "sampled"}) == "sampled");
    CHECK(did_you_mean("--near", {"--join", "--coordinator"}) == "--coordinator");
    CHECK(did_you_mean("--no-ask", {"--no-prediction", "--all"}) == "--no-prediction");
    CHECK(did_you_mean("latest", {"inputs", "latency"}).empty());
}
