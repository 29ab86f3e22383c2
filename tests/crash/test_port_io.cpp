// External programs that take part in a run, as its source and its sink: they die, hang, are stopped, come
// from other namespaces; and the supervisor dies.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <random>

#include "core/errors.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/port_run.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::vector<std::string> unshare_words(const std::vector<std::string>& what) {
    std::vector<std::string> words{"unshare"};
    if (::geteuid() != 0) words.insert(words.end(), {"--user", "--map-current-user"});
    words.insert(words.end(), what.begin(), what.end());
    return words;
}
bool can_be_done(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += word + " ";
    return std::system((all + "true 2>/dev/null").c_str()) == 0;
}

}  // namespace

TEST_CASE("two programs that were started apart carry a run's frames, and both see its end") {
    port_run run("apart", "frames = 3000\n");
    external_program reads = run.reads("reads", {"0"}, {}, {"setsid", "--wait"});
    external_program writes = run.writes("writes", {"0"}, {}, {"nohup"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(reads.wait(10) == 0);
    CHECK(writes.wait(10) == 0);
    CHECK_THAT(reads.output(), contains("ended, 3000 frames"));
    CHECK_THAT(writes.output(), contains("ended, 3000 frames"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("readers and writers that are killed under load lose, repeat and tear no frame") {
    port_run run("killed", "supervisor_grace_s = 20\n");
    std::mt19937_64 random(test_seed());
    auto reads = std::make_unique<external_program>(run.reads("reads"));
    auto writes = std::make_unique<external_program>(run.writes("writes", {"20"}));
    const u64 kills = scaled(30);
    std::vector<bool> readers(
        kills);  // which kills are of readers: half of them, in an order determined by the seed
    for (u64 k = 0; k < kills; k += 2) readers[k] = true;
    std::shuffle(readers.begin(), readers.end(), random);
    for (u64 k = 0; k < kills; ++k) {
        sleep_s(static_cast<f64>(random() % 30) / 1000);
        auto& victim = readers[k] ? reads : writes;
        // Every third one after it has certainly begun a frame.
        if (k % 3 == 0) run.wait_until([&] { return victim->has_printed("frame"); });
        victim->signal(SIGKILL);
        const int code = victim->wait(10);
        if (code != -SIGKILL) FAIL("a program ended with " << code << ": " << victim->output());
        const std::string name = fmt::format("{}{}", victim == reads ? "reads" : "writes", k);
        victim =
            std::make_unique<external_program>(victim == reads ? run.reads(name) : run.writes(name, {"20"}));
    }
    CHECK(run.wait_until([&] { return reads->frame() > 0 && writes->frame() > 0; }));
    run.end_and_check();
    CHECK(reads->wait(10) == 0);
    CHECK(writes->wait(10) == 0);
}

TEST_CASE("a program that keeps its frame is fenced, not killed, and its place becomes free") {
    port_run run("kept", "frame_timeout_ms = 400\n");
    external_program other = run.reads("other");
    external_program keeps = run.writes("keeps", {"500", "20", "2500"});
    REQUIRE(run.wait_until([&] { return keeps.has_printed("holds"); }));
    external_program next = run.writes("next", {"500"});
    CHECK(run.wait_until([&] { return next.frame() > 0; }));
    CHECK_THAT(run.log(),
               contains("process() of a frame takes longer than frame_timeout_ms = 400: its seat now "
                        "belongs to another process"));
    CHECK(run.wait_until([&] { return keeps.has_printed("revoked"); }));  // alive, and notified
    CHECK_THAT(keeps.output(),
               contains("was not committed, because port \"camera\" was given to another incarnation"));
    next.signal(SIGKILL);  // the port is free, and the first program returns to it
    const u64 then = keeps.frame();
    CHECK(run.wait_until([&] { return keeps.frame() > then; }));
    run.end_and_check();
}

TEST_CASE("a reader stopped with a frame is fenced and continues late without harm") {
    port_run run("halted", "frame_timeout_ms = 400\n");
    external_program writes = run.writes("writes");
    external_program halts = run.reads("halts", {"200"});
    REQUIRE(run.makes_progress(halts));
    halts.signal(SIGSTOP);
    external_program next = run.reads("next");
    CHECK(run.makes_progress(next));
    halts.signal(SIGCONT);
    run.end_and_check();
}

TEST_CASE("an impossible request gives one sentence as error, and the run continues") {
    port_run run("refused");
    external_program reads = run.reads("reads"), writes = run.writes("writes");
    REQUIRE(run.makes_progress(reads));
    const auto check_refusal = [&](const std::vector<std::string>& words, const std::string& sentence) {
        external_program p(run, "says", "carousel-test-port-io", words);
        CHECK(p.wait(20) == exit_code::usage);
        CHECK_THAT(p.output(), contains(sentence));
    };
    check_refusal(
        {"write", "refused", "camera"},
        fmt::format("port camera already has a program (pid {}): only one at a time", writes.pid()));
    check_refusal({"read", "refused", "camera"},
                  "port camera is for a writer: open it with writer(\"camera\")");
    check_refusal(
        {"read", "refused", "analysys"},
        "the pipeline refused has no port \"analysys\"; did you mean \"analysis\"?; its ports are: camera "
        "(writer), "
        "analysis (reader)");
    std::string out;
    for (const char* command : {"kill", "stop", "restart"}) {
        CHECK(run.command({command, "camera"}, out) == exit_code::usage);
        CHECK_THAT(out, contains("camera is a port"));
    }
    CHECK(run.makes_progress(reads));
    run.end_and_check();
}

TEST_CASE("a reader that uses a wrong plane or never commits gets an error, and its frame is repeated") {
    port_run run("mistaken");
    external_program writes = run.writes("writes");
    const std::map<std::string, std::string> sentences = {
        {"type", "the plane \"value\" was requested as f32, but it is u64 in test.number {"},
        {"shape", "but this program expects value = \"u64[511]\""},
        {"next",
         "frame 0 of port \"analysis\" was not committed before the next one was requested: the run "
         "waits for its commit()"}};
    for (const auto& [how, sentence] : sentences) {
        external_program p(run, how, "carousel-test-port-io", {how, "mistaken", "analysis"});
        CHECK(p.wait(20) == exit_code::usage);
        CHECK_THAT(p.output(), contains(sentence));
    }
    external_program reads = run.reads("reads");
    CHECK(run.wait_until([&] { return reads.has_printed("frame 0\n"); }));
    CHECK(run.makes_progress(reads));
    run.end_and_check();
}

TEST_CASE("ports of a run without stages lose the ring contents with their supervisor, frame by frame") {
    port_run run("orphaned", "supervisor_grace_s = 20\n");
    // The reader keeps frame 3 leased: it cannot deliver what is in the rings before the run is adopted.
    external_program reads = run.reads("reads", {"0", "3", "60000"}), writes = run.writes("writes");
    REQUIRE(run.wait_until([&] { return reads.has_printed("holds 3"); }));
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(run.file());
    CHECK(run.wait_until([&] { return run.log().find("frame 4 is lost") != std::string::npos; }));
    external_program next = run.reads("next");
    CHECK(run.makes_progress(next));
    CHECK(run.makes_progress(writes));
    run.signal(SIGINT);
    CHECK(run.wait() == exit_code::frames_abandoned);
    INFO(run.log());
    CHECK(run.report()["lost"] == 0);
    CHECK(run.report()["repeated"] == 0);
}

TEST_CASE("ports come back to a second supervisor, and no frame is lost over it") {
    port_run run("succeeded", "supervisor_grace_s = 20\n", witness());
    external_program reads = run.reads("reads"), writes = run.writes("writes");
    REQUIRE(run.makes_progress(reads));
    for (int k = 0; k < 2; ++k) {
        run.signal(SIGKILL);
        REQUIRE(run.wait() == -SIGKILL);
        run.start(run.file());
        REQUIRE(run.wait_until([&] { return run.is("witness", "running"); }));
        CHECK(run.makes_progress(writes));
        CHECK(run.makes_progress(reads));
    }
    reads.signal(SIGKILL);  // known to the new supervisor
    external_program next = run.reads("next");
    CHECK(run.makes_progress(next));
    run.end_and_check();
}

TEST_CASE("frames skip a port that skips while it has no program, and wait otherwise") {
    port_run run("skips", "supervisor_grace_s = 20\n", "vacant = \"skip\"\n" + witness());
    external_program writes = run.writes("writes", {"500"});
    CHECK(run.makes_progress(writes));
    for (int k = 0; k < 4; ++k) {
        {
            external_program reads = run.reads("reads");
            REQUIRE(run.makes_progress(reads));
        }
        CHECK(run.makes_progress(writes));
        CHECK(run.makes_progress(writes));  // more than a ring holds
        if (k != 1) continue;
        run.signal(SIGKILL);
        REQUIRE(run.wait() == -SIGKILL);
        run.start(run.file());
        CHECK(run.makes_progress(writes));
    }
    external_program slow = run.reads("slow", {"200000"});
    REQUIRE(run.makes_progress(slow));
    const u64 then = link_of(map_block(run), "camera").tail.load();
    sleep_s(1);
    CHECK(link_of(map_block(run), "camera").tail.load() - then < 100);  // of 2,000 that the writer would make
    slow.signal(SIGKILL);
    CHECK(run.makes_progress(writes));
    run.end_and_check();
    CHECK_THAT(run.log(), contains("port analysis has no program: frames skip it"));
    const json report = run.report();
    CHECK_THAT(report.dump(), contains("frames skip it while it has no program (vacant = \\\"skip\\\")"));
    // Each frame was read or skipped; a reader that is killed after its commit has not counted it.
    const u64 skipped = report["sinks"][0]["skipped"], read = report["stages"][1]["frames"];
    CHECK(skipped > 0);
    CHECK(skipped + read <= report["frames"]);
    CHECK(skipped + read + 5 >= report["frames"]);
    CHECK_THAT(run.log(), contains(fmt::format("(vacant = \"skip\"): {} of them", skipped)));
}

TEST_CASE("a skipping port reads next to a reader of every frame") {
    run_fixture run;
    const auto refuses = [&](const std::string& text, const std::string& sentence) {
        std::string out;
        CHECK(run.command({"run", run.pipeline("skips", text), "--dry-run"}, out) == exit_code::usage);
        CHECK_THAT(out, contains(sentence));
    };
    const std::string ports = port_pipeline("skips", ""), skips = "vacant = \"skip\"\n";
    refuses(ports + "vacant = \"sulk\"\n" + witness(),
            "port \"analysis\": vacant = \"sulk\": expected \"wait\"");
    refuses(ports + skips, "every stage that reads \"camera\" may miss frames (vacant = \"skip\")");
    refuses(ports + witness() +
                "[[stage]]\nname = \"other\"\nrun = \"port\"\noutput = { value = \"u8[4]\" }\n" + skips,
            "is only for a port that reads, but this port writes");
}

TEST_CASE("a port without a program is reported with the call that opens it and is never killed") {
    port_run run("empty", "frames = 5\n");
    std::string table;
    CHECK(run.command({"ps"}, table) == 0);
    CHECK_THAT(
        table,
        contains(
            "waiting: camera has no program (a program opens it with open(\"empty\").writer(\"camera\"))"));
    CHECK_THAT(table, contains("port camera has no program: the other stages wait until a program opens it"));
    CHECK_THAT(table, !contains("is down"));
    external_program reads = run.reads("reads"), writes = run.writes("writes");
    REQUIRE(run.wait() == 0);
    CHECK_THAT(run.log(), !contains("carousel kill"));
}

TEST_CASE("a writer ends its stream: the run delivers earlier frames, names the writer, and ends") {
    port_run run("ends");
    external_program reads = run.reads("reads"), writes = run.ends("writes", 300);
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["frames"] == 300);
    CHECK(run.report()["ended_by"] == "camera");
    check_undamaged(run.report());
    CHECK(reads.wait(10) == 0);
    CHECK(writes.wait(10) == 0);
    CHECK_THAT(reads.output(), contains("ended, 300 frames"));
    CHECK_THAT(writes.output(), contains("ended, 300 frames"));
    CHECK(run.leftovers() == "");
}

TEST_CASE("a writer that dies as it ends its stream has ended it, or leaves that to the next one") {
    const auto point = GENERATE(crash_point::end_claimed, crash_point::end_known);
    CAPTURE(std::string(name_of(point)));
    port_run run("claims");
    crash_plan plan(run.path("plan"));
    plan.add("end", point, "kill", 1);
    plan.write();
    external_program reads = run.reads("reads"), dies = run.ends("dies", 50, {plan.environment()});
    CHECK(dies.wait(20) == -SIGKILL);
    external_program next = run.ends("next", 50);  // not needed if the claim of the first one was received
    CHECK(run.wait() == 0);
    INFO(run.log());
    CHECK(run.report()["frames"] == 50);
    check_undamaged(run.report());
    CHECK(reads.wait(10) == 0);
}

TEST_CASE("a writer whose port may not end the stream gets an error, and the run continues") {
    const std::string mute =
        "[[stage]]\nname = \"mute\"\nrun = \"port\"\noutput = { value = \"u64[512]\" }\n"
        "[[stage]]\nname = \"hears\"\nrun = \"port\"\ninputs = [\"mute\"]\n";
    run_fixture run;
    run.start(run.pipeline("mute", "[pipeline]\nname = \"mute\"\ndevice = \"cpu\"\n" + mute));
    REQUIRE(run.wait_until([&] { return !run.stage("hears").is_null(); }));
    external_program writes(run, "writes", "carousel-test-port-io", {"end", "mute", "mute", "0", "1", "0"});
    CHECK(writes.wait(20) == exit_code::usage);
    CHECK_THAT(writes.output(), contains("port \"mute\" ends its stream, but the pipeline file does not "
                                         "permit it: set `ends = true` in the table of mute"));
    external_program reads(run, "reads", "carousel-test-port-io", {"read", "mute", "hears"});
    CHECK(run.wait_until([&] { return reads.has_printed("frame 0"); }));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    check_undamaged(run.report());
}

TEST_CASE("a program of another pid namespace takes part like any other, and its death is seen") {
    const auto words = unshare_words({"--pid", "--mount", "--fork", "--kill-child"});
    if (!can_be_done(words)) CAROUSEL_SKIP("no pid namespace can be made here (unshare fails)");
    port_run run("elsewhere");
    external_program writes = run.writes("writes", {"200"}, {}, words);
    external_program reads = run.reads("reads", {"0"}, {}, words);
    CHECK(run.makes_progress(reads));
    // The kernel translates the pid of a process in a namespace below this one. For a sibling namespace it
    // returns none: test_port_places.py.
    const nlohmann::json there = run.stage("analysis");
    CHECK(std::filesystem::read_symlink(fmt::format("/proc/{}/exe", there["pid"].get<i32>())).filename() ==
          "carousel-test-port-io");
    CHECK(there["memory_bytes"].get<u64>() > 0);
    writes.signal(SIGKILL);
    external_program next = run.writes("next", {"200"}, {}, words);
    CHECK(run.wait_until([&] { return next.frame() > 0; }));
    run.end_and_check();
    CHECK(reads.wait(10) == 0);
}
