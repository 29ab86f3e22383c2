#include "supervisor/engine/web_page.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/poll_until.hpp"
#include "core/token.hpp"
#include "os/subprocess.hpp"
#include "shm/process_id.hpp"
#include "spec/own_programs.hpp"

namespace carousel::supervisor {
namespace {

constexpr u32 most_starts = 4;
constexpr u64 pause_ns = ns_per_s;
constexpr int patience_ms = 1000;
constexpr u32 page_color = 7;

bool has_gone(int pidfd, int timeout_ms) noexcept {
    return events_of(pidfd, POLLIN, now_ns() + static_cast<u64>(timeout_ms) * ns_per_ms) != 0;
}

std::string ending_of(const exit_status& s) {
    return s.signal != 0 ? fmt::format("signal {} ({})", s.signal, signal_name(s.signal))
                         : fmt::format("exit code {}", s.exit_code);
}

}  // namespace

std::string page_program() {
    return program_of_ours("carousel-web", executable_folder(),
                           "the web page takes libjpeg-turbo (apt-get install libturbojpeg0-dev)");
}

web_page::web_page(event_loop& loop, console& out, std::string address, std::string name,
                   const std::string& folder, std::size_t width)
    : loop_(loop),
      address_(std::move(address)),
      name_(std::move(name)),
      token_(new_token()),
      log_(out, "page", width, page_color, folder + "/logs/page.jsonl") {}

web_page::~web_page() {
    if (!process_.pidfd) return;
    loop_.forget(process_.pidfd.get());
    if (pipe_.fd() >= 0) loop_.forget(pipe_.fd());
    (void)shm::signal_pidfd(process_.pidfd.get(), SIGTERM);
    if (!has_gone(process_.pidfd.get(), patience_ms)) {
        (void)shm::signal_pidfd(process_.pidfd.get(), SIGKILL);
        (void)has_gone(process_.pidfd.get(), patience_ms);
    }
    (void)reap(process_.pidfd.get());
    pipe_.close(log_, process_.pid);
}

void web_page::start() noexcept {
    due_ns_ = 0;
    try {
        ++starts_;
        shm::unique_fd write_end;
        pipe_ = log_pipe::make(write_end);
        spawn_request r;
        r.argv = {page_program(), "--http", address_, "-p", name_, "--with-run"};
        // The environment and not the command line, which others on this machine may read. A successor gets
        // the same: open pages stay good.
        r.environment = {"CAROUSEL_WEB_TOKEN=" + token_};
        r.output = write_end.get();
        process_ = spawn(r);
        loop_.watch(process_.pidfd.get(), EPOLLIN, [this](u32) { ended(); });
        loop_.watch(pipe_.fd(), EPOLLIN, [this](u32) {
            if (!pipe_.drain(log_, process_.pid)) loop_.forget(pipe_.fd());
        });
    } catch (const std::exception& e) {
        log_.line(0, fmt::format("there will be no page: {}", e.what()));
    }
}

void web_page::ended() {
    loop_.forget(process_.pidfd.get());
    if (pipe_.fd() >= 0) loop_.forget(pipe_.fd());
    const exit_status how = reap(process_.pidfd.get());
    pipe_.close(log_, process_.pid);
    const i32 pid = process_.pid;
    process_ = {};
    if (how.signal == 0 && how.exit_code == exit_code::usage) {  // it has said why, and would say so again
        log_.line(pid, "there is no page; the pipeline goes on");
    } else if (starts_ >= most_starts) {
        log_.line(
            pid, fmt::format("the page has ended ({}) for the {}th time and stays away; the pipeline goes on",
                             ending_of(how), starts_));
    } else {
        log_.line(pid, fmt::format("the page has ended ({}); it is started again, the pipeline goes on",
                                   ending_of(how)));
        due_ns_ = now_ns() + pause_ns;
    }
}

void web_page::tick(u64 now) noexcept {
    if (due_ns_ != 0 && now >= due_ns_) start();
}

}  // namespace carousel::supervisor
