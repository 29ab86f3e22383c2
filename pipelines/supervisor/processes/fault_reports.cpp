#include "supervisor/processes/fault_reports.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "os/log_pipe.hpp"
#include "shm/process_id.hpp"
#include "spec/programs.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {
namespace {

constexpr std::size_t max_backtraces = 2, max_queued = 32;
constexpr std::size_t max_backtrace_bytes = 256 * 1024;
constexpr u64 backtrace_limit_ns = run::backtrace_limit_s * ns_per_s;

/// An anonymous file with `bytes` bytes, positioned at its start. Throws shm_error.
shm::unique_fd backtrace_file(const char* name, const void* bytes, std::size_t count) {
    shm::unique_fd fd(::memfd_create(name, MFD_CLOEXEC));
    if (!fd || !write_whole(fd.get(), bytes, count) || ::lseek(fd.get(), 0, SEEK_SET) != 0)
        throw shm_error(fmt::format("a file in memory for a backtrace: {}", errno_text(errno)));
    return fd;
}

}  // namespace

fault_reports::~fault_reports() {
    for (report& r : all_) {
        shm::signal_pidfd(r.child.pidfd.get(), SIGKILL);
        (void)events_of(r.child.pidfd.get(), POLLIN, now_ns() + ns_per_s);
        (void)reap(r.child.pidfd.get());
    }
}

void fault_reports::begin(const seat& s, const run::fault_record& record) {
    if (all_.size() < max_backtraces) return start(s, record);
    if (queue_.size() < max_queued) return queue_.push_back({&s, record});
    s.log->line_about(record.pid, fmt::format("no backtrace of pid {}: {} others are in progress", record.pid,
                                              all_.size() + queue_.size()));
}

void fault_reports::start(const seat& s, const run::fault_record& record) try {
    const shm::unique_fd input = backtrace_file("carousel-fault", &record, sizeof record);
    report r{{}, &s, record.pid, backtrace_file("carousel-backtrace", "", 0), now_ns() + backtrace_limit_ns};
    // An empty DEBUGINFOD_URLS: libdw asks no server for debug information.
    r.child = spawn({.argv = {program_of_ours("carousel-backtrace", executable_folder())},
                     .environment = {"DEBUGINFOD_URLS="},
                     .input = input.get(),
                     .output = r.output.get()});
    all_.push_back(std::move(r));
} catch (const error& e) {
    s.log->line_about(record.pid, fmt::format("no backtrace of pid {}: {}", record.pid, e.what()));
}

void fault_reports::end(report& r) {
    (void)reap(r.child.pidfd.get());
    std::string text(max_backtrace_bytes, '\0');
    const ssize_t got = read_whole_at(r.output.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    line_splitter lines;
    const auto log = [&](std::string_view line) { r.of->log->line_about(r.pid, line); };
    lines.feed(text, log);
    lines.finish(log);
    if (r.timed_out || text.empty())
        log(fmt::format(
            "no complete backtrace of pid {}: carousel-backtrace {}", r.pid,
            r.timed_out ? fmt::format("took longer than {} s", run::backtrace_limit_s) : "printed nothing"));
    r.of->log->end_of_process();
}

void fault_reports::tick(u64 now) {
    std::erase_if(all_, [&](report& r) {
        if (has_ended(r.child.pidfd.get())) {
            end(r);
            return true;
        }
        // A program that waits for a file of a network file system may not end at once; this thread does not
        // wait for it.
        if (now >= r.until_ns && !r.timed_out) {
            r.timed_out = true;
            shm::signal_pidfd(r.child.pidfd.get(), SIGKILL);
        }
        return false;
    });
    while (all_.size() < max_backtraces && !queue_.empty()) {
        const queued next = queue_.front();
        queue_.pop_front();
        start(*next.of, next.record);
    }
}

void fault_reports::finish() {
    const u64 until = now_ns() + backtrace_limit_ns + ns_per_s;
    while (!all_.empty() && now_ns() < until) {
        const report& first = all_.front();
        (void)events_of(first.child.pidfd.get(), POLLIN,
                        first.timed_out ? until : std::min(until, first.until_ns));
        tick(now_ns());
    }
    const auto log_missing = [](const seat& s, i32 pid) {
        s.log->line_about(pid, fmt::format("no backtrace of pid {}: the run ended before it was made", pid));
    };
    for (const report& r : all_) log_missing(*r.of, r.pid);
    for (const queued& q : queue_) log_missing(*q.of, q.record.pid);
    queue_.clear();
}

std::optional<run::fault_record> fault_of(const process_table& t, const process& p) {
    if (!p.how.known || p.how.signal == 0 || p.port || p.incarnation.entry >= shm::max_incarnations)
        return std::nullopt;
    return run::read_fault_record(t.setup->directory, p.incarnation.entry, p.pid);
}

}  // namespace carousel::supervisor
