// Stage programs are shell scripts here: what matters is what they answer, and that they may answer anything.

#include <fmt/format.h>

#include <chrono>

#include "core/json.hpp"
#include "os/subprocess.hpp"
#include "spec/describe.hpp"
#include "spec/programs.hpp"
#include "tests/pipelines/spec/world.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;

namespace {

std::string describe_refusal(const world& w, const std::string& text = two_stages, u32 timeout_ms = 5000) {
    try {
        (void)describe_stages(read_pipeline(w.write("p.toml", text)), timeout_ms);
        return "";
    } catch (const config_error& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("stages are configured in the links' order with their settings and inputs") {
    const world w;
    w.program("source", source_body);
    w.program("sink", "cat > " + w.path("heard") +
                          R"(; echo '{"format":null,"commits_on_host":true,"uses":["mesh"]}')");
    const auto all = describe_stages(read_pipeline(w.write("p.toml", two_stages)));
    REQUIRE(all.size() == 2);
    CHECK(all[0].stage == "a");
    CHECK(all[0].program == w.path("source"));
    CHECK(all[0].slot_bytes == 512);
    CHECK(all[0].makes.at(0).name == "mesh");
    CHECK(all[1].commits_on_host);
    CHECK(all[1].uses == std::vector<std::string>{"mesh"});
    CHECK(all[1].format.is_null());
    std::ifstream heard(w.path("heard"));
    nlohmann::json expected = nlohmann::json::parse(
        R"({"stage":"b","width":1280,"height":720,"fps":0.0,"device":"auto","settings":{"own":3},"inputs":[{"stage":"a","format":{"type":"t","planes":[]}}]})");
    expected["folder"] = w.folder();
    CHECK(nlohmann::json::parse(heard) == expected);
}

TEST_CASE("a stage that can't run where the file puts it is refused before anything starts") {
    const world w;
    w.program("source", source_body);
    const auto sink_for = [&](const std::string& devices) {
        w.program("sink", R"(cat > /dev/null; echo '{"format":null,"uses":["mesh"],"runs_on":")" + devices +
                              R"("}')");
    };
    sink_for("cuda");
    CHECK(describe_refusal(w, two_stages + "device = \"cpu\"\n") ==
          w.path("p.toml") +
              ":9:1: stage \"b\" runs only on a GPU, but device = \"cpu\" places it on the CPU; set "
              "device = \"cuda:0\"");
    CHECK(describe_refusal(w, two_stages + "device = \"cuda:1\"\n").empty());
    CHECK(describe_refusal(w).empty());  // auto: the machine decides
    sink_for("cpu");
    CHECK(describe_refusal(w, two_stages + "device = \"cuda:0\"\n") ==
          w.path("p.toml") +
              ":9:1: stage \"b\" runs only on the CPU, but device = \"cuda:0\" places it on a GPU; "
              "set device = \"cpu\"");
    sink_for("any");
    CHECK(describe_refusal(w, two_stages + "device = \"cpu\"\n").empty());
}

TEST_CASE("a stage's complaint is reported at the key that it concerns") {
    const world w;
    w.program("source", source_body);
    w.program(
        "sink",
        R"(cat > /dev/null; echo '{"error":{"message":"own = 3: expected less","key":"own"}}'; exit 2)");
    CHECK(describe_refusal(w) == w.path("p.toml") + ":8:1: stage \"b\": own = 3: expected less");
    w.program("sink", R"(cat > /dev/null; echo '{"error":{"message":"formats differ","key":""}}'; exit 2)");
    CHECK(describe_refusal(w) == w.path("p.toml") + ":4:1: stage \"b\": formats differ");
    // A mistyped key of the supervisor's reaches the stage as a key of the stage.
    w.program(
        "sink",
        R"(cat > /dev/null; echo '{"error":{"message":"unknown key \"in_fligth\"","key":"in_fligth"}}'; exit 2)");
    CHECK_THAT(describe_refusal(w, two_stages + "in_fligth = 2\n"),
               contains(":9:1: ") && contains("did you mean \"in_flight\"?"));
    w.program(
        "sink",
        R"(cat > /dev/null; echo '{"error":{"message":"unknown key \"latest\"","key":"latest"}}'; exit 2)");
    CHECK_THAT(describe_refusal(w, two_stages + "latest = [\"a\"]\n"),
               contains(":9:1: ") && contains("did you mean \"sampled\"?"));
}

