// The checkpoints of a run as its supervisor completes, drops and continues them, without any process.
#include "supervisor/stores/checkpoint_store.hpp"

#include <fcntl.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "run/checkpoint.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using test::contains;

namespace {

using numbers = std::vector<u64>;

void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

/// A run whose stages a and b have a state, and that writes a checkpoint every 10 frames.
struct states {
    scratch_folder scratch;
    run_setup setup;
    u64 now = 0;

    states() {
        setup.checkpoint_every = 10;
        setup.checkpoint_folder = (scratch.path / "kept").string();
        for (const char* name : {"a", "b"}) {
            stage_setup st;
            st.spec.name = name;
            st.format = {{"type", "t"}};
            st.state = true;
            setup.stages.push_back(st);
        }
    }
    void write(u64 frame, const std::vector<std::string>& stages = {"a", "b"}) const {
        for (const std::string& stage : stages)
            REQUIRE(run::write_state(setup.checkpoint_folder, {stage, frame, 1}, {}) == 0);
    }
    /// The files of a run that was lost.
    void leave(const numbers& list) const {
        for (const u64 frame : list) write(frame);
        REQUIRE(run::write_checkpoints(setup.checkpoint_folder, list) == 0);
    }
    [[nodiscard]] numbers list() const { return run::read_checkpoints(setup.checkpoint_folder); }
    [[nodiscard]] bool has(const std::string& name) const {
        return std::filesystem::exists(setup.checkpoint_folder + "/" + name);
    }
    std::string tick(checkpoint_store& store, u64 delivered_below = 1000) {
        now += ns_per_s;
        return store.tick(now, [&] { return delivered_below; });
    }
    /// Lets the store work until it has written that list and taken it over. Returns false after 10 s.
    bool lists(checkpoint_store& store, const numbers& wanted) {
        for (u32 k = 0; k < 2000; ++k) {
            (void)tick(store);
            if (list() == wanted && store.newest(wanted.back()) == wanted.back()) return true;
            wait_a_little();
        }
        return false;
    }
    [[nodiscard]] std::string partial_list() const {
        return setup.checkpoint_folder + "/checkpoints.json.partial";
    }
};

}  // namespace

TEST_CASE("a checkpoint is complete when all stages wrote it and all sinks have the frames before it") {
    states s;
    checkpoint_store store(s.setup);
    REQUIRE(store.begin(0));
    s.write(10, {"a"});
    CHECK(s.tick(store) == "");
    s.write(10);
    CHECK(s.tick(store, 9) == "");
    CHECK(store.newest(1000) == 0U);
    CHECK(s.lists(store, {10}));
    for (const u64 frame : {20, 30}) {
        s.write(frame);
        REQUIRE(s.lists(store, {frame - 10, frame}));
    }
    CHECK_FALSE(s.has("10.a.state"));
    CHECK(store.repeats_from() == 20);
    CHECK(store.newest(29) == 20U);
    CHECK(store.newest(19) == 0U);  // the run has begun there
    store.remove();
    CHECK_FALSE(std::filesystem::exists(s.setup.checkpoint_folder));
}

TEST_CASE("a run continues at a checkpoint, or begins fresh at another frame, but not at 0 by mistake") {
    states s;
    s.leave({10, 20});
    checkpoint_store store(s.setup);
    SECTION("without --first") {
        CHECK_THROWS_WITH(store.begin(0), contains("continue with --first checkpoint"));
        CHECK(s.list() == numbers{10, 20});
    }
    SECTION("at the newest") {
        CHECK(find_newest_checkpoint(s.setup) == 20);
        CHECK(store.begin(20));
        CHECK(store.restored_at() == 20);
        CHECK(store.newest(19) == 10U);
    }
    SECTION("at the one before, so the newest is dropped") {
        CHECK(store.begin(10));
        CHECK(store.restored_at() == 10);
        CHECK_FALSE(s.has("20.a.state"));
        CHECK(s.lists(store, {10}));
    }
    SECTION("at another frame, as after upgrade --drain") {
        CHECK_FALSE(store.begin(15));
        CHECK(store.restored_at() == 0);
        CHECK(s.list().empty());
        CHECK_FALSE(s.has("10.a.state"));
        CHECK(store.newest(15) == 15U);  // from there on the states are those of this run
    }
    SECTION("a state is missing") {
        std::filesystem::remove(run::state_path(s.setup.checkpoint_folder, "b", 20));
        CHECK_THROWS_WITH(store.begin(20), contains("for frame 20 lacks the state of stage b"));
    }
    SECTION("the run has fewer frames now") {
        s.setup.end = 20;
        CHECK_THROWS_WITH(find_newest_checkpoint(s.setup),
                          contains("is for frame 20, but the run has 20 frames"));
    }
}

