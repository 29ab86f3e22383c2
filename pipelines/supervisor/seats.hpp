#pragma once
// The processes on the seats of a run: started, let in, watched, buried and followed by a successor, in the order that the
// protocol asks for (ring/recovery.hpp). One thread; nothing in here waits.
//
// A life is one process. While it is well it is seat::now. Once it is known to be dead, hung or unwanted it is buried:
//   appoint a successor's entry and doom its own, revoke, kill, requeue      at once;
//   judge: what the restart policy says                                      at once, or at the exit status (see judge());
//   mark fenced, requeue once more, reclaim, assets                          when its pidfd says that it is gone.
// Until that is done it is one of seat::gone; the successor works meanwhile. bury.cpp holds this, watch.cpp the deadlines.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ring/block_check.hpp"
#include "ring/recovery.hpp"
#include "shm/injected_fault.hpp"
#include "supervisor/clocks.hpp"
#include "supervisor/event_loop.hpp"
#include "supervisor/ledger_keeper.hpp"
#include "supervisor/log_pipe.hpp"
#include "supervisor/memory_keeper.hpp"
#include "supervisor/recovery_log.hpp"
#include "supervisor/run_notes.hpp"
#include "supervisor/run_setup.hpp"
#include "supervisor/spawn.hpp"
#include "supervisor/state_table.hpp"

namespace carousel::supervisor {

class mps_domain;

struct life {
    ring::incarnation_id who;
    i32 pid = 0;
    shm::unique_fd pidfd;       ///< of the process that works
    shm::unique_fd tool_pidfd;  ///< of a tool in front of it (gdb ...), once the stage behind it has attached
    i32 group = 0;              ///< process group that we made, 0: none
    int connection = -1;        ///< its liveness socket; owned by the engine
    bool by_hand = false, tool = false;
    log_pipe log;
    u64 spawned_ns = 0, signalled_ns = 0, seen_dead_ns = 0, ended_ns = 0;
    death how;
    int user_signal = 0;         ///< sent by `carousel kill`: such a death is from outside, whatever the signal
    bool leaving = false;        ///< has closed its connection but is not dead yet: it ends by its own hand
    bool by_us = false;          ///< alive when it was buried: a deadline, `restart`, `down`
    ring::job_census census;     ///< when its death was seen
    std::vector<u64> sequences;  ///< frames that were in flight then
    std::vector<u64> committed;  ///< frames whose job words still said COMMITTED when they were taken from it
    ring::blame why = ring::blame::none;
    u32 quarantined = 0;         ///< buffers that wait for its end
    bool standing_by = false;    ///< a spare that has said that it is ready to take over
    bool counted = false;        ///< its death is in the account
    u32 domain = 0;              ///< generation of the MPS domain whose client it is; 0: it has a GPU context of its own
    bool let_go = false;         ///< terminate_client has ended all its work
    bool breaks = false, broke = false;          ///< its death ends the domain; and has
    bool with_domain = false, excused = false;  ///< it ends because its domain does; it is not blamed for its own end
    bool doomed = false, revoked = false, kill_sent = false, ended = false, fenced = false, reclaimed = false, judged = false, blamed = false;
};

struct seat {
    u32 index = 0, stage = 0, instance = 0;
    std::string label;  ///< "fragment", or "fragment.1"
    seat_machine machine;
    std::unique_ptr<life> now;
    std::vector<std::unique_ptr<life>> gone;
    ring::incarnation_id heir;  ///< appointed, not spawned yet
    std::unique_ptr<life> spare;  ///< a warm standby behind `now`; see standby.cpp
    u64 spare_due_ns = 0, spare_delay_ns = 0;
    bool by_standby = false;    ///< the present holder was its predecessor's standby
    u64 vacant_since_ns = 0;    ///< death of the last holder, until its successor commits: the takeover that the report tells
    i32 vacant_pid = 0;         ///< that holder
    u32 vacant_epoch = 0;
    bool start_short = false;   ///< it can't be started for want of descriptors, processes or memory: said once
    bool start_wanted = false;  ///< to be spawned at due_ns
    u64 due_ns = 0;
    std::unique_ptr<log_sink> log;
    std::vector<i32> pids;
    u32 restarts = 0;
    std::string last_exit;
    i32 last_exit_pid = 0;  ///< whose
    u64 clock_base_ns = 0;   ///< no deadline counts time before this
    u64 device_base_ns = 0;  ///< nor that of a frame on the device before this
    u64 sampled_cpu_ns = 0, sampled_at_ns = 0;
    f64 cpu_percent = 0;
};

/// Since when the process on a seat has waited for room on a full disk, by its own word; 0: it doesn't.
[[nodiscard]] u64 full_disk_since_ns(const shm::control_block& c, const seat& s) noexcept;

/// The death that ended the run.
struct root_cause {
    std::string label, what;
    int exit_code = 1;
    std::vector<std::string> last_lines;
};

struct void_frame {
    u64 sequence = 0;
    std::string stage, reason;
};

/// Why the standby of a seat did not take over.
enum class why_no_spare : u8 {
    none,         ///< the last one had been used or had died, and the next was not started yet
    starting,     ///< it had not said that it was ready
    untried,      ///< it would have: but a holder that has delivered nothing is followed by a fresh process, with delays
};

/// What deaths looked like, for the report.
struct death_account {
    u64 kills_at[5] = {};  ///< by ring::job_state
    u64 deaths = 0, restarts = 0;
    u64 promoted = 0;  ///< successors that were warm standbys
    u64 no_spare[3] = {};  ///< deaths behind which none could be, by why_no_spare
    u64 domain_faults = 0;         ///< times that the MPS domain was renewed
    u64 domain_ends = 0;           ///< of these the ones that ended a whole domain: what fails in the next one until then is the same end
    bool domain_whole = true;      ///< all its stages are back since the last end
    bool domain_given_up = false;  ///< its stages have GPU contexts of their own since
    std::vector<void_frame> given_up;  ///< the newest thousand
    u64 given_up_before = 0;           ///< and how many before those
};

class seat_keeper {
public:
    seat_keeper(const run_setup& setup, event_loop& loop, console& out);
    ~seat_keeper();
    seat_keeper(const seat_keeper&) = delete;
    seat_keeper& operator=(const seat_keeper&) = delete;