TEST_CASE("a program that is missing, dies, hangs or talks nonsense is named") {
    const world w;
    w.program("source", source_body);
    CHECK_THAT(describe_refusal(w),
               contains(":6:1: stage \"b\": run = \"./sink\": " + w.path("sink") + " does not exist"));
    w.write("sink", "no program");
    CHECK_THAT(describe_refusal(w), contains("is not an executable program"));
    CHECK_THAT(
        describe_refusal(w,
                         "[[stage]]\nname=\"a\"\nrun=\"carousel-nonesuch\"\n[[stage]]\nname=\"b\"\nrun="
                         "\"x\"\ninputs=[\"a\"]\n"),
        contains("run = \"carousel-nonesuch\": no such program in " + executable_folder() + " or in PATH"));
    w.program("sink", "echo 'my last words' >&2; kill -SEGV $$");
    CHECK_THAT(describe_refusal(w), contains("signal 11 (SIGSEGV); its last output: my last words"));
    w.program("sink", "echo bad >&2; exit 7");
    CHECK_THAT(describe_refusal(w), contains("ended with exit code 7; its last output: bad"));
    w.program("sink", "cat > /dev/null; echo hello");
    CHECK_THAT(describe_refusal(w), contains("is not a JSON object; check that it is a Carousel stage"));
    w.program("sink", "cat > /dev/null; echo '{\"slot_bytes\": 3}'");
    CHECK_THAT(describe_refusal(w), contains("has an unknown format"));
    w.program("sink", "sleep 60");
    const auto before = std::chrono::steady_clock::now();
    CHECK_THAT(describe_refusal(w, two_stages, 2000),
               contains("stage \"b\"") && contains("no answer within 2 s"));
    CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(10));
}

TEST_CASE("a tool to run a stage under is looked up before any start") {
    const world w;
    w.program("source", source_body);
    w.program("sink", sink_body);
    CHECK(describe_refusal(w, two_stages + "prefix = \"env -i\"\n").empty());
    CHECK_THAT(describe_refusal(w, two_stages + "prefix = \"nonesuch-tool --args\"\n"),
               contains(":9:1: stage \"b\": prefix: no program \"nonesuch-tool\" in PATH"));
}

TEST_CASE("a stage's interpreter is looked up before any start") {
    const world w;
    w.program("source", source_body);
    w.write("sink.py", "");
    const std::string in_python =
        "[[stage]]\nname = \"a\"\nrun = \"./source\"\n[[stage]]\nname = \"b\"\nrun = "
        "\"sink.py\"\ninputs = [\"a\"]\n";
    const auto refusal_of = [&](const std::string& python) {
        return describe_refusal(w, in_python + "python = \"" + python + "\"\n");
    };
    CHECK_THAT(refusal_of("absent"), contains(":8:1: stage \"b\": python = \"absent\": " + w.path("absent") +
                                              " does not exist (paths are relative to the pipeline file)"));
    std::filesystem::create_directories(w.path("env/bin"));
    CHECK_THAT(refusal_of("env/"), contains(w.path("env/") + " has no interpreter bin/python3"));
    CHECK_THAT(refusal_of("sink.py"), contains(w.path("sink.py") + " is not an executable program"));
    w.program("env/bin/python3", "echo my last words >&2; exit 3");
    if (supervisor::python_folder().empty()) return;  // a build without the module starts no interpreter
    for (const char* const python : {"env", "env/bin/python3", "./env"})
        CHECK_THAT(refusal_of(python), contains("ended with exit code 3; its last output: my last words"));
}

TEST_CASE("outputs and assets must have two ends") {
    const world w;
    w.program("source", source_body);
    w.program("sink", source_body);
    CHECK_THAT(describe_refusal(w), contains(":4:1: stage \"b\" produces frames (t) that no stage reads"));
    w.program("source", R"(cat > /dev/null; echo '{"format":null}')");
    CHECK_THAT(describe_refusal(w), contains(":7:1: stage \"b\" reads \"a\", which has no output"));
    w.program("source", source_body);
    w.program("sink", R"(cat > /dev/null; echo '{"format":null,"uses":["mash"]}')");
    CHECK_THAT(
        describe_refusal(w),
        contains("stage \"b\" uses the asset \"mash\", which no stage produces; did you mean \"mesh\"?"));
    w.program("sink", R"(cat > /dev/null; echo '{"format":null,"makes":[{"name":"mesh","bytes":1}]}')");
    CHECK_THAT(describe_refusal(w),
               contains("stage \"b\" produces the asset \"mesh\", which another stage also produces"));
}