TEST_CASE("a run that begins again drops later checkpoints before a stage can write new ones") {
    states s;
    s.leave({10, 20});
    checkpoint_store store(s.setup);
    REQUIRE(store.begin(20));
    s.write(30);
    SECTION("at a checkpoint") {
        store.begin_again(10);
        CHECK(s.list() == numbers{10});
        CHECK(store.restored_at() == 10);
    }
    SECTION("after it") {
        store.begin_again(15);
        CHECK(store.restored_at() == 0);
    }
    SECTION("no list can be written") {
        std::filesystem::create_directory(s.partial_list());
        store.begin_again(15);
        std::string text;
        for (u32 k = 0; k < 2000 && text.empty(); ++k, wait_a_little()) text = s.tick(store);
        CHECK_THAT(text,
                   contains("the checkpoint for frame 10 can't be completed in") && contains("; retrying"));
        CHECK(s.list().empty());
        std::filesystem::remove(s.partial_list());
    }
    CHECK_FALSE(s.has("20.a.state"));
    CHECK_FALSE(s.has("30.b.state"));
    CHECK(s.lists(store, {10}));
}

TEST_CASE("a rebuild that keeps states keeps their files, which become a checkpoint as without it") {
    states s;
    s.leave({10});
    checkpoint_store store(s.setup);
    REQUIRE(store.begin(10));
    s.write(20);
    s.write(30, {"a"});
    s.write(30, {"b"});  // which makes frames from 25 on again
    store.begin_again(22, {30, 25});
    CHECK(s.has("20.a.state"));
    CHECK(s.has("30.a.state"));
    CHECK_FALSE(s.has("30.b.state"));
    CHECK(s.lists(store, {10, 20}));
    s.write(30, {"b"});
    CHECK(s.lists(store, {20, 30}));
}

TEST_CASE("the beginning of a continued run is lost with its checkpoint") {
    states s;
    s.leave({20});
    std::optional<checkpoint_store> store(s.setup);
    REQUIRE(store->begin(20));
    CHECK_FALSE(store->has_lost_beginning());
    for (const u64 frame : {30, 40}) {
        s.write(frame);
        REQUIRE(s.lists(*store, frame == 30 ? numbers{20, 30} : numbers{30, 40}));
    }
    CHECK(store->has_lost_beginning());
    CHECK(store->newest(29) == std::nullopt);
    CHECK(store->restored_at() == 0);
    store.reset();
    store.emplace(s.setup);  // another supervisor
    CHECK(store->adopt(20, false, 20) == "");
    CHECK(store->has_lost_beginning());
    CHECK(store->newest(1000) == 40U);
}

TEST_CASE("an adopting supervisor finds the checkpoint at which the block begins, without a list") {
    states s;
    s.leave({10});
    std::optional<checkpoint_store> store(s.setup);
    REQUIRE(store->begin(10));
    REQUIRE(run::remove_list(s.setup.checkpoint_folder) == 0);  // as when the disk was full
    store.reset();
    store.emplace(s.setup);
    CHECK(store->lock_again() == "");
    CHECK(store->adopt(10, false, 10) == "");
    CHECK(store->restored_at() == 10);
    CHECK(s.lists(*store, {10}));
}