    /// Uses this control block and memory from now on; no life may be left. `made`: what the block was published as; its static parts
    /// are read there, since a broken process may write into the block itself (null: trust the block).
    void attach_to(shm::control_block& c, const memory_keeper& memory, const shm::control_block* made = nullptr);
    /// END as the engine has set it; what the block says about it is only what it should say.
    void the_end_is(u64 end) noexcept { end_ = end; }
    /// Before anything is started or taken over. Null: every stage has a GPU context of its own.
    void use_domain(mps_domain* domain);
    void start_all();
    void tick(u64 now);

    /// Of what stands before the bar of a log line.
    [[nodiscard]] std::size_t label_width() const noexcept { return label_width_; }
    // ---- a second supervisor (seat_adoption.cpp, seat_state.cpp)
    struct found {
        u32 alive = 0, dead = 0, spares = 0;
    };
    /// Continues from what a dead supervisor has left: the control block's entries say which processes there are, `state` (what
    /// state_json() gave last; may be null) what was counted and wanted. Buries the dead; starts nobody before memory_is_there().
    found take_over(const nlohmann::json& state, const std::string& run_id);
    /// A stage of the dead supervisor presents itself again. Empty: it is welcome, and told so. Else why it has no place.
    [[nodiscard]] std::string let_return(int connection, const shm::peer& peer, const nlohmann::json& who);
    /// From now on processes may be started and let in.
    void memory_is_there();
    /// Seats whose process lives and has not presented itself yet.
    [[nodiscard]] std::vector<const seat*> not_returned() const;
    /// What lives in this process only and must outlive it.
    [[nodiscard]] nlohmann::json state_json() const;
    /// Differs when state_json() does.
    [[nodiscard]] u64 fingerprint() const noexcept;

