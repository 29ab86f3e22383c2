// The ring's code in each order of its accesses to shared words (interleaving_explorer.hpp), within a number
// of preemptions, and in random orders beyond it. test_explored_control.cpp has the same scenarios with
// seeded bugs.

#include <atomic>
#include <cstdio>

#include "explored_scenarios.hpp"
#include "tests/support/seed.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

/// Two processes add 1 to a word, by a load and a store or in one step.
explored add_in_two_processes(bool in_one_step, u32 preemptions) {
    alignas(8) std::atomic<u64> sum{0};
    const auto add = [&] {
        if (in_one_step)
            sum.fetch_add(1);
        else
            sum.store(sum.load() + 1);
    };
    return explore({[&] { sum.store(0); },
                    {add, add},
                    [&] { return std::string(sum.load() == 2 ? "" : "an addition is lost"); },
                    {std::as_bytes(std::span(&sum, 1))}},
                   preemptions, 100);
}

}  // namespace

TEST_CASE("the explorer visits each order once, and finds a lost addition") {
    const explored all = add_in_two_processes(true, 9);
    INFO(all.text());
    CHECK(all.finding.empty());
    CHECK(all.complete);
    const explored lost = add_in_two_processes(false, 1);
    INFO(lost.text());
    CHECK(lost.finding.starts_with("an addition is lost"));
    CHECK(add_in_two_processes(false, 0).finding.empty());
}

TEST_CASE("in every order within the preemptions nothing is lost, repeated, torn or held") {
    for (const named_scenario& s : scenarios) {
        const explored e =
            s.explore([&](const explored_scenario& x) { return explore(x, s.preemptions, 100'000); });
        const std::string text = e.text();
        std::printf("%s, %u preemptions: %s\n", s.name.data(), s.preemptions, text.c_str());
        CHECK(e.finding == "");
        CHECK(e.complete);
    }
}

TEST_CASE("in random orders nothing is lost, repeated, torn or held") {
    const u64 seed = seed_or(1);
    INFO("seed " << seed);
    for (const named_scenario& s : scenarios) {
        const explored e =
            s.explore([&](const explored_scenario& x) { return explore_at_random(x, seed, scaled(300)); });
        INFO(s.name << ": " << e.text());
        CHECK(e.finding == "");
    }
}

TEST_CASE("in every order with one preemption more nothing is lost, repeated, torn or held", "[.campaign]") {
    for (const named_scenario& s : scenarios) {
        const explored e =
            s.explore([&](const explored_scenario& x) { return explore(x, s.preemptions + 1, 20'000'000); });
        const std::string text = e.text();
        std::printf("%s, %u preemptions: %s\n", s.name.data(), s.preemptions + 1, text.c_str());
        CHECK(e.finding == "");
        CHECK(e.complete);
    }
}