TEST_CASE("a stopped run completes a checkpoint for its end, if every stage has written its state") {
    states s;
    checkpoint_store store(s.setup);
    REQUIRE(store.begin(0));
    s.write(10);
    REQUIRE(s.lists(store, {10}));
    CHECK_FALSE(store.lacks_states(0));
    CHECK_FALSE(store.lacks_states(10));
    s.write(37, {"a"});
    CHECK(store.lacks_states(37));
    CHECK_THAT(store.complete_last(37),
               contains("the states before frame 37, at which the run has ended, are not all"));
    CHECK(s.list() == numbers{10});
    s.write(37, {"b"});
    CHECK_FALSE(store.lacks_states(37));
    CHECK(store.complete_last(37) == "");
    CHECK(s.list() == numbers{10, 37});
    CHECK(store.complete_last(37) == "");
}

TEST_CASE("a stopped run that is rebuilt at its end still needs its last states") {
    states s;
    checkpoint_store store(s.setup);
    REQUIRE(store.begin(0));
    store.begin_again(37);
    CHECK(store.lacks_states(37));
    CHECK(store.lacks_state("a", 37));
    s.write(37);
    CHECK(store.complete_last(37) == "");
    CHECK(s.list() == numbers{37});
}

TEST_CASE("two runs do not write their checkpoints to one folder") {
    states s;
    checkpoint_store one(s.setup);
    REQUIRE(one.begin(0));
    checkpoint_store other(s.setup);
    CHECK_THROWS_WITH(other.begin(0), contains("another run writes its checkpoints to"));
    CHECK_THROWS_WITH(other.lock_again(), contains("another run writes its checkpoints to their folder, ") &&
                                              contains("End the other run and start this one again"));
}

TEST_CASE(
    "a run waits for stages without a supervisor that write to its folder, and is refused if they stay") {
    states s;
    std::filesystem::create_directories(s.setup.checkpoint_folder);
    shm::unique_fd stage(::open(s.setup.checkpoint_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    run::mark_writer(stage.get());
    {
        checkpoint_store next(s.setup);
        CHECK_THROWS_WITH(next.begin(0),
                          contains("stages of another run, whose supervisor has ended, write"));
    }
    std::thread ends([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        stage.reset();
    });
    {
        checkpoint_store next(s.setup);
        CHECK(next.begin(0));
    }
    ends.join();
    const shm::unique_fd own(::open(s.setup.checkpoint_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    run::mark_writer(own.get());
    CHECK(checkpoint_store(s.setup).lock_again() == "");  // the stages are this run's own
}

TEST_CASE("an adopting supervisor waits until the dead one's lock of the checkpoints is released") {
    states s;
    std::optional<checkpoint_store> dead(s.setup);
    REQUIRE(dead->begin(0));
    checkpoint_store adopting(s.setup);
    std::thread exit([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        dead.reset();
    });
    CHECK(adopting.lock_again() == "");
    exit.join();
}

TEST_CASE("a checkpoint that can't be completed now is completed later, and the log has one message") {
    states s;
    checkpoint_store store(s.setup);
    REQUIRE(store.begin(0));
    s.write(10);
    u32 calls = 0;
    const auto fails = [&]() -> u64 {
        ++calls;
        throw output_error("opening a ledger: no descriptor is left");
    };
    std::vector<std::string> logged;
    for (u32 k = 0; k < 2000 && calls < 2; ++k, wait_a_little())
        if (const std::string text = store.tick(s.now += ns_per_s, fails); !text.empty())
            logged.push_back(text);
    CHECK(calls == 2);
    CHECK(logged ==
          std::vector<std::string>{"checkpoints can't be completed: opening a ledger: no descriptor "
                                   "is left; retrying"});
    CHECK(s.lists(store, {10}));
}

TEST_CASE("a folder for checkpoints that can't be made is refused before the run begins") {
    states s;
    s.scratch.write("kept", "a file");
    CHECK_THROWS_WITH(checkpoint_store(s.setup).begin(0), contains("opening the folder of the checkpoints"));
}