    /// A stage's hello on a connection. Empty: it is in, its answer sent. Else why it is refused.
    [[nodiscard]] std::string let_in(int connection, const shm::peer& peer, const nlohmann::json& hello);
    void is_ready(int connection);
    /// A stage that was let return writes into its new pipe.
    void is_back(int connection);
    void connection_closed(int connection);

    // Commands; each returns what it did, or throws config_error.
    std::string stop(seat& s);
    std::string cont(seat& s);
    std::string kill(seat& s, int signal);
    std::string restart(seat& s);
    std::string inject(seat& s, shm::injected_fault kind);
    std::string take_down(seat& s);
    std::string bring_up(seat& s);
    /// Seats of "stage" or "stage.N". Throws config_error naming those there are.
    [[nodiscard]] std::vector<seat*> find(const std::string& name);

    /// The run ends: nothing is restarted any more.
    void no_more_starts() noexcept;
    /// Ends every process and starts none until resume(): memory and words are made anew meanwhile.
    void pause();
    /// `revive`: also the seats that have failed or are done, since a damaged block may have told them so.
    void resume(bool revive);
    /// Something beside the stages has failed for good.
    void fail(const std::string& label, const std::string& what, int code);
    void release_held();
    void signal_all(int signal);
    [[nodiscard]] bool all_gone() const noexcept;
    [[nodiscard]] std::vector<std::string> still_there() const;
    void restart_clocks(u64 now) noexcept;

