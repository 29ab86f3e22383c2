// carousel-backtrace: reads a fault record (run/fault_record.hpp) from stdin and prints the backtrace with
// names. The supervisor starts it after a stage has died by a signal, because reading debug information can
// take seconds and must not delay the supervisor. It runs at a low priority, so that it does not delay the
// successor of the stage; at the lowest, it would miss its limit on busy cores. An alarm ends it if the
// supervisor, which enforces the limit, has died.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>

#include "backtrace/core_file.hpp"
#include "backtrace/symboliser.hpp"
#include "core/errors.hpp"
#include "core/process.hpp"
#include "run/fault_record.hpp"

namespace carousel::backtrace {
namespace {

std::string head_of(const run::fault_record& r) {
    const char* const name = r.signal > 0 ? sigabbrev_np(r.signal) : nullptr;
    const std::string what = run::fault_text(r);
    return fmt::format("error: SIG{}{}{}, in thread {}:", name == nullptr ? "?" : name,
                       what.empty() ? "" : ": ", what, r.thread_name);
}

/// Prints frame `k`, and returns the frame that follows the frames of a recursion with the same address.
u32 print_frame(const run::fault_record& r, const symboliser& names, u32 k) {
    const run::fault_module* const m = names.module_of(k);
    const std::string where =
        m == nullptr ? fmt::format("{:#x}, in no module", names.address_in_file(k))
                     : fmt::format("{}+{:#x}", std::filesystem::path(m->path).filename().string(),
                                   names.address_in_file(k));
    const std::vector<place> all = names.places_of(k);
    if (all.empty()) fmt::print("  #{} {}\n", k, where);
    for (const place& p : all)
        fmt::print("  #{} {}{}{}{}\n", k, p.function.empty() ? "?" : p.function,
                   p.source.empty() ? "" : " at " + p.source, p.inlined ? " (inlined)" : "",
                   p.inlined ? "" : fmt::format(" ({})", where));
    u32 next = k + 1;
    while (next < r.frames && r.frame[next] == r.frame[k]) ++next;
    if (next == k + 1) return next;
    fmt::print("  #{} to #{}: the same as #{}{}\n", k + 1, next - 1, k,
               next == run::fault_record::max_frames ? "; further frames are not recorded" : "");
    return next;
}

/// What the user needs to find the names by hand, for the module of the innermost frame.
void print_hint(const run::fault_record& r, const symboliser& names) {
    const run::fault_module* const m = names.module_of(0);
    if (m == nullptr) return;
    std::string addresses;
    for (u32 k = 0; k < r.frames; ++k)
        if (names.module_of(k) == m) addresses += fmt::format(" {:#x}", names.address_in_file(k));
    fmt::print("  install libdw (apt-get install libdw1) for names, or run: addr2line -Cfipe {}{}\n", m->path,
               addresses);
}

int print_backtrace() {
    const std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
    const auto r = run::fault_record_from(bytes);
    if (!r) {
        fmt::print(stderr,
                   "error: carousel-backtrace: stdin has no fault record; the supervisor starts this "
                   "program\n");
        return exit_code::usage;
    }
    const libdw* const library = load_libdw();
    const symboliser names(*r, library);
    fmt::print("{}\n", head_of(*r));
    for (u32 k = 0; k < r->frames;) k = print_frame(*r, names, k);
    if (r->complete != run::fault_record::version)
        fmt::print("  the record ends here: the stack is damaged, or the process was killed\n");
    for (u32 k = 0; k < r->modules; ++k)
        if (names.is_stale(r->module[k]))
            fmt::print(
                "  {} has changed since the process was started, or cannot be read, so its functions are not "
                "known\n",
                r->module[k].path);
    if (library == nullptr) print_hint(*r, names);
    core_facts f = facts_of_this_process();
    f.pid = r->pid;
    f.thread = r->thread;
    f.signal = r->signal;
    f.thread_name = r->thread_name;
    f.program = r->program;
    fmt::print("  {}\n", core_text(f));
    return exit_code::ok;
}

}  // namespace
}  // namespace carousel::backtrace

int main(int argc, char**) {
    if (argc > 1) {
        fmt::print(
            "Usage: carousel-backtrace < RECORD\nPrints the backtrace of a stage that died by a signal. "
            "The supervisor starts this program.\n");
        return carousel::after_output(carousel::exit_code::ok);
    }
    ::setpriority(PRIO_PROCESS, 0, 5);
    ::alarm(carousel::run::backtrace_limit_s + 1);  // the supervisor's limit comes first, and is logged
    return carousel::after_output(carousel::backtrace::print_backtrace());
}
