#include "projects/new_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/errors.hpp"
#include "projects/python_names.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t max_project_name = 40;  // the limit of a pipeline's name

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
        refuse_name(name, "another name: this name is a section of a pipeline file");
}

/// The stage's file is a module, and its function has the same name.
void check_python_name(const std::string& name) {
    if (const char* const what = reserved_in_python(cpp_name(name)); what != nullptr)
        refuse_name(name, fmt::format("another name: {}.py would hide {}", cpp_name(name), what));
}

/// Refuses a name that the project's own files use for something else.
void check_clashes(const std::vector<project_file>& project, const std::string& name) {
    for (const project_file& file : project) {
        const auto same = [&](const project_file& other) { return other.path == file.path; };
        if (std::count_if(project.begin(), project.end(), same) > 1)
            refuse_name(name, fmt::format("another name: the project also has a file {}", file.path));
        const std::string line = fmt::format("\nname = \"{}\"\n", name);
        std::size_t stages = 0;
        for (std::size_t at = 0; (at = file.text.find("[[stage]]" + line, at)) != std::string::npos; ++at)
            ++stages;
        if (stages > 1)
            refuse_name(name, fmt::format("another name: {} already has a stage of that name", file.path));
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
        const bool module = text.substr(at + example.size()).starts_with(".py");
        out += before == '_' || after == '_' || module ? cpp_name(name) : std::string(name);
        from = at + example.size();
    }
    return out += text.substr(from);
}

std::vector<project_file> project_from(const std::string& example, const std::string& name) {
    check_name(name);
    std::vector<project_file> project;
    for (const project_file& file : example_files()) {
        if (!file.path.starts_with(example + "/")) continue;
        const bool python = file.path.ends_with(".py");
        if (python) check_python_name(name);
        project.push_back({renamed(file.path.substr(example.size() + 1), example, name),
                           renamed(file.text, example, python ? cpp_name(name) : name)});
    }
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
        throw config_error(
            fmt::format("carousel new stage: {} exists and is not an empty folder; nothing was written. "
                        "Choose another: carousel new stage NAME FOLDER",
                        folder));
    fs::create_directories(folder, failed);
    if (failed) throw output_error(fmt::format("{}: {}", folder, failed.message()));
    for (const project_file& file : project) write_file(fs::path(folder) / file.path, file.text);
}

}  // namespace carousel::supervisor
