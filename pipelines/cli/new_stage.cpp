#include "cli/new_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/cli.hpp"
#include "cli/parse.hpp"
#include "core/did_you_mean.hpp"
#include "core/errors.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t max_project_name = 40;  // a pipeline's name

constexpr const char* new_stage_footer = R"(
Examples:
  carousel new stage blur                           on the CPU: a picture in, a picture out
  carousel new stage blur --cuda ../gpu/blur        on a GPU, with a kernel of its own
  carousel new stage lidar --source                 a source with a format of its own, and the sink that takes it

It writes CMakeLists.txt, the class, its test, a pipeline file and a README, and prints what to do next.)";

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// "3d-blur" -> "stage_3d_blur"
std::string cpp_name(std::string_view name) {
    std::string out;
    for (const char c : name) {
        const char next = is_letter_or_digit(c) ? c : '_';
        if (next != '_' || (!out.empty() && out.back() != '_')) out += next;
    }
    while (!out.empty() && out.back() == '_') out.pop_back();
    const bool starts_well = !out.empty() && std::isdigit(static_cast<unsigned char>(out.front())) == 0;
    return starts_well ? out : "stage_" + out;
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& expected) {
    throw config_error(fmt::format("carousel new stage: NAME \"{}\": expected {}", name, expected));
}

void check_name(const std::string& name) {
    const bool plain = std::all_of(name.begin(), name.end(),
                                   [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; });
    if (name.empty() || name.size() > max_project_name || !plain || !is_letter_or_digit(name.front()))
        refuse_name(name, fmt::format("1 to {} letters, digits, - and _, the first a letter or a digit",
                                      max_project_name));
    if (name == "pipeline" || name == "parameters" || name == "link")
        refuse_name(name, "another name: this one stands for a section of a pipeline file");
}

/// A name that the project's own files use for something else.
void check_clashes(const std::vector<project_file>& project, const std::string& name) {
    for (const project_file& file : project) {
        const auto same = [&](const project_file& other) { return other.path == file.path; };
        if (std::count_if(project.begin(), project.end(), same) > 1)
            refuse_name(name,
                        fmt::format("another name: the project has a file {} beside the stage's", file.path));
        const std::string line = fmt::format("\nname = \"{}\"\n", name);
        std::size_t stages = 0;
        for (std::size_t at = 0; (at = file.text.find("[[stage]]" + line, at)) != std::string::npos; ++at)
            ++stages;
        if (stages > 1)
            refuse_name(name,
                        fmt::format("another name: {} has a stage of that name beside yours", file.path));
    }
}

/// Where this program's package is installed; "" when it stands in a build folder.
std::string installed_prefix() {
    const fs::path prefix = fs::path(executable_folder()).parent_path();
    std::error_code failed;
    return fs::exists(prefix / CAROUSEL_PACKAGE_FOLDER / "carousel-config.cmake", failed) ? prefix.string()
                                                                                          : "";
}

/// PREFIX as it is on this machine.
void name_prefix(std::vector<project_file>& project, const std::string& prefix) {
    if (prefix.empty()) return;
    for (project_file& file : project) {
        if (file.path != "README.md") continue;
        const std::string given = "CMAKE_PREFIX_PATH=";
        if (const auto at = file.text.find(given + "PREFIX"); at != std::string::npos)
            file.text.replace(at + given.size(), std::string_view("PREFIX").size(),
                              prefix.find(' ') == std::string::npos ? prefix : "\"" + prefix + "\"");
    }
}

void write_file(const fs::path& path, const std::string& text) {
    errno = 0;
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw output_error(fmt::format("{}: {}", path.string(), errno_text(errno)));
}

}  // namespace

