// The files of checkpoints, with a death after each step of writing them.
#include "run/checkpoint.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using test::contains;

namespace {

constexpr u64 layout = 77;

std::vector<std::byte> state_of(u64 frame) { return std::vector<std::byte>(5000, std::byte(frame)); }

int write(const std::string& folder, const std::string& stage, u64 frame,
          const run::checkpoint_hook& after = {}) {
    return run::write_state(folder, {stage, frame, layout}, state_of(frame), after);
}

std::optional<std::vector<std::byte>> read(const std::string& folder, const std::string& stage, u64 frame) {
    return run::read_state(folder, {stage, frame, layout}, state_of(frame).size());
}

/// Runs `work` in a process that ends after that step of writing a file.
template <typename F>
void dies_after(run::checkpoint_step step, F&& work) {
    const test::ending end = test::in_child([&] {
        work([&](run::checkpoint_step at) {
            if (at == step) ::_exit(7);
        });
    });
    REQUIRE(end.code == 7);
}

constexpr run::checkpoint_step steps[] = {run::checkpoint_step::opened, run::checkpoint_step::written,
                                          run::checkpoint_step::synced, run::checkpoint_step::renamed};

}  // namespace

TEST_CASE("a state is read as it was written, by its stage, frame and layout") {
    const scratch_folder scratch;
    const std::string folder = scratch.path.string();
    REQUIRE(write(folder, "a.b", 600) == 0);
    CHECK(read(folder, "a.b", 600) == state_of(600));
    CHECK_FALSE(read(folder, "a.b", 601));
    CHECK_FALSE(read(folder, "a", 600));
    CHECK_THROWS_WITH(run::read_state(folder, {"a.b", 600, layout + 1}, 5000),
                      contains("has other planes than stage a.b describes now"));
}

TEST_CASE("a state file that is cut or changed is refused") {
    const scratch_folder scratch;
    const std::string folder = scratch.path.string();
    REQUIRE(write(folder, "a", 5) == 0);
    const std::string path = run::state_path(folder, "a", 5);
    SECTION("cut") { std::filesystem::resize_file(path, 4000); }
    SECTION("changed") {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(3000);
        file.put('x');
    }
    CHECK_THROWS_WITH(read(folder, "a", 5), contains("is damaged: remove the checkpoints"));
}

TEST_CASE("a writer that dies after any step leaves the old state or the whole new one") {
    for (const run::checkpoint_step step : steps) {
        const scratch_folder scratch;
        const std::string folder = scratch.path.string();
        dies_after(step, [&](const run::checkpoint_hook& hook) { (void)write(folder, "a", 9, hook); });
        const auto found = read(folder, "a", 9);
        CHECK(found.has_value() == (step == run::checkpoint_step::renamed));
        CHECK(run::numbers_with_states(folder, {"a"}).size() == (found ? 1 : 0));
        REQUIRE(write(folder, "a", 9) == 0);  // its successor
        CHECK(read(folder, "a", 9) == state_of(9));
        run::remove_checkpoints(folder);
        CHECK_FALSE(std::filesystem::exists(folder));
    }
}

TEST_CASE("a supervisor that dies while completing a checkpoint leaves a list whose states are there") {
    for (const run::checkpoint_step step : steps) {
        const scratch_folder scratch;
        const std::string folder = scratch.path.string();
        for (const u64 frame : {10, 20}) REQUIRE(write(folder, "a", frame) == 0);
        REQUIRE(run::write_checkpoints(folder, {10}) == 0);
        dies_after(step, [&](const run::checkpoint_hook& hook) {
            (void)run::write_checkpoints(folder, {10, 20}, hook);
        });
        const std::vector<u64> list = run::read_checkpoints(folder);
        CHECK(list ==
              (step == run::checkpoint_step::renamed ? std::vector<u64>{10, 20} : std::vector<u64>{10}));
        for (const u64 frame : list) CHECK(read(folder, "a", frame));
    }
}

TEST_CASE("a checkpoint has the states of all stages, and older ones are removed") {
    const scratch_folder scratch;
    const std::string folder = scratch.path.string();
    for (const u64 frame : {10, 20, 30}) REQUIRE(write(folder, "a", frame) == 0);
    for (const u64 frame : {10, 30}) REQUIRE(write(folder, "b", frame) == 0);
    std::ofstream(folder + "/notes.txt") << "not ours";
    std::ofstream(folder + "/10.a.state.partial") << "left";
    CHECK(run::numbers_with_states(folder, {"a", "b"}) == std::vector<u64>{10, 30});
    CHECK(run::read_checkpoints(folder).empty());
    CHECK(run::remove_states(folder, [](u64 frame, const std::string&) { return frame >= 30; }) == 0);
    CHECK(run::numbers_with_states(folder, {"a"}) == std::vector<u64>{30});
    CHECK_FALSE(std::filesystem::exists(folder + "/10.a.state.partial"));
    CHECK(std::filesystem::exists(folder + "/notes.txt"));
    std::ofstream(folder + "/checkpoints.json") << "{}";
    CHECK_THROWS_WITH(run::read_checkpoints(folder), contains("has no list of checkpoints"));
}
