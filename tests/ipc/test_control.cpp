// The histories of a primitive with one seeded bug compiled in must fail, by the rule that the bug breaks.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "control.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

TEST_CASE("control: the seeded bug breaks its rule in the primitive's histories") {
    // Each program has one bug and is named after it.
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename().string();
    const auto ours = std::find_if(controls.begin(), controls.end(), [&](const control& c) {
        return program == "test_ipc_bug_" + std::string(c.bug);
    });
    INFO(program);
    REQUIRE(ours != controls.end());
    u64 done = 0;
    history_options o;
    o.patience_ns = 4'000'000'000;  // many bugs leave a client waiting forever
    const campaign_result all = histories(ours->of, false, done, ours->rule, o);
    std::cout << ours->bug << ": " << all.text() << '\n';
    INFO(ours->bug << ": " << all.text());
    CHECK(all.failed > 0);
    CHECK_THAT(all.finding, contains(ours->rule));
}
