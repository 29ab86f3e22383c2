// Which process is the last of a run whose supervisor has ended: a process that has claimed its entry and not
// stored its start time yet counts, too.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "run/directory.hpp"
#include "shm/process_id.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"
#include "stages/runner/supervisor_link.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using ring::entry_state;
using ring::entry_word;

namespace {

/// A run in which this process has entry 0.
struct orphaned_run {
    std::string run_id = "test-last-" + std::to_string(::getpid());
    scratch_folder folder;
    shm::segment block = shm::segment::create(run_id);
    pid_t other = 0;

    orphaned_run() {
        block.publish();
        block.release();  // as that of a dead supervisor
        (void)folder.write("lock", "");
        enter(0, ::getpid(), shm::this_process().start_time, entry_state::live);
    }
    ~orphaned_run() {
        end_other();
        shm::segment::remove(run_id);
    }
    void enter(u32 k, pid_t pid, u64 start_time, entry_state state) const {
        block.block().entry[k].start_time.store(start_time);
        block.block().entry[k].identity.store(entry_word{static_cast<u32>(pid), 1, k, state}.pack());
    }
    /// Starts another process, which maps the control block or doesn't.
    void start_other(bool maps) {
        int ready[2];
        REQUIRE(::pipe(ready) == 0);
        other = ::fork();
        if (other == 0) {
            if (!maps) {
                ::execl("/bin/sleep", "sleep", "60", nullptr);
                ::_exit(1);
            }
            (void)::write(ready[1], "x", 1);
            for (;;) ::pause();
        }
        char byte = 0;
        if (maps)
            REQUIRE(::read(ready[0], &byte, 1) == 1);
        else
            while (std::filesystem::read_symlink("/proc/" + std::to_string(other) + "/exe")
                       .filename()
                       .string()
                       .find("test") != std::string::npos)
                ::usleep(1000);
        ::close(ready[0]);
        ::close(ready[1]);
    }
    void end_other() {
        if (other == 0) return;
        ::kill(other, SIGKILL);
        ::waitpid(other, nullptr, 0);
        other = 0;
    }
    bool leave() const { return stages::leave_run(block.block(), 0, folder.path.string(), run_id); }
    bool memory_is_there() const { return shm::segment::exists(run_id); }
};

}  // namespace

TEST_CASE("the last stage saves the run's records and the frames that were given up") {
    orphaned_run r;
    const std::filesystem::path runs = r.folder.path / "runs", at = runs / "demo";
    std::filesystem::create_directories(at / "logs");
    std::filesystem::create_directories(at / "dead-letters" / "sink-7");
    (void)r.folder.write("runs/demo/lock", "");
    (void)r.folder.write("runs/demo/logs/sink.jsonl", "{}");
    run::write_record(at.string(), {{1, 1}, r.run_id, "demo", "", "", "", ""});
    CHECK(stages::leave_run(r.block.block(), 0, at.string(), r.run_id));
    CHECK_FALSE(r.memory_is_there());
    CHECK(scratch_folder::names_in(at) == std::vector<std::string>{"dead-letters"});
    const std::filesystem::path kept = r.folder.path / "runs-lost" / ("demo." + r.run_id);
    CHECK(std::filesystem::exists(kept / "account.json"));
    CHECK(std::filesystem::exists(kept / "logs" / "sink.jsonl"));
}

TEST_CASE("the last stage to leave removes the run's memory") {
    orphaned_run r;
    CHECK(r.leave());
    CHECK_FALSE(r.memory_is_there());
}

TEST_CASE("a process between its claim and the store of its start time keeps the run's memory") {
    orphaned_run r;
    r.start_other(true);
    const auto state = GENERATE(entry_state::starting, entry_state::standby);
    r.enter(1, r.other, 0, state);
    CHECK(r.leave());
    CHECK(r.memory_is_there());
    r.end_other();
    CHECK(r.leave());
    CHECK_FALSE(r.memory_is_there());
}

TEST_CASE("a dead claimer whose pid was reused keeps no claim, and the new process is not signalled") {
    orphaned_run r;
    r.start_other(false);
    r.enter(1, r.other, 0, GENERATE(entry_state::starting, entry_state::doomed));
    CHECK(r.leave());
    CHECK_FALSE(r.memory_is_there());
    CHECK(::waitpid(r.other, nullptr, WNOHANG) == 0);  // an unrelated process
}

TEST_CASE("a process of another pid namespace keeps the run's memory and folder by its lock") {
    orphaned_run r;
    auto unseen = std::make_unique<shm::segment>(shm::segment::join(r.run_id));
    shm::unique_fd in_folder = shm::join_folder(r.folder.path.string());
    CHECK(r.leave());
    CHECK(r.memory_is_there());
    unseen.reset();
    CHECK(r.leave());
    CHECK(r.memory_is_there());
    in_folder.reset();
    CHECK(r.leave());
    CHECK_FALSE(r.memory_is_there());
}
