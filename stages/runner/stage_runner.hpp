#pragma once
// The main loops of stage processes.

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/profiler.hpp"
#include "ledger/ledger.hpp"
#include "ring/helper.hpp"
#include "ring/worker.hpp"
#include "session/status_words.hpp"
#include "stages/runner/checkpoint_writer.hpp"
#include "stages/runner/depth_governor.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/finish_pool.hpp"
#include "stages/runner/frame_canaries.hpp"
#include "stages/runner/frame_in_work.hpp"
#include "stages/runner/gpu_turn.hpp"
#include "stages/runner/running_clock.hpp"
#include "stages/runner/runtime.hpp"
#include "stages/runner/sampled_inputs.hpp"
#include "telemetry/trace_ring.hpp"

namespace carousel::stages {

// Main loop of a stage process that is a source, or that reads its inputs as a member of blocking groups.
// Threads:
//   main        begin -> process -> submit; when it would otherwise be idle, it helps its producers commit
//               and sweeps its rings
//   completion  waits for each job's own event in order, finish(), commit, complete; writes the ledger of a
//               stage without an output (ledger/ledger.hpp): record before the commit, mark after it and
//               before anything else. For a stage with several finish threads, this thread does only the
//               steps after finish(); the finish pool does the others (finish_pool.hpp)
//   heartbeat   the time stamp in the entry, the supervisor's EOF, CPU time (heartbeat.hpp)
// Every wait has a timeout: sleeps on the stage's doorbell last 100 ms at most; the supervisor bounds the
// wait for a job's event, because it kills a stage whose frame exceeds frame_timeout_ms (clocks:
// pipelines/supervisor/policy/clocks.hpp). Errors: a device failure ends the process with
// exit_code::gpu_fault, an exception of the stage's code or a write by that code beyond an output slot
// (frame_canaries.hpp) with exit_code::stage_exception, a revocation with exit_code::revoked. The process
// then ends by _exit, with a note for the supervisor.

class stage_runner {
public:
    /// Starts the runner's threads. Throws std::system_error if a thread cannot be started; the process has
    /// not been reported as ready at that time.
    stage_runner(runtime& r, stage& s);
    ~stage_runner();
    stage_runner(const stage_runner&) = delete;
    stage_runner& operator=(const stage_runner&) = delete;
    /// Blocks, fully prepared, until this standby has taken over its seat; false: it is to start over.
    [[nodiscard]] bool stand_by();
    /// Runs until every frame of the run has passed this stage. Returns normally only then.
    void run();

private:
    [[nodiscard]] ring::outcome begin(frame_in_work& f, u32 in_flight);
    void start_clocks(const frame_in_work& f);
    void submit(frame_in_work& f);
    void play_graphs();  ///< defined in stage_runner_enqueue.cpp, like the next five functions
    void enqueue_checked(frame_in_work& f);
    void keep_state(const frame_in_work& f);
    void process(frame_in_work& f);
    void copy_inputs(const frame_in_work& f);
    void copy_outputs(const frame_in_work& f);
    void check_status(const frame_in_work& f, device::status_state state);
    void end_stream(frame_in_work& f);  ///< defined in stage_runner_waiting.cpp, like the next eight
                                        ///< functions
    void show_wait(ring::wait_kind kind, u64 began);
    void wait_for_change(u32 seen, telemetry::wait_reason why, u64 at_most_ns);
    void count_waits();
    [[nodiscard]] bool poll_rings();
    [[nodiscard]] bool due(u32 seen);
    [[nodiscard]] bool ready(u64 ring_sequence, u32 in_flight);
    void wait_for_link(bool waits);
    void paced(u64 claimed_ns);
    void complete_loop();
    void join_completion();
    void wait_for_device(frame_in_work& f);
    void on_device_done(frame_in_work& f, u64 wait_began);
    [[nodiscard]] u64 await_device(frame_in_work& f);
    void finish(frame_in_work& f);
    void commit(frame_in_work& f, shm::block_open_between& open);
    template <typename F>
    void host_work(const char* what, const frame_in_work& f, F&& work);
    void record(const frame_in_work& f);
    [[nodiscard]] u32 in_flight();
    [[nodiscard]] frames_on_device on_device();
    [[nodiscard]] ring::link_ref& states() noexcept { return worker_.output(worker_.outputs() - 1); }
    void write_missing_state();
    void write_last_state();
    void update_depth();  ///< defined in stage_runner_enqueue.cpp, like the next three functions
    void update_turns();
    [[nodiscard]] u64 work_of_a_turn() const;
    void measure(const frame_in_work& f, u64 wait_began);
    void released(frame_in_work& f);

