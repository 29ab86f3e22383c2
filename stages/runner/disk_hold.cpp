#include "stages/runner/disk_hold.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/log.hpp"
#include "ring/words.hpp"

namespace carousel::stages {
namespace {

constexpr auto retry_every = std::chrono::milliseconds(250);
constexpr u64 say_every_ns = 5 * ns_per_s;

std::string free_text(const std::string& path) {
    std::error_code failed;
    const std::filesystem::space_info s =
        std::filesystem::space(std::filesystem::path(path).parent_path(), failed);
    return failed ? "how much is free can't be told"
                  : fmt::format("{} KiB are free there", s.available / 1024);
}

}  // namespace

void disk_hold::wait(u64 ring_sequence, const disk_full_error& e, bool begins) {
    const u64 now = now_ns();
    bool over = false;
    {
        const std::lock_guard lock(mutex_);
        if (begins && held_++ == 0) {
            since_ns_ = now;
            said_ns_ = 0;
            outside_->begin(shm::pause_reason::disk_full);
        }
        if (said_ns_ == 0 || now - said_ns_ >= say_every_ns) {  // one of them speaks for all
            said_ns_ = now;
            log::warning(
                "frame {} waits for a full disk (for {:.0f} s now; {}): {}. Nothing is lost: it goes on when "
                "there is room",
                ring_sequence, static_cast<double>(now - since_ns_) / 1e9, free_text(e.path()), e.what());
        }
        over = patience_is_over(now);
    }
    if (over) {
        log::warning("frame {} is not written: the run ends, and the disk is still full", ring_sequence);
        wait_for_end();
    }
    std::this_thread::sleep_for(retry_every);
}

bool disk_hold::patience_is_over(u64 now) noexcept {
    if (ring::load(control_->stop_asked) == 0) {
        asked_to_end_ns_ = 0;
    } else if (asked_to_end_ns_ == 0) {
        asked_to_end_ns_ = now;
    }
    return asked_to_end_ns_ != 0 && now - asked_to_end_ns_ > full_disk_patience_ns;
}

void disk_hold::end(u64 ring_sequence) noexcept {
    const std::lock_guard lock(mutex_);
    if (--held_ > 0) return;
    log::info("there is room again after {:.1f} s: frame {} is written",
              static_cast<double>(now_ns() - since_ns_) / 1e9, ring_sequence);
    since_ns_ = asked_to_end_ns_ = 0;
    outside_->end(shm::pause_reason::disk_full);
}

// Nothing is written any more, so a signal leaves whole files. It comes from the supervisor; where that is
// gone, the heartbeat ends the process.
void disk_hold::wait_for_end() const {
    for (;;) std::this_thread::sleep_for(retry_every);
}

}  // namespace carousel::stages
