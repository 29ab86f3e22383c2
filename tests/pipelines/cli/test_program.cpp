// The program itself, on the CPU: short runs of every shipped pipeline, commands to a running one, and bad
// input. Nothing may be left afterwards: no process, no shared memory, no socket.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/io.hpp"
#include "core/json.hpp"
#include "os/subprocess.hpp"
#include "runs/client.hpp"
#include "shm/segment.hpp"
#include "spec/programs.hpp"
#include "tests/pipelines/spec/world.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;
using supervisor::run_subprocess;
using supervisor::subprocess_result;

namespace {

namespace fs = std::filesystem;
const std::string shipped = CAROUSEL_PIPELINES;

std::string program() { return executable_folder() + "/carousel"; }

subprocess_result run_program(std::vector<std::string> words, u32 timeout_ms = 60'000) {
    words.insert(words.begin(), program());
    return run_subprocess(words, "", timeout_ms);
}

/// A short run on the CPU of a small picture.
std::vector<std::string> small(const std::string& file, std::vector<std::string> more) {
    std::vector<std::string> words = {"run",   file,       "--device", "cpu",   "--size",
                                      "96x64", "--frames", "12",       "--out", ""};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// Processes of this world: its folder is in their environment.
std::vector<std::string> processes_of(const world& w) {
    std::vector<std::string> found;
    std::error_code failed;
    for (fs::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
        const std::string pid = at->path().filename().string();
        if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
        const std::string text = read_file((at->path() / "environ").string()).value_or("");
        if (text.find("XDG_RUNTIME_DIR=" + w.folder() + '\0') != std::string::npos) found.push_back(pid);
    }
    return found;
}

/// Control blocks of runs of that name.
int blocks_of(const std::string& name) {
    int count = 0;
    for (const auto& each : fs::directory_iterator("/dev/shm")) {
        const std::string file = each.path().filename().string();
        if (!file.starts_with("carousel-")) continue;
        try {
            const shm::segment s = shm::segment::observe(file.substr(9));
            if (std::string(s.block().pipeline) == name) ++count;
        } catch (const error&) {
            continue;  // a folder of another process, or one that is being created
        }
    }
    return count;
}

void check_clean(const world& w, const std::string& name) {
    CHECK(processes_of(w).empty());
    CHECK(blocks_of(name) == 0);
    for (const char* file : {"/control.sock", "/run.json"})
        CHECK_FALSE(fs::exists(run::run_folder(name) + file));
}

}  // namespace

TEST_CASE("every shipped pipeline runs on the CPU without loss, and equal scenes give equal pictures") {
    const world w;
    std::map<std::string, std::string> hashes;
    for (const auto& file : fs::directory_iterator(shipped)) {
        if (file.path().extension() != ".toml") continue;
        const std::string name = file.path().stem().string(), report = w.path(name + ".json");
        if (name == "inference" && !test::has_extras) continue;
        if (name == "video") continue;  // takes FFmpeg and Python: test_video.py runs it
        INFO(name);
        const std::string own =
            fmt::format("{}-{}", name, ::getpid());  // another test may run the same file meanwhile
        std::vector<std::string> words{"--name", own, "--report", report};
        if (name != "inference")
            for (const char* word : {"--set", "geometry.triangles=2000"}) words.emplace_back(word);
        const subprocess_result r = run_program(small(file.path().string(), words));
        INFO(r.messages);
        REQUIRE(r.succeeded());
        std::ifstream in(report);
        const json j = json::parse(in);
        CHECK(j.at("pipeline") == own);
        CHECK(j.at("frames") == 12);
        CHECK(j.at("lost") == 0);
        CHECK(j.at("repeated") == 0);
        CHECK(j.at("torn") == 0);
        hashes[name] = j.at("image_hash").dump();
        check_clean(w, own);
    }
    CHECK(hashes.size() >= 8);
    CHECK(hashes["demo"] == hashes["fused"]);
    CHECK(hashes["workers"] == hashes["ipc_memory"]);
    CHECK(hashes["demo"] != hashes["custom_stage"]);
    // The camera's path depends on the frame's number: without the number the pictures would differ.
    const std::string still = w.path("still.json");
    REQUIRE(run_program(small(shipped + "/knots.toml", {"--report", still, "--set", "geometry.triangles=2000",
                                                        "--set", "parameters.orbit=0"}))
                .succeeded());
    std::ifstream in(still);
    CHECK(json::parse(in).at("image_hash").dump() != hashes["knots"]);
}

TEST_CASE("a living pipeline is shown, held, killed, replaced and ended from the command line") {
    const world w;
    const std::string name = fmt::format("live-{}", ::getpid());
    subprocess_result result;
    std::thread running([&] {
        result = run_program({"run", shipped + "/demo.toml", "--device", "cpu", "--size", "96x64", "--set",
                              "geometry.triangles=500", "--fps", "50", "--out", "", "--name", name,
                              "--report", w.path("r.json")});
    });
    const auto stage = [&](std::size_t k) {
        return json::parse(run_program({"ps", "--json", "--wait", "20"}).output).at("stages").at(k);
    };
    const auto until = [&](std::size_t k, const std::string& state) {
        for (int tries = 0; tries < 200; ++tries) {
            if (stage(k).at("state") == state) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        return false;
    };
    CHECK(until(2, "running"));
    CHECK(processes_of(w).size() == 5);  // so these two do see the output
    CHECK(blocks_of(name) == 1);
    const int before = stage(2).at("pid");
    CHECK(run_program({"kill", "fragment"}).exit_code == 0);
    for (int tries = 0; tries < 200 && stage(2).at("pid") == before; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(until(2, "running"));
    CHECK(stage(2).at("pid") != before);
    CHECK(stage(2).at("restarts") == 1);
    CHECK(stage(0).at("restarts") == 0);
    CHECK(run_program({"stop", "vertex"}).exit_code == 0);
    CHECK(until(1, "stopped"));
    CHECK(run_program({"cont", "vertex"}).exit_code == 0);
    CHECK(until(1, "running"));
    CHECK(run_program({"down", "fragment"}).exit_code == 0);
    CHECK(until(2, "down"));
    CHECK(run_program({"up", "fragment"}).exit_code == 0);
    CHECK(until(2, "running"));
    CHECK(run_program({"restart", "geometry", "display"}).exit_code == 0);
    CHECK(run_program({"kill", "fragmant"}).exit_code == 2);
    const subprocess_result second = run_program(small(shipped + "/demo.toml", {"--name", name}));
    CHECK(second.exit_code == 2);
    CHECK_THAT(second.messages, contains(name));
    CHECK_THAT(run_program({"ps"}).output, contains("fragment"));
    CHECK(run_program({"down"}).exit_code == 0);
    running.join();
    INFO(result.messages);
    CHECK(result.exit_code == 0);
    std::ifstream in(w.path("r.json"));
    const json j = json::parse(in);
    CHECK(j.at("lost") == 0);
    CHECK(j.at("repeated") == 0);
    CHECK(j.at("torn") == 0);
    check_clean(w, name);
}

TEST_CASE("bad input ends with one message and its exit code, without leftovers") {
    const world w;
    const std::string name = fmt::format("bad-{}", ::getpid()), demo = shipped + "/demo.toml";
    struct row {
        std::vector<std::string> options;
        int code;
        std::string text;
    };
    const row rows[] = {
        {{"--mesh", "/nowhere/x.obj"}, 2, "/nowhere/x.obj"},
        {{"--mesh", w.write("bad.obj", "v 1 2\nf 1 2 3\n")}, 2, "bad.obj:"},
        {{"--mesh", w.write("bad.gltf", R"({"asset": {"version": "2.0"}, "nodes": [{"mesh": 3}]})")},
         2,
         "bad.gltf: nodes[0]"},
        {{"--set", "geometry.texture=" + w.write("bad.png", "no picture")}, 2, "bad.png"},
        {{"--set", "geometry.mesh=bumpy-spere"}, 2, "did you mean \"bumpy-sphere\"?"},
        {{"--set", "vertex.colour=3"}, 2, "unknown key \"colour\""},
        {{"--size", "0x64"}, 2, "each from 1 to 16384"},
        {{"--size", "100000x100000"}, 2, "each from 1 to 16384"},
        {{"--frames=-1"}, 2, "--frames -1: expected a whole number of frames"},
        {{"--device", "cuda:63"}, 3, "cuda:63"},
        {{"--device", "gpu"}, 2, "--device gpu"},
        {{"--out", "/proc/nowhere/f_%d.png"}, 75, "/proc/nowhere"},
        {{"--out", w.path("pictures.png")}, 2, "--out"},
        {{"--report", "/nowhere/r.json"}, 75, "/nowhere/r.json"},
        {{"--set", "fragment.run=nonesuch"}, 2, "no such program"},
        {{"--set", "fragment.prefix=nonesuch"}, 2, "no program \"nonesuch\""},
    };
    for (const row& r : rows) {
        INFO(fmt::format("{}", fmt::join(r.options, " ")));
        std::vector<std::string> more = {"--name", name};
        more.insert(more.end(), r.options.begin(), r.options.end());
        const subprocess_result got = run_program(small(demo, more));
        INFO(got.messages);
        CHECK(got.exit_code == r.code);
        CHECK_THAT(got.messages, contains("error: ") && contains(r.text));
        CHECK(std::count(got.messages.begin(), got.messages.end(), '\n') == 1);
        check_clean(w, name);
    }
    CHECK_THAT(run_program({"run", w.write("x.toml", "[pipeline\n")}).messages,
               contains("x.toml:1:10: not TOML"));
    CHECK(run_program({"run", w.path("x.toml")}).exit_code == 2);
    CHECK(run_program({"rnu"}).exit_code == 2);
}

TEST_CASE("a run whose log has lost its reader continues to its end") {
    const world w;
    const std::string report = w.path("r.json");
    const std::string line = fmt::format(
        "{} run {}/demo.toml --device cpu --size 96x64 --frames 40 --out '' --name lost-{} --report {} 2>&1 "
        "| true",
        program(), shipped, ::getpid(), report);
    CHECK(run_subprocess({"bash", "-c", "set -o pipefail; " + line}, "", 60'000).exit_code == 0);
    std::ifstream in(report);
    CHECK(json::parse(in).at("lost") == 0);
}

TEST_CASE("the supervisor's program holds no CUDA") {
    const std::string bytes = read_file(program()).value_or("");
    REQUIRE(bytes.size() > 100'000);
    // The static CUDA runtime has both names; `carousel doctor` only names the file of the driver.
    CHECK(bytes.find("cuGetProcAddress") == std::string::npos);
    CHECK(bytes.find("cudaGetDevice") == std::string::npos);
    const std::string stage =
        read_file(std::filesystem::path(program()).parent_path() / "carousel-vertex").value_or("");
    if (stage.find("cudaGetDevice") != std::string::npos)
        CHECK(stage.find("cuGetProcAddress") != std::string::npos);
}