TEST_CASE("sizes that a stage reports are bounded before the plan multiplies them") {
    const world w;
    w.program("sink", R"(cat > /dev/null; echo '{"format":null}')");
    for (const char* size : {"9223372036854775808", "1099511627777", "18446744073709551615"}) {
        w.program(
            "source",
            fmt::format("cat > /dev/null; echo '{{\"format\":{{\"type\":\"t\"}},\"slot_bytes\":{}}}'", size));
        CHECK_THAT(describe_refusal(w), contains("bytes for a slot; at most 1099511627776 are possible"));
    }
    w.program(
        "source",
        R"(cat > /dev/null; echo '{"format":{"type":"t"},"slot_bytes":256,"makes":[{"name":"m","bytes":18446744073709547520}]}')");
    CHECK_THAT(describe_refusal(w), contains("bytes for asset m; at most 70368744177664 are possible"));
    for (const char* size : {"-1", "18446744073709551616", "2.5"}) {
        w.program(
            "source",
            fmt::format("cat > /dev/null; echo '{{\"format\":{{\"type\":\"t\"}},\"slot_bytes\":{}}}'", size));
        CHECK_THAT(describe_refusal(w), contains("is not an integer from 0 to 18446744073709551615"));
    }
}

TEST_CASE("a helper program is fed, read and bounded") {
    const std::string much(300'000, 'x');  // more than a pipe holds, in both directions
    const auto echoed = run_subprocess({"cat"}, much, 10'000);
    CHECK(echoed.succeeded());
    CHECK(echoed.output == much);
    const auto deaf = run_subprocess({"true"}, much, 10'000);  // goes away with its input unread
    CHECK(deaf.succeeded());
    const auto missing = run_subprocess({"/nowhere/program"}, "", 1000);
    CHECK_FALSE(missing.started);
    CHECK(missing.ending(1000) == "No such file or directory");
    const auto talker = run_subprocess({"sh", "-c", "yes"}, "", 10'000);
    CHECK_FALSE(talker.succeeded());
    CHECK(talker.ending(10'000) == "more than 1 MiB of output");
    // Processes that it leaves running in its group end with it.
    const auto hanging = run_subprocess({"sh", "-c", "sleep 60 & wait"}, "", 100);
    CHECK(hanging.timed_out);
}

TEST_CASE("signals have names") {
    CHECK(signal_from("9") == 9);
    CHECK(signal_from("KILL") == 9);
    CHECK(signal_from("sigabrt") == 6);
    CHECK(signal_from("") == 0);
    CHECK(signal_from("0") == 0);
    CHECK(signal_from("999") == 0);
    CHECK(signal_from("99999999999999999999") == 0);
    CHECK(signal_from("NONSENSE") == 0);
    CHECK(signal_name(9) == "SIGKILL");
    CHECK(signal_name(63) == "signal 63");
}

TEST_CASE("a source may end the stream only if declared, and unrelated sinks are refused by name") {
    const world w;
    w.program("ending",
              R"(cat > /dev/null; echo '{"format":{"type":"t","planes":[]},"slot_bytes":512,"ends":true}')");
    w.program("source", R"(cat > /dev/null; echo '{"format":{"type":"t","planes":[]},"slot_bytes":512}')");
    w.program("sink", R"(cat > /dev/null; echo '{"format":null}')");
    const std::string reader =
        "[[stage]]\nname = \"a\"\nrun = \"./ending\"\n[[stage]]\nname = \"b\"\nrun = \"./sink\"\ninputs = "
        "[\"a\"]\n";
    const auto all = describe_stages(read_pipeline(w.write("p.toml", reader)));
    CHECK(all.at(0).ends);
    CHECK_FALSE(all.at(1).ends);
    const std::string other = reader + "[[stage]]\nname = \"c\"\nrun = \"./source\"\n";
    CHECK(describe_refusal(
              w, other + "[[stage]]\nname = \"d\"\nrun = \"./sink\"\ninputs = [\"c\", \"a\"]\n") == "");
    CHECK_THAT(describe_refusal(w, other + "[[stage]]\nname = \"d\"\nrun = \"./sink\"\ninputs = [\"c\"]\n"),
               contains("p.toml:14:1: stage \"d\" gets no frames of \"a\", which may end the stream") &&
                   contains("group = \"latest\""));
}

TEST_CASE("a stage that reads others can't end the stream") {
    const world w;
    w.program("source", source_body);
    w.program("sink", R"(cat > /dev/null; echo '{"format":null,"uses":["mesh"],"ends":true}')");
    CHECK_THAT(describe_refusal(w),
               contains("stage \"b\" may end the stream, but it reads \"a\"; only a source "));
}
