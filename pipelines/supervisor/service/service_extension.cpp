#include "supervisor/service/service_extension.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "core/clock.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 status_every_ns = ns_per_s;
// longer than the time from the last tick until the report is written
constexpr u64 extension_us = 60'000'000;

std::string status_of(const run_summary& s) {
    return s.state == "running" ? fmt::format("running, {:.1f} frames/s", s.frames_per_second) : s.state_text;
}

}  // namespace

void service_extension::attach(run_access& run) {
    if (manager_.is_open()) run_ = &run;
}

void service_extension::tick(u64 now) {
    if (run_ == nullptr) return;
    send_watchdog(now);
    send_state(run_->summary(), now);
}

// Sends the message twice as often as required, as sd_watchdog_enabled(3) recommends.
void service_extension::send_watchdog(u64 now) {
    if (manager_.watchdog_ns() == 0 || now < watchdog_due_ns_) return;
    if (manager_.send("WATCHDOG=1")) watchdog_due_ns_ = now + manager_.watchdog_ns() / 2;
}

// If the manager's queue is full, the message is sent again in the next tick.
void service_extension::send_state(const run_summary& now_is, u64 now) {
    const bool reloading = ready_ && now_is.reloading && !reloading_;
    const bool reloaded = reloading_ && !now_is.reloading;
    const bool ready = (now_is.ready && !ready_) || reloaded;
    const bool stopping = now_is.ending && !now_is.reloading && !stopping_;
    const std::string status = status_of(now_is);
    // EXTEND_TIMEOUT_USEC= is not sent together with READY=1, because systemd would also extend the
    // watchdog's timeout.
    const bool waits = (!ready_ && !ready) || stopping_ || stopping;
    if (!ready && !stopping && !reloading && (now < status_due_ns_ || (status == status_ && !waits))) return;
    std::string text = "STATUS=" + status;
    if (ready) text += "\nREADY=1";
    if (reloading) text += fmt::format("\nRELOADING=1\nMONOTONIC_USEC={}", now / ns_per_us);
    if (ready && run_->was_taken_over()) text += fmt::format("\nMAINPID={}", ::getpid());
    if (stopping) text += "\nSTOPPING=1";
    if (waits) text += fmt::format("\nEXTEND_TIMEOUT_USEC={}", extension_us);
    if (!manager_.send(text)) return;
    ready_ = ready_ || ready;
    reloading_ = (reloading_ || reloading) && !reloaded;
    stopping_ = stopping_ || stopping;
    status_ = status;
    status_due_ns_ = now + status_every_ns;
}

void service_extension::leave() noexcept {
    if (run_ != nullptr && !stopping_ && !reloading_) (void)manager_.send("STOPPING=1");
    run_ = nullptr;
}

void service_extension::report_outcome(int /*code*/, const nlohmann::json& /*report*/,
                                       const std::string& line) {
    if (run_ != nullptr) (void)manager_.send("STATUS=" + line.substr(0, line.find('\n')));
}

}  // namespace carousel::supervisor
