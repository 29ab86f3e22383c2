// `carousel new stage NAME`: writes a project for a user's own stage.

#include <fmt/format.h>

#include <filesystem>

#include "cli/command.hpp"
#include "cli/complete.hpp"
#include "core/user_input.hpp"
#include "os/console.hpp"
#include "projects/new_stage.hpp"
#include "spec/programs.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;

constexpr const char* new_stage_footer = R"(
Examples:
  carousel new stage blur                           on the CPU: one input picture, one output picture
  carousel new stage blur --cuda ../gpu/blur        on a GPU, with its own kernel
  carousel new stage blur --state                   remembers from frame to frame: a moving average
  carousel new stage lidar --source                 a source with its own format, and its sink
  carousel new stage tint --python                  a function in Python, with NumPy: nothing to build
  carousel new stage tally --python --sink          a class in Python that writes a file for the user
  carousel new stage follow --python --state        follows objects over frames, in Python

It writes CMakeLists.txt, the class, its test, a pipeline file and a README, and prints what to do next.)";

struct new_stage_arguments {
    std::string name, folder;
    bool cuda = false, source = false, sink = false, python = false, state = false;
};

/// Returns the folder in which this program's package is installed; "" if it runs from a build folder.
std::string installed_prefix() {
    const fs::path prefix = fs::path(executable_folder()).parent_path();
    std::error_code failed;
    return fs::exists(prefix / CAROUSEL_PACKAGE_FOLDER / "carousel-config.cmake", failed) ? prefix.string()
                                                                                          : "";
}

/// Replaces the `word` that follows `given` in the README by this machine's folder.
void name_folder(std::vector<project_file>& project, const std::string& given, std::string_view word,
                 const std::string& folder) {
    if (folder.empty()) return;
    for (project_file& file : project) {
        if (file.path != "README.md") continue;
        if (const auto at = file.text.find(given + std::string(word)); at != std::string::npos)
            file.text.replace(at + given.size(), word.size(),
                              folder.find(' ') == std::string::npos ? folder : "\"" + folder + "\"");
    }
}

int write_new_stage(const new_stage_arguments& a, const cli_environment& env) {
    // In C++ a source and its sink are one project.
    const char* const in_python = a.sink ? "tally" : a.state ? "tracker" : "tint";
    const char* const example = a.cuda               ? "grayscale"
                                : a.python           ? in_python
                                : a.source || a.sink ? "scan"
                                : a.state            ? "average"
                                                     : "negative";
    std::vector<project_file> project = project_from(example, a.name);
    const std::string prefix = installed_prefix(), folder = a.folder.empty() ? a.name : a.folder;
    name_folder(project, "CMAKE_PREFIX_PATH=", "PREFIX", prefix);
    name_folder(project, "PYTHONPATH=", "FOLDER", python_folder());
    write_project(project, folder);
    for (const project_file& file : project)
        env.out << fmt::format("wrote {}\n", (fs::path(folder) / file.path).lexically_normal().string());
    env.out << fmt::format("\nNext:\n  cd {}\n", folder);
    // The commands are printed in a form that works after the cd, even if `carousel` is not in PATH.
    constexpr std::string_view name = "carousel ";
    const std::string own = own_command_from(absolute_path(folder).lexically_normal().string());
    for (const std::string& command : commands_of(project))
        env.out << "  " << (command.starts_with(name) ? own + " " + command.substr(name.size()) : command)
                << "\n";
    if (a.python && python_folder().empty())
        env.out << fmt::format(
            "FOLDER contains the Python module, which is not built yet; build it by: cmake --build {} "
            "--target python_package\n",
            executable_folder());
    if (prefix.empty() && !a.python)
        env.out << fmt::format(
            "PREFIX is the installation prefix of Carousel; install it by: cmake --build {0} --target "
            "programs && cmake --install {0} --prefix PREFIX\n",
            executable_folder());
    return exit_code::ok;
}

void preparse_new(const std::vector<std::string>& words) {
    if (words.empty() || words.front().starts_with('-') || words.front() == "stage") return;
    throw config_error(
        fmt::format("carousel new: unknown kind of project \"{}\"; expected `carousel new stage NAME`{}",
                    words.front(), did_you_mean_clause(words.front(), {"stage"})));
}

command_action add_new_command(const command_parts& p) {
    const auto a = std::make_shared<new_stage_arguments>();
    p.app.require_subcommand(1);
    CLI::App* stage =
        p.app.add_subcommand("stage", "Write a project with a stage, its test and a pipeline file");
    stage->add_option("NAME", a->name, "The stage's name: letters, digits, - and _")->required();
    CLI::Option* folder = stage->add_option("FOLDER", a->folder, "The folder to write, new or empty [NAME]");
    p.offers[folder] = [](const completion_request& request) {
        return request.words.size() < 2 ? std::vector<std::string>()
                                        : offer_folders()(request);  // after NAME
    };
    CLI::Option* cuda = stage->add_flag("--cuda", a->cuda, "On a GPU, with its own kernel [on the CPU]");
    CLI::Option* source =
        stage
            ->add_flag("--source", a->source,
                       "A source with its own format, and a sink [one input picture, one output picture]")
            ->excludes(cuda);
    stage
        ->add_flag(
            "--sink", a->sink,
            "A sink that writes files; in C++, also its source [one input picture, one output picture]")
        ->excludes(cuda);
    CLI::Option* sink = stage->get_option("--sink");
    stage->add_flag("--python", a->python, "In Python [in C++]")->excludes(cuda)->excludes(source);
    stage
        ->add_flag("--state", a->state,
                   "Remembers from frame to frame, exactly once [a function of its input alone]")
        ->excludes(cuda)
        ->excludes(source)
        ->excludes(sink);
    stage->footer(new_stage_footer);
    return [a](const common_words&, const cli_environment& env) { return write_new_stage(*a, env); };
}

}  // namespace

extern const command new_command{
    "new", "Create a project with your own stage", add_new_command, preparse_new,
    "  carousel new stage blur                           create a project with your own stage\n"};

}  // namespace carousel::supervisor
