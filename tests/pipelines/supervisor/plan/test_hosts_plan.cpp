// The values that the hosts of a pipeline compare before the first frame, and the name of each difference.
#include <fmt/format.h>

#include "shm/control_block.hpp"
#include "supervisor/plan/compatibility.hpp"
#include "supervisor/plan/hosts_plan.hpp"
#include "tests/pipelines/spec/parts.hpp"
#include "tests/pipelines/spec/pipeline_support.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using nlohmann::json;

/// One of the hosts that read the same pipeline, each its own files.
struct one_host {
    scratch_folder folder;
    std::string mesh;
    explicit one_host(std::string reads = "box.obj") : mesh(std::move(reads)) {
        std::filesystem::create_directories(folder.path / "skins");
        write("box.obj", "mtllib box.mtl\nv 0 0 0\n");
        write("box.mtl", "newmtl a\nmap_Kd -s 1 1 1 wood.png\n");
        write("wood.png", "brown");
        write(
            "box.gltf",
            R"({"buffers":[{"uri":"the%20box.bin"},{"uri":"data:,a"},{}],"images":[{"uri":"skins/box.png"}]})");
        write("the box.bin", "points");
        write("skins/box.png", "green");
    }
    void write(const std::string& name, const std::string& text) const { folder.write(name, text); }
    [[nodiscard]] json plan() const {
        const pipeline p = parse_pipeline(test::stage("geometry", "", "mesh = \"" + mesh + "\"") +
                                              test::stage("display", "\"geometry\"", "host = \"b\"") +
                                              "[hosts.b]\naddress = \"10.0.0.2\"\n",
                                          (folder.path / "p.toml").string());
        return plan_hosts(p, "", test::described(p)).plan;
    }
};

std::string between(const one_host& there, const one_host& here) {
    return difference(there.plan(), here.plan());
}

}  // namespace

TEST_CASE("hosts that have the same files agree, for any folder of the files") {
    for (const char* mesh : {"box.obj", "box.gltf", "cube", "missing.gltf"}) {
        INFO(mesh);
        CHECK(between(one_host(mesh), one_host(mesh)) == "");
    }
}

TEST_CASE("a file that differs on the other host is refused by name") {
    one_host there, here;
    there.write("box.obj", "mtllib box.mtl\nv 0 0 1\n");
    CHECK_THAT(between(there, here),
               test::contains("stage geometry: settings.mesh.content.box.obj.hash is "));
    std::filesystem::remove(there.folder.path / "box.obj");
    CHECK_THAT(between(there, here),
               test::contains("stage geometry: settings.mesh.content.box.obj is \"not there\" there and {"));
}

TEST_CASE("a file that a mesh names is compared as well") {
    const auto changed = [](const char* mesh, const char* file) {
        one_host there(mesh), here(mesh);
        there.write(file, "other");
        return between(there, here);
    };
    CHECK_THAT(changed("box.gltf", "the box.bin"), test::contains("mesh.content.the box.bin."));
    CHECK_THAT(changed("box.gltf", "skins/box.png"), test::contains("mesh.content.skins/box.png."));
    CHECK_THAT(changed("box.obj", "wood.png"), test::contains("mesh.content.wood.png."));
    CHECK_THAT(changed("box.obj", "box.mtl"), test::contains("mesh.content.box.mtl."));
    CHECK(changed("box.obj", "the box.bin") == "");
}

TEST_CASE("for a binary glTF file its companion files are compared") {
    const std::string text = R"({"images":[{"uri":"skins/box.png"}]})";
    const auto word = [](u32 w) { return std::string(reinterpret_cast<const char*>(&w), sizeof w); };
    const std::string glb = "glTF" + word(2) + word(static_cast<u32>(20 + text.size())) +
                            word(static_cast<u32>(text.size())) + "JSON" + text;
    one_host there("box.glb"), here("box.glb");
    for (const one_host* h : {&there, &here}) h->write("box.glb", glb);
    CHECK(between(there, here) == "");
    there.write("skins/box.png", "other");
    CHECK_THAT(between(there, here), test::contains("mesh.content.skins/box.png."));
}

TEST_CASE("unreadable or external references of a mesh are left to its stage") {
    one_host h("box.gltf");
    for (const char* text : {R"({"buffers":[{"uri":"../p"},{"uri":"/etc/passwd"},{"uri":""},{"uri":7},8]})",
                             R"({"buffers":{"uri":"a"}})", "[]", "{", "glTF"}) {
        INFO(text);
        h.write("box.gltf", text);
        CHECK(h.plan().at("/stages/0/settings/mesh/content"_json_pointer).size() == 1);
    }
}

TEST_CASE("hosts compare Carousel's version and the layout of shared memory, and name differences") {
    const json here = one_host().plan();
    CHECK(here.at("version") == CAROUSEL_VERSION);
    CHECK(here.at("layout") == shm::control_version);
    json there = here;
    there["version"] = "0.0.1";
    CHECK(difference(there, here) ==
          fmt::format("version is \"0.0.1\" there and \"{}\" here", CAROUSEL_VERSION));
    there = here;
    there["layout"] = shm::control_version + 1;
    CHECK(difference(there, here) ==
          fmt::format("layout is {} there and {} here", shm::control_version + 1, shm::control_version));
}

TEST_CASE("a host is given up if its stages ended after their supervisor, later remotely") {
    const auto plan = [](const std::string& keys, const std::string& launcher) {
        const pipeline p = parse_pipeline(
            "[pipeline]\n" + keys + test::stage("a", "") + test::stage("b", "\"a\"", "host = \"x\"") +
                "[hosts.x]\naddress = \"10.0.0.2\"\nlauncher = \"" + launcher + "\"\n",
            "p.toml");
        return plan_hosts(p, "", test::described(p));
    };
    const u64 s = 1'000'000'000;
    CHECK(plan("", "ssh").patience_ns("") == 10 * s);
    CHECK(plan("", "ssh").patience_ns("x") == 25 * s);  // started over a network
    CHECK(plan("", "none").patience_ns("x") == 10 * s);
    for (const char* host : {"", "x"})
        CHECK(plan("supervisor_grace_s = 60\n", "ssh").patience_ns(host) == 65 * s);
}
