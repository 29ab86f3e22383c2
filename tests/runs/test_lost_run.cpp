// The records that are kept of runs that lost their supervisor.
#include "run/liveness.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/io.hpp"
#include "ledger/ledger.hpp"
#include "run/directory.hpp"
#include "shm/runtime_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
namespace fs = std::filesystem;

/// A runtime directory of its own, and runs in it whose supervisor is dead.
struct lost_world {
    scratch_folder folder;
    std::string before;
    lost_world() {
        if (const char* set = std::getenv("XDG_RUNTIME_DIR")) before = set;
        ::setenv("XDG_RUNTIME_DIR", folder.path.c_str(), 1);
    }
    ~lost_world() {
        before.empty() ? ::unsetenv("XDG_RUNTIME_DIR") : ::setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
    }
    lost_world(const lost_world&) = delete;
    lost_world& operator=(const lost_world&) = delete;

    /// Its sink has delivered the frames 0 to 3 and 5.
    [[nodiscard]] std::string run_of(const std::string& name, const std::string& id) const {
        const std::string at = run::make_run_folder(name);
        run::write_record(at, {{1'999'999, 1}, id, name, "demo.toml", "", "", ""});
        shm::write_whole_file(at + "/state.json", R"({"run": {"first": 0, "end": 150}})");
        fs::create_directory(at + "/logs");
        std::ofstream(at + "/logs/fragment.jsonl") << "{}\n";
        std::ofstream(at + "/recoveries.jsonl") << "{}\n";
        telemetry::ledger_writer w(telemetry::ledger_path(at, "display"));
        for (const u64 n : {0, 1, 2, 3, 4, 5}) {
            w.record(n, n + 1, false, 1);
            if (n != 4) w.mark_committed(n, n + 1, false, 1);
        }
        return at;
    }
    [[nodiscard]] std::vector<std::string> kept() const {
        return scratch_folder::names_in(folder.path / "carousel-lost");
    }
};

}  // namespace

TEST_CASE("of a lost run the logs, the deaths and an account by its ledgers are kept") {
    const lost_world world;
    const std::string at = world.run_of("demo", "a1");
    const auto block = std::make_unique<shm::control_block>();
    block->stages = 1;
    std::strncpy(block->stage[0].name, "fragment", sizeof block->stage[0].name - 1);
    block->stage[0].counters.frames.store(9);
    const std::string kept = run::keep_lost_run(at, block.get());
    CHECK(kept == (world.folder.path / "carousel-lost" / "demo.a1").string());
    CHECK(scratch_folder::names_in(kept) ==
          std::vector<std::string>{"account.json", "logs", "recoveries.jsonl", "state.json"});
    CHECK(fs::exists(kept + "/logs/fragment.jsonl"));
    CHECK((fs::status(kept).permissions() & fs::perms::all) == fs::perms::owner_all);
    const auto all = run::lost_runs("demo");
    REQUIRE(all.size() == 1);
    const nlohmann::json& account = all[0].account;
    CHECK(account["frames_planned"] == 150);
    CHECK(account["supervisor_pid"] == 1'999'999);
    CHECK(account["sinks"] ==
          nlohmann::json::array(
              {{{"stage", "display"}, {"delivered", 5}, {"first_missing", 4}, {"repeated", 0}}}));
    CHECK(account["stages"][0] ==
          nlohmann::json({{"name", "fragment"}, {"frames", 9}, {"tombstones", 0}, {"torn", 0}}));
    CHECK_THAT(run::describe(all[0]), test::contains("display delivered 5 of 150 frames") &&
                                          test::contains("its supervisor (pid 1999999) died"));
    CHECK(run::lost_runs("other").empty());
}

TEST_CASE("a process that dies between two steps of keeping a run leaves the rest to the next") {
    const lost_world world;
    const std::string at = world.run_of("demo", "a1");
    const std::string kept = run::keep_lost_run(at);
    const std::string account = read_file(kept + "/account.json").value_or("");
    fs::rename(kept + "/logs", at + "/logs");  // not moved yet
    fs::remove_all(at + "/ledger-display.bin");
    CHECK(run::keep_lost_run(at) == kept);
    CHECK(fs::exists(kept + "/logs/fragment.jsonl"));
    CHECK(read_file(kept + "/account.json") == account);
    fs::remove(at + "/run.json");
    CHECK(run::keep_lost_run(at) == "");  // not a run any more
}

TEST_CASE("the newest lost runs are kept, each within its bound") {
    const lost_world world;
    for (std::size_t k = 0; k < run::most_lost_runs + 3; ++k) {
        const std::string kept = run::keep_lost_run(world.run_of("demo", fmt::format("a{:02}", k)));
        REQUIRE_FALSE(kept.empty());
        fs::last_write_time(kept, fs::file_time_type::clock::now() - std::chrono::hours(1000 - k));
    }
    REQUIRE(world.kept().size() == run::most_lost_runs);
    CHECK(world.kept().front() == "demo.a03");
    const std::string at = world.run_of("large", "b1");
    std::ofstream(at + "/logs/fragment.jsonl.1") << "";
    fs::resize_file(at + "/logs/fragment.jsonl.1", run::most_lost_bytes + 1);
    std::ofstream(at + "/logs/sink.2.17.alone") << "";
    fs::resize_file(at + "/logs/sink.2.17.alone", u64{6} << 20U);
    const std::string kept = run::keep_lost_run(at);
    CHECK(scratch_folder::names_in(kept + "/logs") ==
          std::vector<std::string>{"fragment.jsonl", "sink.2.17.alone"});
    CHECK(fs::file_size(kept + "/logs/sink.2.17.alone") == u64{4} << 20U);
}

TEST_CASE("a run whose account can't be written keeps its evidence, and its caller continues") {
    const lost_world world;
    const std::string at = world.run_of("demo", "a1");
    std::ofstream(world.folder.path / "carousel-lost") << "not a folder";
    CHECK(run::keep_lost_run(at) == "");
    CHECK(fs::exists(at + "/logs/fragment.jsonl"));
}
