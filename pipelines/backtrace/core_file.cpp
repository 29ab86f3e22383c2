#include "backtrace/core_file.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/io.hpp"

namespace carousel::backtrace {
namespace {

/// The text of one specifier; "*" for what is not known after the death.
std::string expanded(char specifier, const core_facts& f) {
    switch (specifier) {
        case '%':
            return "%";
        case 'p':
        case 'P':
            return std::to_string(f.pid);
        case 'i':
        case 'I':
            return std::to_string(f.thread);
        case 's':
            return std::to_string(f.signal);
        case 'u':
            return std::to_string(f.uid);
        case 'g':
            return std::to_string(f.gid);
        case 'h':
            return f.host;
        case 'e':
        case 'f':
            return f.thread_name;
        case 'E': {
            std::string path = f.program;
            std::replace(path.begin(), path.end(), '/', '!');
            return path;
        }
        default:
            return "*";
    }
}

std::string path_of(const core_facts& f) {
    std::string path;
    bool has_pid = false;
    for (std::size_t k = 0; k < f.pattern.size(); ++k) {
        if (f.pattern[k] != '%' || k + 1 == f.pattern.size()) {
            path += f.pattern[k];
            continue;
        }
        has_pid = has_pid || f.pattern[k + 1] == 'p';
        path += expanded(f.pattern[++k], f);
    }
    if (f.uses_pid && !has_pid) path += fmt::format(".{}", f.pid);
    return path.starts_with('/') ? path : f.folder + "/" + path;
}

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

}  // namespace

core_facts facts_of_this_process() {
    core_facts f;
    f.pattern = trimmed(read_file("/proc/sys/kernel/core_pattern").value_or(""));
    f.uses_pid = trimmed(read_file("/proc/sys/kernel/core_uses_pid").value_or("0")) == "1";
    rlimit limit{};
    if (::getrlimit(RLIMIT_CORE, &limit) == 0) f.limit = limit.rlim_cur;
    f.uid = ::getuid();
    f.gid = ::getgid();
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) == 0) f.host = name;
    std::error_code failed;
    f.folder = std::filesystem::current_path(failed).string();
    return f;
}

std::string core_text(const core_facts& f) {
    const bool none = f.limit == 0;
    if (f.pattern.starts_with('|')) {
        const std::string program = f.pattern.substr(1, f.pattern.find(' ') - 1);
        const char* const kept = none ? "; `ulimit -c` is 0, so it may have discarded it" : "";
        if (program.find("systemd-coredump") != std::string::npos)
            return fmt::format("core file: `coredumpctl debug {}` (kept by systemd-coredump{})", f.pid, kept);
        if (program.find("apport") != std::string::npos)
            return fmt::format("core file: passed to apport, see /var/crash and /var/lib/apport/coredump{}",
                               kept);
        return fmt::format("core file: passed to {}{}", program, kept);
    }
    if (none)
        return "core file: none, because `ulimit -c` is 0; `ulimit -c unlimited` before `carousel run` keeps "
               "one";
    if (f.pattern.empty()) return "core file: none, because the kernel's core_pattern is empty";
    return fmt::format("core file: {}", path_of(f));
}

}  // namespace carousel::backtrace
