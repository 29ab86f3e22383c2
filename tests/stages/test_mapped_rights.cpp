// How runners map the memory of other stages, and what they report if it can't be mapped read-only.
#include <algorithm>
#include <atomic>

#include "tests/stages/in_process.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exception_text.hpp"
#include "tests/support/mapped_rights.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

/// The mappings of stage 2 of four, which reads ring 1, samples ring 0, writes ring 2 and reads the source's
/// asset.
struct rights {
    std::string input, sampled_input, output, asset;
    bool inputs_writable = false;
};

rights of_a_run(bool own_mappings) {
    threads_of_a_run::options o;
    o.stages = 4;
    o.frames = 20;
    o.sampled_links = {{2, 0}};
    o.own_mappings = own_mappings;
    o.asset = true;
    rights seen;
    std::atomic<int> sevens{0};
    o.at_prepared = [&](u32 stage, stages::runtime& r) {
        const std::span<const std::byte> table = r.asset("table");
        sevens += std::count(table.begin(), table.end(), std::byte{7}) == 4096 ? 1 : 0;
        if (stage != 2) return;
        seen.input = rights_at(r.input(0).slot(0));
        seen.sampled_input = rights_at(r.sampled_input(0).slot(0));
        seen.output = rights_at(r.output()->slot(0));
        seen.asset = rights_at(table.data());
        seen.inputs_writable = (r.entry().guard & shm::memory_guard::inputs_writable) != 0;
    };
    threads_of_a_run run(o);
    run.run();
    CHECK(sevens == 4);
    CHECK(run.sink().frames == 20);
    CHECK(run.sink().wrong == 0);
    return seen;
}

}  // namespace

TEST_CASE("inputs, sampled inputs and assets of others are mapped read-only, an output is not") {
    const rights seen = of_a_run(true);
    CHECK(seen.input == "r--s");
    CHECK(seen.sampled_input == "r--s");
    CHECK(seen.asset == "r--s");
    CHECK(seen.output == "rw-s");
    CHECK_FALSE(seen.inputs_writable);
}

TEST_CASE("if memory can't be mapped read-only, the stage's word says so") {
    const std::string log = exception_text([] { CHECK(of_a_run(false).inputs_writable); });
    for (const char* what : {"input stage1", "input stage0", "asset table"})
        CHECK_THAT(log, contains(std::string("its ") + what + " is unguarded: its memory can't be mapped"));
    CHECK_THAT(exception_text([] { (void)of_a_run(true); }), !contains("unguarded"));
}

TEST_CASE("a single writable asset is enough to report writable inputs") {
    threads_of_a_run::options o;
    o.stages = 2;
    o.frames = 20;
    o.asset = true;
    bool before = true, after = false;
    o.at_prepared = [&](u32 stage, stages::runtime& r) {
        if (stage != 0) return;  // it reads no ring
        before = (r.entry().guard & shm::memory_guard::inputs_writable) != 0;
        (void)r.asset("table");
        after = (r.entry().guard & shm::memory_guard::inputs_writable) != 0;
    };
    threads_of_a_run run(o);
    CHECK_THAT(exception_text([&] { run.run(); }),
               contains("its asset table is unguarded: its memory can't be mapped read-only"));
    CHECK_FALSE(before);
    CHECK(after);
}
