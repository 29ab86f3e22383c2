#include "spec/python_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "core/errors.hpp"
#include "spec/describe.hpp"
#include "spec/own_programs.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;

std::string interpreter() {
    const char* from_environment = std::getenv("CAROUSEL_PYTHON");
    if (from_environment == nullptr || *from_environment == '\0') {
        // Installed in a virtual environment, which need not be active: its interpreter has the module.
        const fs::path here = executable_folder();
        std::error_code failed;
        if (fs::exists(here.parent_path() / "pyvenv.cfg", failed) && fs::exists(here / "python3", failed))
            return (here / "python3").string();
        std::string found = program_in_path("python3");
        if (found.empty())
            throw config_error("no python3 in PATH; install it, or name an interpreter in CAROUSEL_PYTHON");
        return found;
    }
    std::string path = std::string_view(from_environment).find('/') == std::string_view::npos
                           ? program_in_path(from_environment)
                           : from_environment;
    if (path.empty() || ::access(path.c_str(), X_OK) != 0)
        throw config_error(fmt::format("CAROUSEL_PYTHON={}: there is no such program", from_environment));
    return path;
}

/// The folders of a build and of an installation.
std::array<fs::path, 2> possible_folders() {
    const fs::path here = executable_folder();
    return {here / "python", here.parent_path() / CAROUSEL_PYTHON_FOLDER};
}

std::string starter() {
    if (const std::string folder = python_folder(); !folder.empty()) return folder + "/carousel_stage.py";
    const auto folders = possible_folders();
    throw config_error(fmt::format(
        "the Python module is missing ({}, {}): install python3-dev and pybind11-dev, configure again, then "
        "`cmake --build {} --target python_package`; ./pipelines/launch does all of that",
        folders[0].string(), folders[1].string(), executable_folder()));
}

}  // namespace

std::string python_folder() {
    std::error_code failed;
    for (const fs::path& folder : possible_folders())
        if (fs::exists(folder / "carousel_stage.py", failed)) return folder.string();
    return "";
}

bool is_python(std::string_view program) noexcept { return program.ends_with(".py"); }

std::vector<std::string> command_of(const std::string& program) {
    if (!is_python(program)) return {program};
    return {interpreter(), starter(), program};
}

}  // namespace carousel::supervisor
