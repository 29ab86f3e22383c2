#include "top/command_run.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {
namespace {
constexpr std::size_t most_lines = 2000;
constexpr u64 end_ns = 500 * ns_per_ms, reap_ns = 2 * ns_per_s;
constexpr int reads_per_poll = 16;  // a command that prints without pause leaves time for keys
constexpr int most_reads = 1024;    // after its end; a pipe holds less
}  // namespace

command_run::command_run(const std::string& program, const std::vector<std::string>& words) noexcept
    : started_ns_(now_ns()) {
    try {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw shm_error("creating a pipe: " + errno_text(errno));
        output_.reset(ends[0]);
        const shm::unique_fd writer(ends[1]);
        if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
            throw shm_error("making a pipe non-blocking: " + errno_text(errno));
        spawn_request r;
        r.argv = {program};
        r.argv.insert(r.argv.end(), words.begin(), words.end());
        r.output = writer.get();
        child_ = spawn(r);
    } catch (const std::exception& e) {
        add(e.what());
        succeeded_ = false;
    }
}

command_run::~command_run() {
    if (!child_.pidfd) return;
    shm::signal_pidfd(child_.pidfd.get(), SIGTERM);
    if (events_of(child_.pidfd.get(), POLLIN, now_ns() + end_ns) == 0) {
        shm::signal_pidfd(child_.pidfd.get(), SIGKILL);
        (void)events_of(child_.pidfd.get(), POLLIN, now_ns() + reap_ns);
    }
    (void)reap(child_.pidfd.get());
}

void command_run::add(std::string line) {
    lines_.push_back(std::move(line));
    if (lines_.size() > most_lines) lines_.pop_front();
}

bool command_run::poll() {
    if (succeeded_) return false;
    // The process is checked before its output is read, so that the last lines are not lost.
    const exit_status end = reap(child_.pidfd.get());
    bool more = false;
    std::array<char, 4096> bytes{};
    const auto take = [&](std::string_view line) {
        add(std::string(line));
        more = true;
    };
    for (int k = 0; k < (end.known ? most_reads : reads_per_poll); ++k) {
        const ssize_t n = ::read(output_.get(), bytes.data(), bytes.size());
        if (n <= 0) break;
        splitter_.feed({bytes.data(), static_cast<std::size_t>(n)}, take);
    }
    if (!end.known) return more;
    splitter_.finish(take);
    child_.pidfd.reset();
    succeeded_ = end.signal == 0 && end.exit_code == 0;
    return true;
}

}  // namespace carousel::supervisor