std::string renamed(std::string_view text, std::string_view example, std::string_view name) {
    std::string out;
    std::size_t from = 0;
    for (std::size_t at = 0; (at = text.find(example, at)) != std::string_view::npos; at += example.size()) {
        const char before = at == 0 ? ' ' : text[at - 1];
        const char after = at + example.size() == text.size() ? ' ' : text[at + example.size()];
        if (is_letter_or_digit(before) || is_letter_or_digit(after)) continue;  // part of another word
        out += text.substr(from, at - from);
        out += before == '_' || after == '_' ? cpp_name(name) : std::string(name);
        from = at + example.size();
    }
    return out += text.substr(from);
}

std::vector<project_file> project_from(const std::string& example, const std::string& name) {
    check_name(name);
    std::vector<project_file> project;
    for (const project_file& file : example_files())
        if (file.path.starts_with(example + "/"))
            project.push_back({renamed(file.path.substr(example.size() + 1), example, name),
                               renamed(file.text, example, name)});
    check_clashes(project, name);
    return project;
}

std::vector<std::string> commands_of(const std::vector<project_file>& project) {
    std::vector<std::string> commands;
    for (const project_file& file : project) {
        if (file.path != "README.md") continue;
        std::istringstream lines(file.text);
        bool fenced = false;
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("```"))
                fenced = !fenced;
            else if (fenced)
                commands.push_back(line);
        }
    }
    return commands;
}

void write_project(const std::vector<project_file>& project, const std::string& folder) {
    std::error_code failed;
    if (fs::exists(folder, failed) && !(fs::is_directory(folder, failed) && fs::is_empty(folder, failed)))
        throw config_error(fmt::format(
            "carousel new stage: {} is there already and not an empty folder; nothing was written. "
            "Name another: carousel new stage NAME FOLDER",
            folder));
    fs::create_directories(folder, failed);
    if (failed) throw output_error(fmt::format("{}: {}", folder, failed.message()));
    for (const project_file& file : project) write_file(fs::path(folder) / file.path, file.text);
}

void require_new_kind(const std::string& what) {
    if (what.starts_with('-') || what == "stage") return;
    throw config_error(
        fmt::format("carousel new: \"{}\" is no kind of project; expected `carousel new stage NAME`{}", what,
                    did_you_mean_clause(what, {"stage"})));
}

void add_new(CLI::App& app, cli_arguments& a) {
    CLI::App* group = app.add_subcommand("new", "Write a project to begin with: a stage of your own");
    group->require_subcommand(1);
    CLI::App* stage =
        group->add_subcommand("stage", "Write a project with a stage, its test and a pipeline file");
    stage->add_option("NAME", a.new_stage.name, "The stage's name: letters, digits, - and _")->required();
    stage->add_option("FOLDER", a.new_stage.folder, "Where to write; new or empty [NAME]");
    CLI::Option* cuda =
        stage->add_flag("--cuda", a.new_stage.cuda, "On a GPU, with a kernel of its own [on the CPU]");
    stage
        ->add_flag("--source", a.new_stage.source,
                   "A source with a format of its own, and a sink [a picture in, a picture out]")
        ->excludes(cuda);
    stage->footer(new_stage_footer);
}

int cli_new(const cli_arguments& a, const cli_environment& env) {
    const new_stage_words& words = a.new_stage;
    const char* example = words.cuda ? "grayscale" : words.source ? "scan" : "negative";
    std::vector<project_file> project = project_from(example, words.name);
    const std::string prefix = installed_prefix(), folder = words.folder.empty() ? words.name : words.folder;
    name_prefix(project, prefix);
    write_project(project, folder);
    for (const project_file& file : project)
        env.out << fmt::format("wrote {}\n", (fs::path(folder) / file.path).lexically_normal().string());
    env.out << fmt::format("\nNext:\n  cd {}\n", folder);
    for (const std::string& command : commands_of(project)) env.out << "  " << command << "\n";
    if (prefix.empty())
        env.out << fmt::format(
            "PREFIX is where Carousel is installed, by: cmake --install {} --prefix PREFIX\n",
            executable_folder());
    return exit_code::ok;
}

}  // namespace carousel::supervisor
