#include <algorithm>
#include <filesystem>
#include <set>

#include "core/json.hpp"
#include "doctor/doctor.hpp"
#include "tests/pipelines/spec/world.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;
using nlohmann::json;

namespace {

finding of_name(const std::vector<finding>& all, const std::string& name) {
    for (const finding& f : all)
        if (f.name == name) return f;
    FAIL("no finding named " << name);
    return {};
}

}  // namespace

TEST_CASE("doctor's JSON has a status, a reading and a remedy for every check") {
    const command_result s = carousel::test::carousel({"doctor", "--json"});
    const json j = json::parse(s.out);
    REQUIRE(j.at("ok").is_boolean());
    CHECK((s.code == 0) == j.at("ok").get<bool>());
    std::set<std::string> names;
    for (const json& c : j.at("checks")) {
        names.insert(c.at("name").get<std::string>());
        const std::string status = c.at("status");
        CHECK((status == "ok" || status == "warn" || status == "fail"));
        CHECK_FALSE(c.at("found").get<std::string>().empty());
        if (status == "fail") CHECK_FALSE(c.at("remedy").get<std::string>().empty());
    }
    CHECK(names.size() == j.at("checks").size());
    for (const char* name :
         {"cores", "shared memory", "sealed memory", "open files", "locked memory", "runtime directory",
          "PID namespace", "passing memory", "MPS", "death detection by EOF", "death detection by pidfd",
          "NVIDIA driver", "CUDA", "display", "OpenGL", "links to other hosts"})
        CHECK(names.count(name) == 1);
}

TEST_CASE("what a container lacks of the NVIDIA driver is named") {
    const scratch_folder root;
    const auto has = [&](const std::string& file, const std::string& text = "x") {
        std::filesystem::create_directories((root.path / file).parent_path());
        (void)root.write(file, text);
    };
    const auto found = [&] { return driver_finding(root.path.string()); };
    CHECK(found().status == verdict::warn);
    CHECK_THAT(found().found, contains("no driver is loaded"));
    has("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1\n");
    CHECK_THAT(found().found,
               contains("570.1; missing here: /dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidiaN, libcuda.so.1"));
    CHECK_THAT(found().remedy, contains("--device nvidia.com/gpu=all"));
    has("dev/nvidiactl");
    has("dev/nvidia-uvm");
    has("dev/nvidia-modeset");  // no GPU
    CHECK_THAT(found().found, contains("missing here: /dev/nvidiaN, libcuda.so.1"));
    has("dev/nvidia3");
    has("usr/lib64/libcuda.so.1");
    CHECK(found().status == verdict::ok);
    CHECK(found().remedy.empty());
}

TEST_CASE("the signs of a death are measured on a child that is killed") {
    std::vector<finding> all;
    examine_death_signs(all);
    CHECK(of_name(all, "death detection by pidfd").status == verdict::ok);
    CHECK_THAT(of_name(all, "death detection by EOF").found, contains("ms after a kill"));
}

TEST_CASE("a missing or closed shared memory folder is a failure with a remedy") {
    const world w;
    std::vector<finding> all;
    examine_shared_memory(all, w.path("nowhere"));
    CHECK(of_name(all, "shared memory").status == verdict::fail);
    CHECK_THAT(of_name(all, "shared memory").found, contains("No such file or directory"));
    CHECK_THAT(of_name(all, "shared memory").remedy, contains("mount"));
    CHECK(of_name(all, "sealed memory").status == verdict::ok);
}

TEST_CASE("any answer of the probe is converted to findings") {
    CHECK(findings_of_probe("no json").at(0).status == verdict::warn);
    CHECK_THAT(findings_of_probe(R"({"built_with_cuda":false})").at(0).found, contains("no CUDA backend"));
    const auto none = findings_of_probe(
        R"({"built_with_cuda":true,"driver_version":null,"runtime_version":"13.0","devices":[],"error":"no driver"})");
    REQUIRE(none.size() == 1);
    CHECK(none[0].status == verdict::warn);
    CHECK_THAT(none[0].found, contains("driver none, built for 13.0; no driver"));
    const auto one = findings_of_probe(
        R"({"built_with_cuda":true,"driver_version":"13.0","runtime_version":"13.0","error":null,
        "devices":[{"ordinal":0,"uuid":"u","name":"H200","total_bytes":150323855360,"free_bytes":1073741824,"compute":"9.0",
                    "vmm_posix_fd":true,"ipc_events":false,"ipc_memory":true,"stream_mem_ops":true,
                    "read_only_host":true,"same_host_address":false,"peers":[]}]})");
    CHECK_THAT(
        of_name(one, "cuda:0").found,
        contains(
            "H200, compute 9.0, 140.0 GiB of memory, 1.0 GiB free, room for the contexts of 1 processes"));
    CHECK(of_name(one, "cuda:0 memory by fd").status == verdict::ok);
    CHECK(of_name(one, "cuda:0 IPC events").status == verdict::warn);
    CHECK_FALSE(of_name(one, "cuda:0 IPC events").remedy.empty());
    CHECK_THAT(of_name(one, "cuda:0 memory by handle").found,
               contains("readers of such memory are unguarded"));
    CHECK_THAT(of_name(one, "cuda:0 guarded inputs in host memory").found,
               contains("yes: an out-of-bounds write") && contains("ends only that stage"));
    CHECK_THAT(of_name(one, "cuda:0 guard pages after slots in host memory").found,
               contains("no: CPU rings") && contains("canaries after their slots instead of guard pages"));
    const auto other = findings_of_probe(
        R"({"built_with_cuda":true,"driver_version":"13.0","runtime_version":"13.0","error":null,
        "devices":[{"ordinal":0,"name":"A","read_only_host":false,"same_host_address":true,
                    "exclusive_process":true,"peers":[]}]})");
    CHECK_THAT(of_name(other, "cuda:0 compute mode").found, contains("second MPS server"));
    CHECK(std::none_of(one.begin(), one.end(),
                       [](const finding& f) { return f.name == "cuda:0 compute mode"; }));
    CHECK_THAT(of_name(other, "cuda:0 guarded inputs in host memory").found,
               contains("no: CPU rings are unguarded"));
    CHECK_THAT(of_name(other, "cuda:0 guard pages after slots in host memory").found,
               contains("yes: a stage's write beyond its slot"));
}