    [[nodiscard]] std::vector<std::unique_ptr<seat>>& seats() noexcept { return seats_; }
    [[nodiscard]] const std::optional<root_cause>& failure() const noexcept { return failure_; }
    [[nodiscard]] const death_account& account() const noexcept { return account_; }
    // ---- a run that stands still (stated_reasons.cpp)
    /// Adds the present epochs and all incarnations that may still write, from what this process knows.
    void tell_known(ring::known_run& known) const;
    /// Why nothing has to move now, as a stage's state or its process says and as far as that can be believed; "": nobody has a reason.
    [[nodiscard]] std::string stated_reason(u64 now) const;
    [[nodiscard]] bool through(u32 stage) const noexcept;  ///< every frame of the run is through it
    [[nodiscard]] const run_notes& notes() const noexcept { return notes_; }
    [[nodiscard]] const std::vector<recovery>& recoveries() const noexcept { return recoveries_.all(); }
    [[nodiscard]] u64 recoveries_dropped() const noexcept { return recoveries_.dropped(); }
    [[nodiscard]] ledger_keeper& ledgers() noexcept { return ledgers_; }
    void say(const std::string& text);
    /// What the supervisor itself says, for DIR/logs.
    [[nodiscard]] log_sink& journal() noexcept { return *journal_; }

private:
    // seats.cpp
    void start(seat& s);
    void spawn_life(const seat& s, life& l) const;
    void watch_life(seat& s, life& l);
    void watch_log(seat& s, life& l);
    [[nodiscard]] std::string answer(const seat& s, const life& l, std::vector<int>& fds) const;
    [[nodiscard]] std::string let_in_as(seat& s, life& l, int connection, i32 pid);
    [[nodiscard]] seat* free_seat_for(const std::string& stage, std::string& why);
    [[nodiscard]] std::string adopt_process(seat& s, life& l, i32 pid);
    void act(seat& s, seat_action a, const life* l);
    void note(const char* kind, u64 time_ns, const seat& s, const life& l, std::string text);
    // standby.cpp
    void keep_spare(seat& s, u64 now);
    void start_spare(seat& s, u64 now);
    [[nodiscard]] bool promote_spare(seat& s);
    void count_promotion(seat& s, i32 pid);
    void end_spare(const seat& s) noexcept;
    void spare_ended(seat& s, u64 now);
    void adopt_spare(seat& s, u32 entry, const std::string& run_id);
    // mps_seats.cpp
    [[nodiscard]] bool wants_domain(const seat& s) const noexcept;
    [[nodiscard]] bool may_start(const seat& s) const noexcept;
    [[nodiscard]] bool is_client(const life& l) const noexcept;
    [[nodiscard]] bool breaks_domain(const seat& s, const life& l) const noexcept;
    [[nodiscard]] bool fence_is_known(const life& l) const noexcept;
    void excuse(life& l) const noexcept;
    [[nodiscard]] bool harm_was_asked(u32 domain) const noexcept;
    [[nodiscard]] bool died_by_itself(const life& l) const noexcept;
    void end_client(const life& l);
    void client_ended(seat& s, life& l, const std::string& why);
    void renew_domain(const std::string& why);
    void tell_end(const seat& s, const life& l);
    void watch_domain();
    void domain_renewed(const std::string& why);
    void count_fault();
    void give_domain_up(const std::string& why);
    // seat_adoption.cpp
    void find_lives(seat& s, const std::string& run_id, found& n);
    [[nodiscard]] std::unique_ptr<life> life_from(seat& s, u32 entry, const std::string& run_id);
    void resume_seat(seat& s);
    void read_alone(seat& s, i32 pid);
    // seat_state.cpp
    void restore(const nlohmann::json& state);
    // bury.cpp
    void bury(seat& s);
    void advance(seat& s, life& l, u64 now);
    void first_steps(seat& s, life& l);
    void count_death(u32 seat_index);
    void fence(seat& s, life& l);
    void kill_life(life& l);
    void on_process_end(seat& s, life& l);
    void read_note(life& l) const noexcept;
    void judge(seat& s, life& l);
    void blame_late(seat& s, life& l) noexcept;
    void note_given_up(const seat& s, const life& l);
    void found_committed(const seat& s, life& l, u64 sequence);
    void reset_assets(const life& l) noexcept;
    [[nodiscard]] std::string reason_of(const seat& s, u64 now) const;
    [[nodiscard]] bool is_at_work(const seat& s, u64 now) const noexcept;
    [[nodiscard]] u32 count_quarantined(const seat& s) const noexcept;
    void give_up(seat& s, const life* l);
    void close_groups_of(u32 stage) noexcept;
    // watch.cpp
    void watch_deadlines(u64 now);
    [[nodiscard]] process_view view(const seat& s, u64 now) const noexcept;
    [[nodiscard]] u64 longest_tick_ns() const noexcept;
    void restart_device_clocks(u32 device, u64 now) noexcept;
    void watch_start(seat& s, u64 now);
    [[nodiscard]] bool work_waits(const seat& s) const noexcept;
    [[nodiscard]] bool waits_for_asset(const seat& s) const noexcept;
    void missed(seat& s, const std::string& what);
    void sample(seat& s, u64 now) noexcept;

    const run_setup* setup_;
    event_loop* loop_;
    console* console_;
    shm::control_block* c_ = nullptr;
    const shm::control_block* made_ = nullptr;  ///< static parts
    std::optional<u64> end_;
    const memory_keeper* memory_ = nullptr;
    std::vector<std::unique_ptr<seat>> seats_;
    std::optional<root_cause> failure_;
    death_account account_;
    run_notes notes_;
    recovery_log recoveries_;
    ledger_keeper ledgers_;
    mps_domain* domain_ = nullptr;
    bool renewing_ = false;
    u32 faults_in_row_ = 0;
    u64 moved_at_fault_ = 0;
    bool ending_ = false, paused_ = false, memory_there_ = true;
    nlohmann::json remembered_;  ///< lives of the dead supervisor, until they are matched with entries
    u64 last_tick_ns_ = 0;
    u64 kill_delay_ns_ = 0;  ///< test hook CAROUSEL_TEST_KILL_DELAY_MS: the unwanted live on so long, as one in state D would
    unsigned cpu_threads_ = 1;
    std::size_t label_width_ = 8;
    std::unique_ptr<log_sink> journal_;
};

}  // namespace carousel::supervisor
