#pragma once
// The phase of a run, and its end.
//   running -> draining            Ctrl-C, TERM, `carousel down`: END is fixed, frames already begun are
//                                  delivered. (If a source ends its stream, END is lowered to that frame in
//                                  both phases.)
//   running, draining -> leaving   every frame is delivered: the stages leave by themselves
//   any -> ending                  a required stage has failed, a second Ctrl-C, or a stage that does not
//                                  leave: TERM, then KILL
//   running -> rebuilding          run_rebuild.hpp
// One thread; nothing blocks.

#include <algorithm>
#include <functional>
#include <string>

#include "core/types.hpp"

namespace carousel::supervisor {

class block_custodian;
class checkpoint_store;
class run_extensions;
class stage_times;
struct process_table;
struct run_facts;
struct run_outcome;
struct run_setup;

enum class phase { running, draining, leaving, ending, rebuilding };

class run_phase {
public:
    run_phase(const run_setup& setup, process_table& seats, block_custodian& block,
              const checkpoint_store& checkpoints, stage_times& times, run_facts& facts,
              run_extensions& extensions);

    [[nodiscard]] phase now() const noexcept { return phase_; }
    [[nodiscard]] bool is(phase p) const noexcept { return phase_ == p; }
    /// Running or draining: frames are produced, and requests for seats are accepted.
    [[nodiscard]] bool is_open() const noexcept { return is(phase::running) || is(phase::draining); }
    /// Leaving or ending: no process is started any more.
    [[nodiscard]] bool is_final() const noexcept { return is(phase::leaving) || is(phase::ending); }
    /// "running", "waiting", "paused", ...: the form for clients.
    [[nodiscard]] std::string name() const;
    /// A text for display: "waiting: fragment is down, vertex is in backoff", "paused: fragment".
    [[nodiscard]] std::string text() const;
    /// True if all stages have started: each seat's process is ready or paused, or the seat needs no process
    /// (down, vacant, failed, every frame delivered).
    [[nodiscard]] bool is_ready() const noexcept;

    // ---- requests to end
    /// Ends the run `seconds` after its start, as an interrupt does; 0: never.
    void end_after(f64 seconds) noexcept;
    /// The first interrupt drains, the second interrupt ends the run at once, and the third interrupt kills
    /// the processes.
    void interrupt(int signal);
    /// `by`: the cause of the request. If the run then ends before its last frame, its outcome names the
    /// first cause.
    void end_on_request(const std::string& by, int signal, const std::string& why);
    /// Like end_on_request(), for a request to end whose cause is not on this host.
    void request_end(const std::string& why);

    // ---- transitions
    void begin_drain(const std::string& why);
    void end_now(const std::string& why);
    /// To be called if the rebuild could not allocate memory: after this call no process is started, and no
    /// process is signalled.
    void abandon_rebuild();
    void begin_rebuild();
    /// To be called when the rebuilt block is in use.
    void end_rebuild() noexcept { phase_ = phase::running; }
    /// To be called after a rebuild: drains if the end was requested before the rebuild. `end_is_fixed`: END
    /// was determined before the rebuild.
    void drain_again(bool end_is_fixed);
    /// To be called after a takeover if the dead supervisor had begun the stop.
    void adopt_drain(u64 now);
    /// To be called when a frame has advanced: restarts the measurement of the time without progress.
    void note_move(u64 now) noexcept { moved_ns_ = now; }

    // ---- in each tick
    void watch_time_limit(u64 now);
    /// Enters the phase `leaving` when every frame has been delivered, and ends phases that last too long.
    void watch(u64 now);

    /// Records as lost the frames below `frame` that a port has written: they are lost together with their
    /// rings, and cannot be made again.
    void note_lost_until(u64 frame) noexcept { lost_until_ = std::max(lost_until_, frame); }
    /// To be called when everything has ended, which means that no stage of this run, and no extension, has
    /// anything left to do.
    void finish() noexcept { over_ = true; }
    [[nodiscard]] bool is_over() const noexcept { return over_; }
    [[nodiscard]] run_outcome outcome() const;

private:
    void enter(phase p) noexcept;
    [[nodiscard]] u64 running_since(u64 since, u64 now) const noexcept;
    [[nodiscard]] bool awaits_states(u64 now);
    void watch_full_disk(u64 now);
    void flush_outputs(u64 now);
    [[nodiscard]] std::string unwritten();

    const run_setup* setup_;
    process_table* seats_;
    block_custodian* block_;
    const checkpoint_store* checkpoints_;
    stage_times* times_;
    run_facts* facts_;
    run_extensions* extensions_;
    phase phase_ = phase::running;
    u64 since_ns_ = 0, moved_ns_ = 0, tails_ = 0;
    u64 stop_at_ns_ = 0;    ///< 0: never
    u64 delivered_ns_ = 0;  ///< since then the stages write their last states; 0: they do not
    bool killed_ = false, over_ = false;
    /// the message about undelivered frames, if the run ended while a disk was full or another host was
    /// unreachable; otherwise empty
    std::string unwritten_;
    const char* unwritten_why_ = "";
    u64 lost_until_ = 0;
};

// Handles a source that ends its stream (ring/stream_end.hpp). This process is the only writer of END: it
// lowers END to the frame that the source has claimed, regardless of earlier requests. The decision is saved
// first, because a supervisor that takes the run over checks END against the saved value.

class stream_end {
public:
    /// `save`: saves the run's facts and END for a successor.
    stream_end(const run_setup& setup, process_table& seats, block_custodian& block, run_facts& facts,
               std::function<void()> save)
        : setup_(&setup), seats_(&seats), block_(&block), facts_(&facts), save_(std::move(save)) {}

    /// Called in each tick, before a requested stop sets END, the frame number at which the run ends. Two
    /// values of END, unknown and STOPPING, count as greater than every frame number.
    void watch();
    /// Ends a stream that another host sends. For such a stream, this call takes the place of a source's
    /// claim (E2 of ring/PROTOCOL.md). The remote sender has sent all its frames, so `stage` has not leased a
    /// number for a frame that does not exist. A block that is being rebuilt starts with this END.
    void end(const std::string& stage, u64 at, const std::string& why);
    /// To be called after a takeover, because the dead supervisor may have saved END without lowering END in
    /// the block.
    void adopt(u32 ended_by);

private:
    void lower(u32 stage, u64 at);

    const run_setup* setup_;
    process_table* seats_;
    block_custodian* block_;
    run_facts* facts_;
    std::function<void()> save_;
};

}  // namespace carousel::supervisor