TEST_CASE("with several GPUs doctor lists which have peer access") {
    const auto all = findings_of_probe(
        R"({"built_with_cuda":true,"driver_version":"13.0","runtime_version":"13.0","error":null,
        "devices":[{"ordinal":0,"name":"A","peers":[1]},{"ordinal":1,"name":"B","peers":[]}]})");
    CHECK(of_name(all, "cuda:0 other GPUs").found == "peer access to cuda:1");
    CHECK(of_name(all, "cuda:0 other GPUs").status == verdict::ok);
    CHECK(of_name(all, "cuda:1 other GPUs").found == "no peer access");
    CHECK(of_name(all, "cuda:1 other GPUs").status == verdict::warn);
    CHECK_FALSE(of_name(all, "cuda:1 other GPUs").remedy.empty());
}

TEST_CASE("a probe that crashes or hangs is a finding, not doctor's end") {
    const world w;
    doctor_places places;
    places.probe = w.program("probe", "kill -SEGV $$");
    CHECK_THAT(of_name(examine(places), "CUDA").found, contains("signal 11 (SIGSEGV)"));
    places.probe = w.program("probe", "sleep 60");
    places.probe_timeout_ms = 100;
    CHECK_THAT(of_name(examine(places), "CUDA").found, contains("no answer within 0.1 s"));
    places.probe = w.path("nowhere");
    CHECK_THAT(of_name(examine(places), "CUDA").found, contains("GPUs can't be examined"));
}

TEST_CASE("doctor reports the UCX version and the UCX features that links use") {
    const world w;
    const auto links = [&](const std::string& body) {
        (void)w.program("carousel-send", body);
        return examine_links(w.folder(), 2000);
    };
    CHECK(examine_links(w.path("nowhere"), 2000).status == verdict::warn);
    CHECK_THAT(examine_links(w.path("nowhere"), 2000).found, contains("not built: carousel-send"));
    CHECK_THAT(examine_links(w.path("nowhere"), 2000).remedy,
               contains("apt-get install libucx-dev libssl-dev"));

    const auto ucx_reports = [](const char* cuda) {
        return R"([ "$1" = --ucx ] && echo '{"version":"1.2.3","set":{"UCX_A":"","UCX_B":null},"cuda":)" +
               std::string(cuda) + "}'";
    };
    const finding without = links(ucx_reports("false"));
    CHECK(without.name == "links to other hosts");
    CHECK(without.status == verdict::ok);
    CHECK_THAT(without.found, contains("over UCX 1.2.3; transport: tcp"));
    CHECK_THAT(without.found, contains("UCX_A empty, UCX_B by each link: set by these programs"));
    CHECK_THAT(
        without.found,
        contains("with memory = \"direct\" straight from GPU memory: this UCX does not support CUDA here"));
    CHECK_THAT(links(ucx_reports("true")).found,
               contains("this UCX supports CUDA, as memory = \"direct\" requires"));
    CHECK_THAT(links(ucx_reports("null")).found, contains("can't determine"));

    for (const char* body : {"exit 1", "echo no json", "echo '{}'", "kill -SEGV $$"}) {
        INFO(body);
        CHECK(links(body).status == verdict::warn);
        CHECK_THAT(links(body).found, contains("carousel-send --ucx: "));
        CHECK_FALSE(links(body).remedy.empty());
    }
}

TEST_CASE("doctor's text has a line a finding and its remedy below") {
    const std::vector<finding> all = {{"one", verdict::ok, "fine", ""},
                                      {"second", verdict::fail, "bad", "mend it"}};
    CHECK(doctor_text(all, false) == "ok    one     fine\nfail  second  bad\n              -> mend it\n");
    CHECK_THAT(doctor_text(all, true), contains("\x1b[31mfail"));
    CHECK(any_failed(all));
}
