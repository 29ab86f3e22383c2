// Programs at ports while the control block of their run is rebuilt: they continue to run, and take part
// again.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <thread>

#include "ring/link.hpp"
#include "ring/words.hpp"
#include "shm/segment.hpp"
#include "tests/crash/port_run.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

u64 rebuilds_in(const std::string& log) {
    u64 count = 0;
    for (auto at = log.find(": the run restarts at frame"); at != std::string::npos;
         at = log.find(": the run restarts at frame", at + 1))
        ++count;
    return count;
}

/// The write of a broken process: a job of the witness names a process that never existed.
void damage_words(const run_fixture& run) {
    const shm::segment s = shm::segment::attach(run.run_id());
    const shm::seat_block& witness = s.block().seat[2];
    shm::word& at = s.block().job[witness.first_job + witness.jobs - 1];
    const ring::job_word w = ring::job_word::of(ring::load(at));
    at.store(ring::job_word{w.version, 4711, ring::job_state::idle}.pack());
}

/// A wild write that makes the reader pass the frame after its present one: its word reads as DONE. Returns
/// false if the frame is not in the ring.
bool pass_a_frame(const run_fixture& run) {
    const shm::segment s = shm::segment::attach(run.run_id());
    shm::link_block& camera = s.block().link[0];
    const u32 group = s.block().stage[1].input_group[0];
    const u64 passed = ring::link_ref(s.block(), 0).tail() + 1;
    for (u32 k = 0; k < camera.slots; ++k) {
        const ring::slot_word slot = ring::slot_word::of(ring::load(camera.slot[k]));
        if (slot.state != ring::slot_state::ready ||
            s.block().frames[0].header[k].ring_sequence.load() != passed)
            continue;
        u64 waits = ring::lease_word{slot.generation, 0, 0, 0, ring::lease_state::wait}.pack();
        return camera.group[k][group].compare_exchange_strong(
            waits, ring::lease_word{slot.generation, 0, 0, 0, ring::lease_state::done}.pack());
    }
    return false;
}

/// Changes a bit in the header of a READY frame of the camera's ring; returns false if the frame is not
/// there.
bool damage_header(const run_fixture& run, u64 number) {
    const shm::segment s = shm::segment::attach(run.run_id());
    const shm::control_block& c = s.block();
    for (u32 k = 0; k < c.link[0].slots; ++k) {
        const shm::frame_header& h = s.block().frames[0].header[k];
        if (ring::slot_word::of(ring::load(c.link[0].slot[k])).state != ring::slot_state::ready ||
            h.ring_sequence.load() != number)
            continue;
        // the headers are mapped for reading only
        const u64 changed = h.meta.born_ns ^ 1;
        const auto offset =
            reinterpret_cast<const std::byte*>(&h.meta.born_ns) - reinterpret_cast<const std::byte*>(&c);
        const shm::unique_fd file(
            ::open(("/dev/shm/" + shm::segment::object_name(run.run_id())).c_str(), O_RDWR));
        return ::pwrite(file.get(), &changed, sizeof changed, offset) == sizeof changed;
    }
    return false;
}

}  // namespace

TEST_CASE("a rebuild is a pause for the programs at ports, which get each frame once") {
    port_run run("paused", "", witness());
    external_program writes = run.writes("writes"), reads = run.reads("reads");
    external_program newest(run, "newest", "carousel-test-port-io", {"latest", "paused", "camera"});
    for (int k = 0; k < 4; ++k) {
        REQUIRE(run.makes_progress(reads));
        CHECK(rebuild(run));
    }
    CHECK(run.makes_progress(writes));
    CHECK(run.makes_progress(reads));
    CHECK_FALSE(writes.has_printed("revoked"));
    CHECK_FALSE(reads.has_printed("revoked"));
    CHECK(run.makes_progress(newest));
    run.end_and_check();
    CHECK(newest.wait(20) == 0);  // no frame came twice
    CHECK(run.report()["rebuilds"] == 4);
    CHECK_THAT(run.log(), contains("frames in the rings continue from memory"));
    CHECK(writes.wait(20) == 0);
    CHECK(reads.wait(20) == 0);
}

TEST_CASE("damaged words of a run with ports are replaced, and its programs lose no frame") {
    port_run run("damaged", "", witness());
    external_program writes = run.writes("writes"), reads = run.reads("reads");
    for (u64 k = 1; k <= 2; ++k) {
        REQUIRE(run.makes_progress(reads));
        damage_words(run);
        CHECK(run.wait_until([&] { return rebuilds_in(run.log()) == k; }));
    }
    CHECK(run.makes_progress(reads));
    run.end_and_check();
    CHECK(run.report()["rebuilds"] == 2);
    CHECK(reads.wait(20) == 0);
}

