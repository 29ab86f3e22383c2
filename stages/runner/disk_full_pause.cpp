#include "stages/runner/running_clock.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/log.hpp"
#include "ring/words.hpp"

namespace carousel::stages {
namespace {

constexpr auto retry_every = std::chrono::milliseconds(250);
constexpr u64 log_interval_ns = 5 * ns_per_s;

std::string free_text(const std::string& path) {
    std::error_code failed;
    const std::filesystem::space_info s =
        std::filesystem::space(std::filesystem::path(path).parent_path(), failed);
    return failed ? "the free space is unknown" : fmt::format("{} KiB are free there", s.available / 1024);
}

}  // namespace

void disk_full_pause::wait(u64 ring_sequence, const disk_full_error& e, bool begins) {
    const u64 now = now_ns();
    bool over = false;
    {
        const std::lock_guard lock(mutex_);
        if (begins && paused_threads_++ == 0) {
            since_ns_ = now;
            logged_ns_ = 0;
            outside_->begin(shm::pause_reason::disk_full);
        }
        if (logged_ns_ == 0 || now - logged_ns_ >= log_interval_ns) {  // one thread logs for all
            logged_ns_ = now;
            log::warning(
                "frame {} waits for a full disk (for {:.0f} s now; {}): {}. No frame is lost, and "
                "the stage continues when there is space",
                ring_sequence, static_cast<double>(now - since_ns_) / 1e9, free_text(e.path()), e.what());
        }
        over = has_end_timeout_passed(now);
    }
    if (over) {
        log::warning("frame {} is not written, because the run ends while the disk is still full",
                     ring_sequence);
        wait_for_end();
    }
    std::this_thread::sleep_for(retry_every);
}

bool disk_full_pause::has_end_timeout_passed(u64 now) noexcept {
    if (ring::load(control_->stop_asked) == 0) {
        end_requested_ns_ = 0;
    } else if (end_requested_ns_ == 0) {
        end_requested_ns_ = now;
    }
    return end_requested_ns_ != 0 && now - end_requested_ns_ > full_disk_patience_ns;
}

void disk_full_pause::end(u64 ring_sequence) noexcept {
    const std::lock_guard lock(mutex_);
    if (--paused_threads_ > 0) return;
    log::info("there is space again after {:.1f} s, and frame {} is written",
              static_cast<double>(now_ns() - since_ns_) / 1e9, ring_sequence);
    since_ns_ = end_requested_ns_ = 0;
    outside_->end(shm::pause_reason::disk_full);
}

// From here on this process writes nothing, so its files are complete when the process ends. The supervisor
// ends it by a signal; if the supervisor has ended, the heartbeat ends the process.
void disk_full_pause::wait_for_end() const {
    for (;;) std::this_thread::sleep_for(retry_every);
}

}  // namespace carousel::stages
