// isolation = "mps": stages that share one MPS domain, and everything that can happen to them. Ring memory
// outlives the domain.
#include <fmt/format.h>

#include <csignal>

#include "core/errors.hpp"
#include "supervisor/mps/mps_control.hpp"
#include "tests/gpu/gpu_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

bool has_mps() { return !supervisor::find_mps_control().empty(); }
constexpr const char* no_mps = "there is no nvidia-cuda-mps-control in PATH";

device_keys in_domain(const std::string& middle, const std::string& more = "") {
    device_keys keys;
    keys.pipeline = "isolation = \"mps\"\nfps = 200\n" + more;
    keys.middle = middle;
    return keys;
}

void check_whole(run_fixture& run, const std::string& hash) {
    const json r = run.report();
    REQUIRE(r.contains("image_hash"));
    check_undamaged(r);
    CHECK(r["dead_letters"].empty());
    CHECK(r["image_hash"] == hash);
    CHECK(run.leftovers() == "");
}

bool is_running_as_another(run_fixture& run, const std::string& stage, i32 before) {
    const json s = run.stage(stage);
    return s.contains("pid") && s["pid"].is_number() && s["pid"] != before && s["state"] == "running";
}

}  // namespace

TEST_CASE("in one MPS domain an endless kernel and a stopped stage end without harm to others") {
    if (!has_mps()) CAROUSEL_SKIP(no_mps);
    const std::string hash = undisturbed_device_hash(600);
    SECTION("an endless kernel") {
        run_fixture run;
        run.start(run.pipeline("endless",
                               device_pipeline("endless", in_domain("die_at = 100\ndie_how = \"endless\"\n",
                                                                    "frame_timeout_ms = 500\n"))),
                  {"--frames", "600"});
        CHECK(run.wait() == 0);
        INFO(run.log());
        check_whole(run, hash);
        CHECK(run.report()["restarts"] == 1);
        CHECK(run.report()["mps"]["domain_faults"] == 0);
    }
    SECTION("a stop with work on the device") {
        run_fixture run;
        run.start(
            run.pipeline("stopped", device_pipeline("stopped", in_domain("hold_at = 150\nhold_ms = 400\n",
                                                                         "frame_timeout_ms = 500\n"))),
            {"--frames", "600"});
        REQUIRE(run.wait_running());
        REQUIRE(run.wait_until([&] { return taken_at(run.log(), "middle", 150) != 0; }));
        run.hit("middle", SIGSTOP);
        CHECK(run.wait() == 0);
        INFO(run.log());
        check_whole(run, hash);
        CHECK(run.report()["restarts"] == 1);
        CHECK(run.report()["mps"]["domain_faults"] == 0);
    }
}

TEST_CASE("a fault that ends a whole MPS domain loses no frame and blames no stage") {
    if (!has_mps()) CAROUSEL_SKIP(no_mps);
    const std::string hash = undisturbed_device_hash(600);
    for (const char* how : {"illegal", "trap"}) {
        CAPTURE(how);
        run_fixture run;
        run.start(
            run.pipeline("domain", device_pipeline("domain", in_domain(fmt::format(
                                                                 "die_at = 100\ndie_how = \"{}\"\n", how)))),
            {"--frames", "600"});
        CHECK(run.wait() == 0);
        INFO(run.log());
        check_whole(run, hash);
        CHECK(run.report()["restarts"] == 3);
        CHECK(run.report()["mps"]["domain_faults"] == 1);
        CHECK(run.report()["mps"]["abandoned"] == false);
    }
}

TEST_CASE("carousel kill ends one stage of an MPS domain, and the others continue") {
    if (!has_mps()) CAROUSEL_SKIP(no_mps);
    const std::string hash = undisturbed_device_hash(1000);
    run_fixture run;
    run.start(run.pipeline("single", device_pipeline("single", in_domain(""))), {"--frames", "1000"});
    for (const char* stage : {"numbers", "middle", "sink"}) {
        CAPTURE(stage);
        REQUIRE(run.wait_running());
        const i32 before = run.pid_of(stage);
        std::string out;
        CHECK(run.command({"kill", stage}, out) == 0);
        CHECK_THAT(out, contains("its MPS domain continues"));
        CHECK(run.wait_until([&] { return is_running_as_another(run, stage, before); }));
    }
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, hash);
    CHECK(run.report()["restarts"] == 3);
    CHECK(run.report()["mps"]["domain_faults"] == 0);
    CHECK_THAT(run.log(), contains("signal 9 (SIGKILL)"));
}

TEST_CASE("kills from outside of every stage of an MPS domain, and of the supervisor, lose no frame") {
    if (!has_mps()) CAROUSEL_SKIP(no_mps);
    const std::string hash = undisturbed_device_hash(2000);
    run_fixture run;
    const std::string file =
        run.pipeline("killed", device_pipeline("killed", in_domain("", "supervisor_grace_s = 20\n")));
    run.start(file, {"--frames", "2000"});
    for (const char* stage : {"numbers", "middle", "sink"}) {
        CAPTURE(stage);
        REQUIRE(run.wait_running());
        const i32 before = run.pid_of(stage);
        run.hit(stage, SIGKILL);
        CHECK(run.wait_until([&] { return is_running_as_another(run, stage, before); }));
    }
    REQUIRE(run.wait_running());
    const i32 daemon = run.ask({{"type", "ps"}})["pipeline"]["mps"]["daemon_pid"];
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(file, {"--frames", "2000"});
    REQUIRE(run.wait_running());
    CHECK(run.ask({{"type", "ps"}})["pipeline"]["mps"]["daemon_pid"] == daemon);
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_whole(run, hash);
    CHECK(run.report()["mps"]["domain_faults"] == 3);
}

TEST_CASE("a frame that faults an MPS domain each time puts its stage on trial, which gives it up") {
    if (!has_mps()) CAROUSEL_SKIP(no_mps);
    run_fixture run;
    run.start(
        run.pipeline(
            "poison",
            device_pipeline(
                "poison",
                in_domain(
                    "die_at = 100\ndie_how = \"illegal\"\ndie_incarnations = 1000\nmax_attempts = 2\n"))),
        {"--frames", "300"});
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    const json r = run.report();
    REQUIRE(r.contains("dead_letters"));
    check_undamaged(r);
    CHECK(r["mps"]["abandoned"] == false);
    CHECK(r["mps"]["blamed"] == json{"middle"});
    REQUIRE(r["dead_letters"].size() == 1);
    CHECK(r["dead_letters"][0]["ring_sequence"] == 100);
    CHECK(r["dead_letters"][0]["stage"] == "middle");
}
