// `carousel new stage`: what it writes, and what it refuses. That its projects build and run is tested with
// the installation.

#include "projects/new_stage.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/errors.hpp"
#include "os/console.hpp"
#include "tests/pipelines/spec/world.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::set<std::string> files_below(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& each : fs::recursive_directory_iterator(folder))
        if (each.is_regular_file()) names.insert(fs::relative(each.path(), folder).string());
    return names;
}

const project_file& file_of(const std::vector<project_file>& project, const std::string& path) {
    const auto at =
        std::find_if(project.begin(), project.end(), [&](const project_file& f) { return f.path == path; });
    REQUIRE(at != project.end());
    return *at;
}

const std::vector<std::string> examples = {"negative", "average", "grayscale", "scan"};

/// The project that the command writes with those options.
std::map<std::string, std::string> written_by(const std::vector<std::string>& options) {
    const world w;
    std::vector<std::string> words = {"new", "stage", "mine", w.path("mine")};
    words.insert(words.end(), options.begin(), options.end());
    REQUIRE(carousel::test::carousel(words).code == 0);
    std::map<std::string, std::string> files;
    for (const std::string& name : files_below(w.path("mine")))
        files[name] = text_of(fs::path(w.path("mine")) / name);
    return files;
}

}  // namespace

TEST_CASE("the program carries every file of the example projects, as it is") {
    std::set<std::string> carried;
    for (const project_file& file : example_files()) {
        INFO(file.path);
        carried.insert(file.path);
        CHECK(file.text == text_of(fs::path(CAROUSEL_EXAMPLES) / file.path));
    }
    std::set<std::string> there = files_below(CAROUSEL_EXAMPLES);
    there.erase("files.cmake");
    CHECK(carried == there);
}

TEST_CASE("a name is inserted as it is, and next to an underscore as a C++ name") {
    CHECK(renamed("scan.hpp test_scan.cpp scan_source example.scan scan", "scan", "3d-view") ==
          "3d-view.hpp test_stage_3d_view.cpp stage_3d_view_source example.3d-view 3d-view");
    CHECK(renamed("scans scanner ascan scan2", "scan", "x") == "scans scanner ascan scan2");
    CHECK(renamed("class scan_sink", "scan", "a--b_") == "class a_b_sink");
    CHECK(renamed("scan-sink", "scan", "lidar") == "lidar-sink");
}

TEST_CASE("a new project does not contain the example's name") {
    for (const std::string& example : examples) {
        for (const project_file& file : project_from(example, "3d-Blur_2")) {
            INFO(example << ": " << file.path << "\n" << file.text);
            CHECK(file.path.find(example) == std::string::npos);
            CHECK(file.text.find(example) == std::string::npos);
        }
    }
    const auto project = project_from("negative", "blur-2");
    CHECK_THAT(file_of(project, "main.cpp").text,
               contains("#include \"blur-2.hpp\"") && contains("stage_main<blur_2_stage>"));
    CHECK_THAT(file_of(project, "CMakeLists.txt").text,
               contains("carousel_add_stage(carousel-blur-2 main.cpp)") &&
                   contains("carousel_add_stage_test(test_blur_2 "));
    CHECK_THAT(file_of(project, "blur-2.toml").text, contains("run = \"./build/carousel-blur-2\""));
    const auto commands = commands_of(project);
    REQUIRE(commands.size() == 3);
    CHECK_THAT(commands[0], contains("cmake -S . -B build"));
    CHECK_THAT(commands[1], contains("ctest --test-dir build"));
    CHECK_THAT(commands[2], contains("carousel run blur-2.toml"));
}

TEST_CASE("a Python project gets a valid Python name if the stage's name is not one") {
    const auto project = project_from("tint", "3d-tint");
    const std::string text = file_of(project, "stage_3d_tint.py").text;
    CHECK_THAT(text, contains("def stage_3d_tint(color, out") && !contains("3d-tint"));
    CHECK_THAT(file_of(project, "test_stage_3d_tint.py").text,
               contains("from stage_3d_tint import stage_3d_tint"));
    CHECK_THAT(file_of(project, "3d-tint.toml").text,
               contains("name = \"3d-tint\"\nrun = \"stage_3d_tint.py\""));
    CHECK_THAT(file_of(project, "README.md").text,
               contains("`stage_3d_tint.py`") && contains("carousel restart 3d-tint"));
}

TEST_CASE("the sinks that the command writes put their files into the output directory of the run") {
    const auto python = written_by({"--python", "--sink"});
    CHECK_THAT(python.at("mine.py"), contains("env[\"output_directory\"]") && contains("frame.local.") &&
                                         !contains("runtime_directory"));
    CHECK_THAT(python.at("test_mine.py"), contains("check_frames_in_flight(mine, "));
    for (const char* option : {"--sink", "--source"}) {
        const auto cpp = written_by({option});
        CHECK_THAT(cpp.at("mine_sink.hpp"),
                   contains("env.output_directory()") && !contains("runtime_directory"));
    }
}