    runtime* runtime_;
    stage* stage_;
    bool commits_on_host_;  ///< stage::commits_on_host(), queried once
    ring::worker worker_;
    ring::helper helper_;
    ring::takeover_pause takeover_pause_;
    /// set only for a stage without an output; written by its completion thread
    std::unique_ptr<telemetry::ledger_writer> ledger_;
    telemetry::trace_writer trace_;
    device::profiler profiler_;  ///< one profiler domain per stage
    finish_clock finishing_;
    external_pause outside_;
    disk_full_pause pause_;
    session::status_words status_;
    std::vector<std::unique_ptr<frame_in_work>> frames_;
    std::unique_ptr<frame_canaries> canaries_;
    std::unique_ptr<sampled_inputs> sampled_inputs_;  ///< used by the main thread; null: the stage has none
    gpu_turn turn_;
    reach_choice reach_;
    depth_governor depth_;  ///< used by the main thread
    u64 next_update_ns_ = 0;
    work_meter meter_;                ///< used by the thread that waits for the device
    u64 last_complete_ns_ = 0;        ///< used by the same thread
    u64 poll_ns_;                     ///< time for which a thread polls before it sleeps; 0: it never polls
    bool last_wait_changed_ = true;   ///< used by the main thread, like the next two members
    std::array<u64, 4> waited_ns_{};  ///< waiting time per wait_reason that is not yet counted in the control
                                      ///< block
    bool waits_for_link_ = false;     ///< true for a source whose ready() has no frame to begin

    std::mutex mutex_;  ///< process-local; guards the members below
    std::condition_variable changed_;
    std::deque<frame_in_work*> submitted_;
    std::vector<frame_in_work*> idle_;
    bool alone_ = false;          ///< a suspect frame is in flight: no other frame may be in flight at the
                                  ///< same time
    bool all_submitted_ = false;  ///< no further frame will follow the frames that are submitted

    // Declared last, because the threads of these members use the other members.
    std::unique_ptr<checkpoint_writer> checkpoints_;  ///< null: no checkpoints
    std::unique_ptr<finish_pool> pool_;               ///< null: the completion thread calls finish()
    std::thread completion_;
};

// The waits of a stage's main thread while no frame can begin: how long the thread polls before it sleeps,
// and the reason under which its wait is counted and traced.

/// Time for which an idle stage polls its producers' events before it sleeps, in ns.
inline constexpr u64 poll_ns = 50'000;
/// The polling time after a frame if latency = "low". With this value the stage never sleeps if the source
/// makes 60 frames per second or more.
inline constexpr u64 poll_for_low_ns = 20'000'000;

/// Returns the time for which an idle thread of this stage polls, in ns; 0 if polling threads would share
/// cores. Each polling thread occupies one core: there is one such thread per seat, one more per stage with
/// state, and with latency = "low" one more per seat of a sink.
[[nodiscard]] u64 poll_of(const runtime& r);

[[nodiscard]] telemetry::wait_reason reason_of(ring::outcome o) noexcept;
/// Returns the counter of the time, in ns, that a stage has waited for this reason.
[[nodiscard]] shm::word& counter_of(shm::stage_counters& n, telemetry::wait_reason why) noexcept;
/// Returns the text that a profiler's timeline shows for this reason.
[[nodiscard]] const char* text_of(telemetry::wait_reason why) noexcept;

// Main loop of a stage that reads its only input as a `latest` group: such a stage takes the newest frame,
// skips frames for which it has no time, and never blocks another process. The data that the stage has read
// is valid only if its lease was not revoked while the stage read. The release of the lease shows whether it
// was revoked, so finish() is called after the release.

/// Runs until every frame of the run has passed.
void run_latest(runtime& r, stage& s);

}  // namespace carousel::stages
