#include "spec/programs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "core/errors.hpp"
#include "os/console.hpp"
#include "spec/describe.hpp"

namespace carousel::supervisor {
namespace {

std::string build_command(const std::string& program, const std::string& folder) {
    return fmt::format("cmake --build {} --target {}", shell_word(folder), program);
}

namespace fs = std::filesystem;

std::string default_interpreter() {
    const char* from_environment = std::getenv("CAROUSEL_PYTHON");
    if (from_environment == nullptr || *from_environment == '\0') {
        // If Carousel is installed in a virtual environment, the interpreter of that environment has the
        // module, even if the environment is not active.
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

std::string command_to_build(const std::string& program, const std::string& folder) {
    std::ifstream all(folder + "/programs.txt");
    for (std::string name; std::getline(all, name);)
        if (name == program) return build_command(program, folder);
    return "";
}

bool lacks_extras(const std::string& folder) {
    std::ifstream cache(folder + "/CMakeCache.txt");
    for (std::string line; std::getline(cache, line);)
        if (line == "CAROUSEL_EXTRAS:BOOL=OFF") return true;
    return false;
}

std::string program_of_ours(const std::string& name, const std::string& folder, const std::string& takes) {
    std::string path = folder + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
    if (lacks_extras(folder) && command_to_build(name, folder).empty())
        throw config_error(fmt::format("this build has no {}: {}", name, how_to_get_extras));
    const bool can_be_built = ::access((folder + "/CMakeCache.txt").c_str(), R_OK) == 0;
    throw config_error(
        fmt::format("{} does not exist{}{}{}", path, takes.empty() ? "" : ": ", takes,
                    can_be_built ? fmt::format("; build it: {}", build_command(name, folder))
                                 : "; it comes with an installation of all programs (cmake --install)"));
}

void exec_program(std::vector<std::string> words, std::ostream& out) {
    std::vector<char*> pointers;
    for (std::string& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    out.flush();
    ::execvp(pointers.front(), pointers.data());
    throw config_error(fmt::format("starting {}: {}", words.front(), errno_text(errno)));
}

std::string python_folder() {
    std::error_code failed;
    for (const fs::path& folder : possible_folders())
        if (fs::exists(folder / "carousel_stage.py", failed)) return folder.string();
    return "";
}

std::string_view python_file(std::string_view program) noexcept {
    const std::size_t at = program.rfind(".py:");
    const bool named = at != std::string_view::npos && program.find('/', at) == std::string_view::npos;
    return named ? program.substr(0, at + 3) : program;
}

bool is_python(std::string_view program) noexcept { return python_file(program).ends_with(".py"); }

std::vector<std::string> command_of(const std::string& program, const std::string& python) {
    if (!is_python(program)) return {program};
    return {python.empty() ? default_interpreter() : python, starter(), program};
}

std::vector<std::string> shell_words(const std::string& text, std::string& missing) {
    std::vector<std::string> words;
    bool inside = false;
    char quote = 0;
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        if (quote == 0 && (c == ' ' || c == '\t')) {
            inside = false;
            continue;
        }
        if (!inside) words.emplace_back();
        inside = true;
        if (c == '\\' && quote != '\'') {
            if (k + 1 == text.size()) {
                missing = "a character after the last backslash";
                return words;
            }
            words.back() += text[++k];
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote != 0 && c == quote) {
            quote = 0;
        } else {
            words.back() += c;
        }
    }
    if (quote != 0) missing = "a closing quote";
    return words;
}

}  // namespace carousel::supervisor