TEST_CASE("the command writes a project and prints what to do next") {
    const world w;
    const std::string folder = w.path("projects/blur");
    const command_result s = carousel::test::carousel({"new", "stage", "blur", folder});
    CHECK(s.err.empty());
    CHECK(s.code == 0);
    const auto project = project_from("negative", "blur");
    CHECK(files_below(folder).size() == project.size());
    for (const project_file& file : project) {
        CHECK(text_of(fs::path(folder) / file.path) == file.text);
        CHECK_THAT(s.out, contains("wrote " + folder + "/" + file.path + "\n"));
    }
    CHECK_THAT(s.out, contains("Next:\n  cd " + folder + "\n  cmake -S . -B build"));
    CHECK_THAT(s.out, contains(" --target programs && cmake --install "));
    // The printed commands can be typed there, though no `carousel` is in PATH.
    CHECK_THAT(s.out, contains("\n  " + own_command_from(folder) + " run blur.toml --frames 100\n"));
    // An empty folder is as good as none.
    fs::create_directory(w.path("empty"));
    CHECK(carousel::test::carousel({"new", "stage", "blur", w.path("empty")}).code == 0);
    CHECK(carousel::test::carousel({"new", "stage", "lidar", "--source", w.path("lidar")}).code == 0);
    CHECK(files_below(w.path("lidar")).count("lidar_source.hpp") == 1);
    CHECK(carousel::test::carousel({"new", "stage", "smooth", "--state", w.path("smooth")}).code == 0);
    CHECK_THAT(text_of(fs::path(w.path("smooth")) / "smooth.hpp"), contains("state.next()"));
    CHECK(
        carousel::test::carousel({"new", "stage", "follow", "--python", "--state", w.path("follow")}).code ==
        0);
    // Functions that begin with _ have no name that a stage may have.
    CHECK_THAT(text_of(fs::path(w.path("follow")) / "follow.py"),
               contains("def follow(frame, color, out, tracks") && contains("def _next_tracks("));
    CHECK(files_below(w.path("follow")).count("balls.py") == 1);
    CHECK(carousel::test::carousel({"new", "stage", "edges", "--cuda", w.path("edges")}).code == 0);
    CHECK(files_below(w.path("edges")).count("kernel.cu") == 1);
}

TEST_CASE("an invalid project is refused, and no file is written") {
    const world w;
    const std::string folder = w.path("new");
    const auto refused = [&](const std::vector<std::string>& words, const std::string& text) {
        const command_result s = carousel::test::carousel(words);
        CHECK(s.code == 2);
        CHECK(s.out.empty());
        CHECK_THAT(s.err, Catch::Matchers::StartsWith("error: ") && contains(text));
        CHECK(!fs::exists(folder));
    };
    refused({"new", "stage", "my stage", folder},
            "NAME \"my stage\": expected 1 to 40 letters, digits, - and _");
    refused({"new", "stage", "_blur", folder}, "the first a letter or a digit");
    refused({"new", "stage", "a/b", folder}, "expected 1 to 40 letters");
    refused({"new", "stage", std::string(41, 'a'), folder}, "expected 1 to 40 letters");
    refused({"new", "stage", "", folder}, "expected 1 to 40 letters");
    refused({"new", "stage", "link", folder}, "this is the name of a section of a pipeline file");
    refused({"new", "stage", "vertex", folder}, "vertex.toml already has a stage of that name");
    refused({"new", "stage", "kernel", "--cuda", folder}, "the project also has a file kernel.hpp");
    refused({"new", "stage", "class", folder, "--python"},
            "another name: class.py would hide a word of Python");
    refused({"new", "stage", "random", folder, "--python"}, "random.py would hide a module of Python");
    refused({"new", "stage", "numpy", folder, "--python"}, "a module of Python");
    refused({"new", "stage", "lib2to3", folder, "--python"}, "a module of Python");
    refused({"new", "stage", "blur", folder, "--cuda", "--source"}, "excludes");
    refused({"new", "stage", "blur", folder, "more"}, "unexpected argument \"more\"");
    refused({"new", "stage"}, "NAME is required");
    refused({"new", "stag", "blur"}, "\"stag\"; expected `carousel new stage NAME`; did you mean \"stage\"?");
    refused({"new"}, "(see `carousel new --help`)");
}

TEST_CASE("a folder that holds something is left as it is") {
    const world w;
    w.write("blur/mine.txt", "mine");
    const command_result s = carousel::test::carousel({"new", "stage", "blur", w.path("blur")});
    CHECK(s.code == 2);
    CHECK_THAT(s.err, contains(w.path("blur") + " exists and is not an empty folder; nothing was written"));
    CHECK(files_below(w.path("blur")) == std::set<std::string>{"mine.txt"});
    const command_result file = carousel::test::carousel({"new", "stage", "blur", w.path("blur/mine.txt")});
    CHECK(file.code == 2);
    CHECK(text_of(w.path("blur/mine.txt")) == "mine");
    const command_result below =
        carousel::test::carousel({"new", "stage", "blur", w.path("blur/mine.txt/deeper")});
    CHECK(below.code == exit_code::output);
    CHECK_THAT(below.err, contains("mine.txt/deeper: "));
}

TEST_CASE("Tab knows the kinds of new projects") {
    CHECK(carousel::test::carousel({"__complete", "new", ""}).out == "stage\n");
    CHECK(carousel::test::carousel({"__complete", "new", "stage", "--"}).out ==
          "--cuda\n--help\n--python\n--sink\n--source\n--state\n");
}
