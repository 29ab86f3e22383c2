#include "projects/new_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/errors.hpp"

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
        refuse_name(name, "another name, because this is the name of a section of a pipeline file");
}

/// The stage's file is a module, and the stage's function has the same name as the module.
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

constexpr std::string_view python_words =
    "False None True and as assert async await break class continue def del elif else except finally "
    "for from global if import in is lambda nonlocal not or pass raise return try while with yield ";

/// Modules of the standard library (sys.stdlib_module_names of Python 3.11), and those that a stage imports.
constexpr std::string_view python_modules =
    "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb "
    "binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop "
    "collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg crypt "
    "csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings "
    "ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc "
    "genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib "
    "imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale "
    "logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt "
    "multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os "
    "ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath "
    "pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re "
    "readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil "
    "signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants "
    "sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig "
    "syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter "
    "token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata "
    "unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml "
    "xmlrpc zipapp zipfile zipimport zlib zoneinfo "
    "carousel carousel_stage cupy numpy torch ";

/// `list` has a space after each name.
bool is_one_of(std::string_view list, std::string_view name) noexcept {
    for (std::size_t at = 0; (at = list.find(name, at)) != std::string_view::npos; at += name.size())
        if ((at == 0 || list[at - 1] == ' ') && list[at + name.size()] == ' ') return true;
    return false;
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

const char* reserved_in_python(std::string_view name) noexcept {
    if (name.empty()) return nullptr;
    return is_one_of(python_words, name)     ? "a word of Python"
           : is_one_of(python_modules, name) ? "a module of Python"
                                             : nullptr;
}

}  // namespace carousel::supervisor
