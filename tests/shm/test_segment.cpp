#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"
#include "shm/segment.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using shm::segment;

namespace {
std::string fresh_name(const char* what) {
    return std::string("test-") + what + "-" + std::to_string(getpid());
}

struct removed_at_end {
    std::string run_id;
    ~removed_at_end() { segment::remove(run_id); }
};

std::string refusal(const std::string& run_id) {
    try {
        (void)segment::attach(run_id);
    } catch (const shm_error& e) {
        return e.what();
    }
    return "";
}
}  // namespace

TEST_CASE("a published control block is attached to and both sides see the same words") {
    const removed_at_end r{fresh_name("publish")};
    segment made = segment::create(r.run_id);
    made.block().end.store(77);
    made.publish();
    const segment other = segment::attach(r.run_id);
    CHECK(&other.block() != &made.block());
    CHECK(other.block().end.load() == 77);
    other.block().end.store(78);
    CHECK(made.block().end.load() == 78);
}

TEST_CASE("a control block is readable and writable only by its user") {
    const removed_at_end r{fresh_name("mode")};
    const segment made = segment::create(r.run_id);
    struct stat info {};
    REQUIRE(stat(("/dev/shm/" + segment::object_name(r.run_id)).c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("attaching before publication is refused with the reason") {
    const removed_at_end r{fresh_name("early")};
    const segment made = segment::create(r.run_id);
    CHECK(refusal(r.run_id).find("it contains no control block") != std::string::npos);
}

TEST_CASE("a control block of another layout version is refused with both versions") {
    const removed_at_end r{fresh_name("version")};
    segment made = segment::create(r.run_id);
    made.block().version = 999;
    made.publish();
    CHECK(refusal(r.run_id).find("layout version 999, but this build has " +
                                 std::to_string(shm::control_version)) != std::string::npos);
}

TEST_CASE("a control block of another size is refused with both sizes") {
    const removed_at_end r{fresh_name("size")};
    segment made = segment::create(r.run_id);
    made.publish();
    REQUIRE(truncate(("/dev/shm/" + segment::object_name(r.run_id)).c_str(), 4096) == 0);
    CHECK(refusal(r.run_id).find("it has 4096 bytes, but this build expects " +
                                 std::to_string(sizeof(shm::control_block))) != std::string::npos);
}

TEST_CASE("a damaged control block with counts out of range is refused") {
    const removed_at_end r{fresh_name("damage")};
    segment made = segment::create(r.run_id);
    made.block().links = 1'000'000;
    made.publish();
    CHECK(refusal(r.run_id).find("counts are out of range") != std::string::npos);
}

namespace {
/// The exit of a process that attaches, opens the headers of one ring, and writes into those of another.
int end_of_writer(const std::string& run_id, u32 opens, u32 writes) {
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        const segment seen = segment::attach(run_id);
        shm::open_frames(seen.block(), opens);
        seen.block().frames[writes].header[1].meta.time_s = 3;
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}
}  // namespace

TEST_CASE("an attached stage can write to the headers of the ring that it opens, and no other's") {
    const removed_at_end r{fresh_name("rights")};
    segment made = segment::create(r.run_id);
    made.block().links = 3;
    for (u32 k = 0; k < 3; ++k) made.block().link[k].slots = 10;
    made.publish();
    CHECK(end_of_writer(r.run_id, 1, 1) == 0);
    CHECK(made.block().frames[1].header[1].meta.time_s == 3);
    CHECK(end_of_writer(r.run_id, 1, 0) == SIGSEGV);
    CHECK(end_of_writer(r.run_id, 1, 2) == SIGSEGV);
    CHECK(made.block().frames[0].header[1].meta.time_s == 0);
}

TEST_CASE("headers have memory for the slots that the run has, and for no more") {
    const removed_at_end r{fresh_name("sparse")};
    segment made = segment::create(r.run_id);
    made.block().links = 2;
    made.block().link[0].slots = 64;
    made.block().link[1].slots = 3;
    made.publish();
    struct stat info {};
    REQUIRE(stat(("/dev/shm/" + segment::object_name(r.run_id)).c_str(), &info) == 0);
    CHECK(static_cast<u64>(info.st_blocks) * 512 ==
          shm::word_bytes + shm::frame_bytes(64) + shm::frame_bytes(3));
    CHECK(shm::frame_bytes(3) == 2 * shm::frame_page);
    CHECK(shm::frame_bytes(64) == sizeof(shm::frame_segment));
}

TEST_CASE("an absent run is named in the refusal") {
    CHECK(refusal("no-such-run").find("carousel-no-such-run") != std::string::npos);
}

TEST_CASE("a second block of the same run id is refused and the first stays") {
    const removed_at_end r{fresh_name("twice")};
    segment made = segment::create(r.run_id);
    made.publish();
    CHECK_THROWS_AS((void)segment::create(r.run_id), shm_error);
    CHECK(refusal(r.run_id).empty());
}

TEST_CASE("a block is held by its maker and by those that joined, and by no observer") {
    const removed_at_end r{fresh_name("held")};
    CHECK_FALSE(segment::is_held(r.run_id));
    auto made = std::make_unique<segment>(segment::create(r.run_id));
    made->publish();
    CHECK(segment::is_held(r.run_id));
    {
        const segment joined = segment::join(r.run_id);
        made.reset();
        CHECK(segment::is_held(r.run_id));
        joined.release();
        CHECK_FALSE(segment::is_held(r.run_id));
    }
    const segment observed = segment::observe(r.run_id), attached = segment::attach(r.run_id);
    CHECK_FALSE(segment::is_held(r.run_id));
}

TEST_CASE("a block that is being removed can't be joined") {
    const removed_at_end r{fresh_name("removed")};
    segment made = segment::create(r.run_id);
    made.publish();
    made.release();
    const shm::unique_fd remover(
        ::open(("/dev/shm/" + segment::object_name(r.run_id)).c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(shm::lock_exclusive(remover.get()) == 0);
    CHECK_THROWS_AS((void)segment::join(r.run_id), shm_error);
    shm::unlock(remover.get());
    CHECK_NOTHROW((void)segment::join(r.run_id));
}
