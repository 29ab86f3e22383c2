#include "os/own_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace carousel::supervisor {
namespace fs = std::filesystem;

std::string shell_word(const std::string& text) {
    const auto plain = [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("-_./:@%+=,").find(static_cast<char>(c)) != std::string_view::npos;
    };
    if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string command_for(const std::string& program, const std::string& working_folder,
                        const std::string& path) {
    const fs::path file(program);
    const std::string name = file.filename().string();
    // A shell starts the first program of that name in PATH; if this is another version, the name alone
    // cannot be used.
    std::string folders = path + ":";
    for (std::size_t at = 0, end; (end = folders.find(':', at)) != std::string::npos; at = end + 1) {
        const fs::path found = fs::path(folders.substr(at, end - at)) / name;
        if (end == at || ::access(found.c_str(), X_OK) != 0) continue;
        std::error_code failed;
        if (fs::equivalent(found, file, failed) && !failed) return shell_word(name);
        break;
    }
    const std::string inside = working_folder == "/" ? "/" : working_folder + "/";
    if (!program.starts_with(inside)) return shell_word(program);
    const std::string rest = program.substr(inside.size());
    return shell_word(rest.find('/') == std::string::npos ? "./" + rest : rest);
}

std::string own_command() {
    std::error_code failed;
    return own_command_from(fs::current_path(failed).string());
}

std::string own_command_from(const std::string& working_folder) {
    std::error_code failed;
    const fs::path program = fs::read_symlink("/proc/self/exe", failed);
    if (program.empty()) return "carousel";
    const char* path = std::getenv("PATH");
    return command_for(program.string(), working_folder,
                       path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
}

}  // namespace carousel::supervisor
