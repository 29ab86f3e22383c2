// The errors of a port that can't be opened: one sentence each.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <carousel/port.hpp>
#include "ring/words.hpp"
#include "run/directory.hpp"
#include "shm/segment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using test::contains;

namespace {

const open_options at_once{.device = "", .wait_s = 0};

/// A run of this process with one ring, whose supervisor never replies.
class silent_run {
public:
    silent_run() {
        ::setenv("XDG_RUNTIME_DIR", runtime.path.c_str(), 1);
        shm::control_block& c = segment.block();
        c.links = 1;
        std::string("fragment").copy(c.link[0].name, sizeof c.link[0].name - 1);
        segment.publish();
        run::write_record(run::make_run_folder("demo"), {shm::this_process(), id, "demo", "", "", "", ""});
    }
    ~silent_run() { shm::segment::remove(id); }
    silent_run(const silent_run&) = delete;
    silent_run& operator=(const silent_run&) = delete;

    scratch_folder runtime;
    std::string id = "port" + std::to_string(::getpid());
    shm::segment segment = shm::segment::create(id);
};

}  // namespace

TEST_CASE("a run that isn't there is named, with those that are") {
    {
        const scratch_folder nothing;
        ::setenv("XDG_RUNTIME_DIR", nothing.path.c_str(), 1);
        CHECK_THROWS_WITH(open("demo", at_once), contains("no pipeline \"demo\" is running (searched in " +
                                                          nothing.path.string() + "/carousel); start one"));
        CHECK_THROWS_WITH(open(nothing.path.string() + "/x", at_once), contains("no run has its folder at"));
    }
    const silent_run there;
    CHECK_THROWS_WITH(open("dmeo", at_once), contains("did you mean \"demo\"?; these are: demo"));
    CHECK_THROWS_WITH(open("..", at_once), contains("\"..\" can't be the name of a run"));
    CHECK(open("demo", at_once).name() == "demo");
    CHECK(open(run::run_folder("demo"), at_once).stages() == std::vector<std::string>{"fragment"});
}

TEST_CASE("a wait for a run ends at its timeout") {
    const scratch_folder nothing;
    ::setenv("XDG_RUNTIME_DIR", nothing.path.c_str(), 1);
    CHECK_THROWS_WITH(open("demo", {.device = "", .wait_s = 0.1}), contains("is running after 0.1 s"));
}

TEST_CASE("a run of another version of Carousel is refused") {
    const silent_run there;
    there.segment.block().version += 1;
    const std::string message = fmt::format("layout version {}, but this build has {}",
                                            shm::control_version + 1, shm::control_version);
    CHECK_THROWS_WITH(open("demo", at_once), contains(message));
    there.segment.block().version -= 1;
    std::filesystem::resize_file("/dev/shm/carousel-" + there.id, sizeof(shm::control_block) + 4096);
    CHECK_THROWS_WITH(open("demo", at_once), contains("different versions of Carousel"));
}

TEST_CASE("a run of another user is refused") {
    const scratch_folder folder;
    std::string others = "/";  // root's folder
    if (::geteuid() == 0) {
        others = folder.path.string();
        REQUIRE(::chown(others.c_str(), 12345, 12345) == 0);
    }
    CHECK_THROWS_WITH(open(others + "/", at_once), contains("this process runs as"));
}

TEST_CASE("a stage that isn't there is named, with those that are") {
    const silent_run there;
    const open_run run = open("demo", at_once);
    CHECK_THROWS_WITH(run.latest("fragmnt"), contains("no stage \"fragmnt\" with an output in demo; did you "
                                                      "mean \"fragment\"?; these have one: fragment"));
}

TEST_CASE("a supervisor without an answer is named, and so is an invalid device") {
    const silent_run there;
    CHECK_THROWS_WITH(open("demo", at_once).latest("fragment"), contains("no supervisor at"));
    CHECK_THROWS_WITH(open("demo", {.device = "cuda:x", .wait_s = 0}), contains("device \"cuda:x\""));
    CHECK_THROWS_WITH(open("demo", {.device = "gpu", .wait_s = 0}),
                      contains("takes \"\", cpu, cuda or cuda:N"));
}