TEST_CASE("a rebuild does not wait for a program that keeps its frame, which another program then gets") {
    port_run run("keeping", "supervisor_grace_s = 20\n", witness());
    SECTION("a reader") {
        external_program writes = run.writes("writes"), reads = run.reads("reads", {"0", "30", "60000"});
        REQUIRE(run.wait_until([&] { return reads.has_printed("holds 30"); }));
        CHECK(rebuild(run));
        external_program next = run.reads("next");
        CHECK(run.makes_progress(next));
        CHECK(run.makes_progress(writes));
        reads.signal(SIGKILL);
        run.end_and_check();
    }
    SECTION("a writer, whose buffer stays in quarantine") {
        external_program writes = run.writes("writes", {"200", "30", "60000"}), reads = run.reads("reads");
        REQUIRE(run.wait_until([&] { return writes.has_printed("holds 30"); }));
        CHECK(rebuild(run));
        external_program next = run.writes("next");
        CHECK(run.makes_progress(next));
        CHECK(run.makes_progress(reads));
        CHECK(rebuild(run));  // with one program that is not fenced
        CHECK(run.makes_progress(reads));
        writes.signal(SIGKILL);
        CHECK(run.makes_progress(reads));
        run.end_and_check();
    }
}

TEST_CASE("a writer that keeps its frame for too long across a rebuild joins again, and no word is damaged") {
    port_run run("late", "", witness());
    external_program writes = run.writes("writes", {"200", "30", "1500"}), reads = run.reads("reads");
    REQUIRE(run.wait_until([&] { return writes.has_printed("holds 30"); }));
    CHECK(rebuild(run));
    // the seat has no other process until this one has left
    CHECK(run.wait_until([&] { return writes.has_printed("revoked 30") && writes.frame() > 30; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // all words are checked once per second
    CHECK(run.makes_progress(reads));
    run.end_and_check();
    CHECK(run.report()["rebuilds"] == 1);
}

TEST_CASE("a written frame whose header is damaged is lost alone, and the report names it") {
    port_run run("harmed", "allow_dead_letters = 1\n", witness());
    // the reader keeps frame 3, so the frames after it stay in the ring
    external_program writes = run.writes("writes"), reads = run.reads("reads", {"0", "3", "500"});
    REQUIRE(run.wait_until([&] { return reads.has_printed("holds 3"); }));
    REQUIRE(run.wait_until([&] { return damage_header(run, 5); }));
    CHECK(run.wait_until([&] { return run.log().find("frame 5 is lost") != std::string::npos; }));
    CHECK(reads.wait(20) == 99);  // it misses exactly this frame
    CHECK(reads.has_printed("frame 6 for 5"));
    external_program next = run.reads("next");
    CHECK(run.makes_progress(next));
    CHECK(run.makes_progress(writes));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    const nlohmann::json r = run.report();
    INFO(run.log());
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    CHECK(r["torn"] == 0);
    CHECK_THAT(r.dump(), contains("lost in a rebuild"));
}

TEST_CASE("a reader whose damaged words have made it pass a frame gets no frame twice") {
    port_run run("passed", "allow_dead_letters = 1\n", witness());
    external_program writes = run.writes("writes");
    external_program reads(run, "reads", "carousel-test-port-io", {"read-all", "passed", "analysis", "5000"});
    REQUIRE(run.wait_until([&] { return pass_a_frame(run); }));
    REQUIRE(run.wait_until([&] { return reads.has_printed(" for "); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it commits frames after that one
    CHECK(rebuild(run));
    CHECK(run.makes_progress(reads));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["repeated"] == 0);
    CHECK(run.report()["lost"] == 0);
}

TEST_CASE("a reader does not take damaged words for the end of the stream") {
    run_fixture run;
    const std::string name = "unended";
    run.start(run.pipeline(name, port_pipeline(name, "") + witness()), {"--frames", "800"});
    REQUIRE(run.wait_until([&] { return run.stage("analysis").value("state", "") == "vacant"; }));
    const external_program writes(run, "writes", "carousel-test-port-io", {"write", name, "camera", "500"});
    external_program reads(run, "reads", "carousel-test-port-io", {"read", name, "analysis", "0"});
    REQUIRE(run.wait_until([&] { return reads.frame() >= 100; }));
    {
        const shm::segment s = shm::segment::attach(run.run_id());
        s.block().stage[1].source ^= 1U << 10U;  // of the reader, which has none
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(reads.wait(20) == 0);
    CHECK(reads.has_printed("ended, 800 frames"));
    check_undamaged(run.report());
    CHECK(run.report()["rebuilds"] == 1);
}
