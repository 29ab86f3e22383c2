#include "spec/own_programs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "core/errors.hpp"
#include "os/own_command.hpp"

namespace carousel::supervisor {
namespace {

std::string build_command(const std::string& program, const std::string& folder) {
    return fmt::format("cmake --build {} --target {}", shell_word(folder), program);
}

}  // namespace

std::string executable_folder() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().string();
}

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

}  // namespace carousel::supervisor
