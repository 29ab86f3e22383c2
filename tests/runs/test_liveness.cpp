#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <memory>

#include "run/liveness.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"
#include "telemetry/snapshot.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

TEST_CASE("a run has a supervisor, has none or is over, and a new run in its folder is another run") {
    scratch_folder folder;
    const std::string place = folder.path.string();
    run::write_record(place, {shm::this_process(), "mine", "demo", "", "", "", ""});
    run::record r = *run::read_record(place);
    const auto block = std::make_unique<shm::control_block>();
    CHECK(run::update_liveness(r, *block).state == run::liveness::led);
    SECTION("its supervisor's last word counts, even while that process is there") {
        telemetry::note_end(*block, 4);
        const run::liveness_report l = run::update_liveness(r, *block);
        CHECK(l.state == run::liveness::over);
        CHECK(l.ending == "exit code 4");
    }
    SECTION("nobody is left") {
        r.supervisor = {1, 1};  // gone
        std::filesystem::remove(place + "/run.json");
        const run::liveness_report l = run::update_liveness(r, *block);
        CHECK(l.state == run::liveness::over);
        CHECK_THAT(l.ending, test::contains("its supervisor was killed"));
    }
    SECTION("another run has taken the name") {
        run::write_record(place, {shm::this_process(), "another", "demo", "", "", "", ""});
        const run::liveness_report l = run::update_liveness(r, *block);
        CHECK(l.state == run::liveness::over);
        CHECK(l.ending == "a new run has replaced it");
        CHECK(r.run_id == "mine");
    }
    SECTION("a second supervisor leads it") {
        r.supervisor = {1, 1};
        CHECK(run::update_liveness(r, *block).state == run::liveness::led);
        CHECK(r.supervisor == shm::this_process());
    }
}

TEST_CASE("a run of another namespace is over only when neither a stage nor a port has a lock on it") {
    scratch_folder folder;
    const std::string place = folder.path.string(), id = "test-life-" + std::to_string(::getpid());
    (void)folder.write("lock", "");
    run::write_record(place, {{1, 1}, id, "demo", "", "", "", ""});
    run::record r = *run::read_record(place);
    r.pid_namespace = "pid:[1]";
    CHECK(run::liveness_of(r) == run::liveness::over);
    CHECK_FALSE(run::orphaned_stages_of(r).any);
    SECTION("a stage has the folder's") {
        const shm::unique_fd stage = shm::join_folder(place);
        CHECK(run::liveness_of(r) == run::liveness::alone);
        CHECK(run::orphaned_stages_of(r).any);
    }
    SECTION("a stage has the block's") {
        const shm::segment block = shm::segment::create(id);
        CHECK(run::liveness_of(r) == run::liveness::alone);
        CHECK(run::orphaned_stages_of(r).any);
        shm::segment::remove(id);
    }
    SECTION("a port's program has its own, and is no stage") {
        const shm::unique_fd port(
            ::open(run::port_lock(place, 1, 2).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        CHECK(run::liveness_of(r) == run::liveness::over);
        REQUIRE(::flock(port.get(), LOCK_EX | LOCK_NB) == 0);
        CHECK(run::liveness_of(r) == run::liveness::alone);
        CHECK_FALSE(run::orphaned_stages_of(r).any);
    }
    CHECK(run::liveness_of(r) == run::liveness::over);
}

TEST_CASE("no flipped bit ends a running run, or changes the end of a finished one") {
    const auto block = std::make_unique<shm::control_block>();
    block->supervisor.store(4711);
    for (unsigned bit = 0; bit < 64; ++bit) {
        block->supervisor.fetch_xor(u64{1} << bit);
        CHECK_FALSE(telemetry::end_of(*block));
        block->supervisor.fetch_xor(u64{1} << bit);
    }
    for (const int code : {0, 4, 75, 255}) {
        telemetry::note_end(*block, code);
        CHECK(telemetry::end_of(*block) == code);
        CHECK((block->supervisor.load() & 0xFFFF'FFFFU) == 4711);
        for (unsigned bit = 32; bit < 64; ++bit) {
            block->supervisor.fetch_xor(u64{1} << bit);
            CHECK_FALSE(telemetry::end_of(*block));
            block->supervisor.fetch_xor(u64{1} << bit);
        }
    }
}

TEST_CASE("a run without a block has no rebuilt one") {
    const auto block = std::make_unique<shm::control_block>();
    run::record r;
    r.run_id = "no-such-run";
    CHECK_FALSE(run::recreated_block(r, *block));
}

TEST_CASE("one stage continues, several continue") {
    CHECK(run::alone_text(1) == "no supervisor, 1 stage continues");
    CHECK(run::alone_text(0) == "no supervisor, stages continue");
    CHECK(run::alone_text(4) == "no supervisor, 4 stages continue");
}
