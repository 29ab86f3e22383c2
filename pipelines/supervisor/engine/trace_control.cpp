#include "supervisor/engine/trace_control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"
#include "shm/process_id.hpp"
#include "spec/programs.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 longest_lease_ms = 10'000;

constexpr std::size_t most_at_once = 4;
constexpr u64 forgotten_ns = 15 * ns_per_s;
constexpr u64 longest_trace = 256ULL << 20U;
constexpr int killed_within = 1000;  // ms

std::string last_line_of(const std::string& path) {
    std::string text = read_file(path).value_or("");
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text.empty() ? "it printed nothing" : text.substr(text.rfind('\n') + 1);
}

bool continues(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

run::trace_answer trace_control::carry_out(const run::trace_request& r, const std::string& state) {
    shm::control_block& c = block_->block();
    if (!trace_)
        trace_ = std::make_unique<shm::trace_segment>(
            shm::trace_segment::create(run_id_, block_->published().seats));
    const u64 until = now_ns() + std::min<u64>(r.lease_ms, longest_lease_ms) * ns_per_ms;
    // Two commands may trace at the same time; the later of their end times applies.
    if (until > c.trace_until_ns.load(std::memory_order_relaxed))
        c.trace_until_ns.store(until, std::memory_order_relaxed);
    run::trace_answer a = seats_->notes.since(r.since);
    a.run_id = run_id_;
    a.created_ns = block_->published().created_ns;
    a.state = state;
    return a;
}

run::trace_file_answer trace_control::carry_out(const run::trace_file_request& r) {
    if (!r.host.empty())
        throw config_error(
            fmt::format("trace: {} runs only on this host: there is no host {}", setup_->name, r.host));
    if (r.id == 0) return files_.begin(setup_->directory, setup_->name, now_ns());
    return files_.poll(r.id, r.stop, r.at, now_ns());
}

trace_files::~trace_files() {
    for (auto& [id, r] : all_) discard(std::move(r));
    for (const recording& r : dying_) {
        (void)events_of(r.child.pidfd.get(), POLLIN, now_ns() + killed_within * ns_per_ms);
        (void)reap(r.child.pidfd.get());
    }
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string trace_files::part_path(const recording& r) { return temporary_output(r.path, r.child.pid); }

void trace_files::remove(const recording& r) noexcept {
    for (const std::string& path : {part_path(r), r.path, r.path + ".log"}) ::unlink(path.c_str());
}

void trace_files::discard(recording r) noexcept {
    remove(r);
    if (r.over) return;
    shm::signal_pidfd(r.child.pidfd.get(), SIGKILL);
    dying_.push_back(std::move(r));
}

run::trace_file_answer trace_files::begin(const std::string& run_folder, const std::string& name, u64 now) {
    if (all_.size() >= most_at_once)
        throw config_error(fmt::format("trace: {} traces are already being recorded here", most_at_once));
    std::error_code failed;
    if (folder_.empty()) {  // removes the files that an earlier supervisor has left
        std::filesystem::remove_all(run_folder + "/traces", failed);
        std::filesystem::create_directory(run_folder + "/traces", failed);
        if (failed)
            throw config_error(
                fmt::format("trace: cannot create {}/traces: {}", run_folder, failed.message()));
        folder_ = run_folder + "/traces";
    }
    recording r;
    r.path = fmt::format("{}/{}.json", folder_, ++last_);
    const shm::unique_fd log(
        ::open((r.path + ".log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC, 0600));
    if (!log) throw config_error(fmt::format("trace: cannot create {}.log: {}", r.path, errno_text(errno)));
    try {
        r.child = spawn({.argv = {program_of_ours("carousel", executable_folder()), "trace", r.path,
                                  "--seconds", "3600", "--with-parent", "--name", name},
                         .environment = {},
                         .output = log.get()});
    } catch (const error&) {
        remove(r);
        throw;
    }
    // the size is limited, because the file may be in memory (on a tmpfs)
    const rlimit most{longest_trace, longest_trace};
    (void)::prlimit(r.child.pid, RLIMIT_FSIZE, &most, nullptr);
    r.polled_ns = now;
    all_.emplace(last_, std::move(r));
    run::trace_file_answer a;
    a.id = last_;
    return a;
}

run::trace_file_answer trace_files::poll(u64 id, bool stop, u64 at, u64 now) {
    const auto found = all_.find(id);
    if (found == all_.end())
        throw config_error(fmt::format("trace: trace {} does not exist here, or has been removed", id));
    recording& r = found->second;
    r.polled_ns = now;
    // As soon as its file exists, the recording process handles the signal by ending the recording.
    const bool records = ::access(part_path(r).c_str(), F_OK) == 0;
    if (stop && records && !r.stopped && !r.over) {
        r.stopped = true;
        shm::signal_pidfd(r.child.pidfd.get(), SIGINT);  // the process writes the data recorded so far
    }
    if (!r.over && has_ended(r.child.pidfd.get())) {
        r.how = reap(r.child.pidfd.get());
        r.over = true;
    }
    run::trace_file_answer a;
    a.id = id;
    a.records = records;
    if (!r.over) return a;
    if ((r.how.signal != 0 || r.how.exit_code != 0) && ::access(r.path.c_str(), F_OK) != 0) {
        const std::string why =
            r.how.signal == SIGXFSZ
                ? fmt::format(
                      "it exceeds the limit of {} MiB for a transfer: trace fewer seconds, or each host "
                      "separately (`carousel trace --here` there, then --coordinator and --join)",
                      longest_trace >> 20U)
                : "it could not be recorded: " + last_line_of(r.path + ".log");
        discard(std::move(r));
        all_.erase(found);
        throw config_error("trace: " + why);
    }
    std::ifstream file(r.path, std::ios::binary | std::ios::ate);
    if (!file) throw config_error(fmt::format("trace: opening {}: {}", r.path, errno_text(errno)));
    a.bytes = static_cast<u64>(file.tellg());
    if (at >= a.bytes) {
        discard(std::move(r));
        all_.erase(found);
        return a;
    }
    a.text = part_of(file, a.bytes, at);
    if (!file) throw config_error(fmt::format("trace: reading {}: {}", r.path, errno_text(errno)));
    return a;
}

std::string trace_files::part_of(std::istream& file, u64 bytes, u64 at) {
    constexpr u64 longest_rest = 3;  // a character has at most this number of bytes after its first byte
    std::string text(std::min(run::trace_part + longest_rest, bytes - at), '\0');
    file.seekg(static_cast<std::streamoff>(at));
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    std::size_t end = std::min<std::size_t>(text.size(), run::trace_part);
    while (end < text.size() && continues(text[end])) ++end;
    text.resize(end);
    std::size_t begin = 0;
    while (at != 0 && begin < std::min<std::size_t>(longest_rest, text.size()) && continues(text[begin]))
        ++begin;
    return text.substr(begin);
}

void trace_files::tick(u64 now) {
    for (auto at = all_.begin(); at != all_.end();) {
        if (now < at->second.polled_ns + forgotten_ns) {
            ++at;
            continue;
        }
        discard(std::move(at->second));
        at = all_.erase(at);
    }
    const auto is_gone = [](const recording& r) {
        if (!has_ended(r.child.pidfd.get())) return false;
        (void)reap(r.child.pidfd.get());
        remove(r);  // removes what the process has written after discard() had removed its files
        return true;
    };
    dying_.erase(std::remove_if(dying_.begin(), dying_.end(), is_gone), dying_.end());
}

}  // namespace carousel::supervisor
