#include "stages/runner/heartbeat.hpp"

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "session/accounts.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/supervisor_link.hpp"

namespace carousel::stages {
namespace {
constexpr int beat_ms = 50;
/// A process that holds the run's lock is about to take the run over. The takeover takes time on a busy
/// machine, because the process queries all programs for their outputs. But if that process is stopped, it
/// must not keep the stages alive forever.
constexpr u64 lock_patience_ns = 60 * ns_per_s;
}  // namespace

heartbeat::heartbeat(runtime& r)
    : runtime_(&r),
      grace_ns_(static_cast<u64>(r.attached().supervisor_grace_s * 1e9)),
      thread_([this] { beat(); }) {}

heartbeat::~heartbeat() {
    stop_.store(true, std::memory_order_release);
    thread_.join();
}

void heartbeat::beat() {
    while (!stop_.load(std::memory_order_acquire)) {
        {
            const shm::block_open open;
            session::beat(runtime_->entry(), runtime_->stage_block().counters);
        }
        runtime_->supervisor().watch(runtime_->supervisor().is_to_start_over() ? 1 : beat_ms);
        if (runtime_->supervisor().is_to_start_over()) runtime_->wake_standby();
        exit_after_grace();
    }
}

void heartbeat::exit_after_grace() {
    const u64 gone = runtime_->supervisor().unsupervised_ns();
    if (gone <= grace_ns_) return;
    const attachment& a = runtime_->attached();
    const bool may_go =
        leave_run(runtime_->control(), runtime_->incarnation().entry, a.runtime_directory, a.run_id);
    if (!may_go && gone < grace_ns_ + lock_patience_ns) return;
    log::error("the supervisor ended {:.1f} s ago and no supervisor took the run over: exiting",
               static_cast<double>(gone) / 1e9);
    die(exit_code::supervisor_gone);
}

void heartbeat::wait_for_supervisor() {
    while (!runtime_->supervisor().there()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace carousel::stages
