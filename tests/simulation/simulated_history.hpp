#pragma once
// One simulated run (simulated_run.hpp): its supervisors, its faults and its oracles.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "shm/fd_socket.hpp"
#include "simulated_run.hpp"
#include "simulated_stage.hpp"
#include "supervisor/engine/engine.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {

using namespace carousel::supervisor;

/// Time within which a frame advances while nothing is withheld: a frame that hangs is found after
/// frame_timeout_ms, a stage that has delivered nothing is restarted after up to 5 s, and a start takes 0.2
/// s.
inline constexpr u64 longest_quiet_ns = 9 * ns_per_s;
inline constexpr u64 longest_end_ns = 60 * ns_per_s, longest_run_ns = 80 * ns_per_s;

class simulated_history {
public:
    explicit simulated_history(const simulated_run_options& o);

    simulated_run_result run();

private:
    void run_all();

    // ---- simulated_run.cpp

    [[nodiscard]] bool is_over() const;
    void start_supervisor(bool first);
    /// As run_once() (engine/run.cpp): the folder's lock first, then the run that it finds.
    void supervise(fiber& self, bool first);
    void supervisor_died(const fiber& f);
    /// Called when a supervisor has died.
    void note_left_processes();

    /// Adds the lines that the supervisor has printed since the last call to the trace.
    void note_log();

    // ---- simulated_faults.cpp

    void next_fault();

    /// Where frames may pass a stage by, that is tried often.
    simulated_fault any_fault();
    [[nodiscard]] u32 stage_number(const std::string& name) const {
        u32 k = 0;
        while (setup_.stages[k].spec.name != name) ++k;
        return k;
    }
    void open_port(const std::string& name);

    simulated_process* any_process(bool of_port);
    const seat& any_seat();
    const seat& optional_seat();
    static simulated_stage& stage(simulated_process& p);

    void begin_fault(simulated_fault f);
    /// `carousel down` of the seat, and `carousel up` after `span`.
    void take_down(const std::string& label, u64 span);
    void end_supervisor(u64 span);
    /// The supervisor dies at a step of the end of a process that it replaces, or takes down.
    void kill_at_retirement(u64 span);

    void send_order(run::seat_order order, const std::string& label);

    /// As a command does: its connection lasts until its answer.
    void send(const run::request& request);
    void read_answer(int fd, u32 tries);

    /// After the last fault.
    void give_back_everything();
    void resume_seats();

    // ---- simulated_oracles.cpp

    [[nodiscard]] bool is_withheld() const;
    [[nodiscard]] std::string why() const;
    void watch();
    /// Called while the supervisor runs, and when it has ended.
    void notice_absences();
    /// Frames pass by an optional stage that has failed. It is brought up again when its processes can start.
    void notice_failures();
    /// A stage that a command has taken down remains down, also if the supervisor dies.
    void notice_downs();
    /// After a rebuild a sink gets the frames that its ledger lacks: again, if it was ahead of what the rings
    /// hold.
    void notice_rebuild();
    /// Called if a supervisor reports that the processes which it has adopted have lost the memory.
    void judge_lost_memory();

    void check_words(const shm::control_block& c, const run_outcome& o);

    void judge();
    void judge_outcome(const run_outcome& o);

    /// A reader that frames may pass by misses none while it reads.
    void judge_attendances(u32 k, u64 end);

    void judge_ledger(const std::string& sink, u64 end);

    void judge_descriptors();

    simulated_run_options options_;
    scratch_folder files_;
    machine machine_;
    run_setup setup_;
    observed_run run_;
    simulated_run_result result_;
    std::set<int> before_, clients_;  ///< clients_: connections of commands without an answer yet
    shm::unique_fd printed_;          ///< what the supervisor prints
    off_t printed_to_ = 0;
    std::string log_line_;
    std::vector<std::unique_ptr<fiber>> supervisors_;
    fiber* supervisor_ = nullptr;  ///< the one that holds the lock, or held it last
    engine* engine_ = nullptr;
    bool takes_over_ = false, lost_ = false;
    i32 dies_with_supervisor_ = 0;              ///< pid of a standby; 0: none
    std::optional<u64> faults_when_all_lived_;  ///< the faults until the last death of a supervisor, if each
                                                ///< of its seats had a process that had delivered frames
    std::vector<i32> left_by_supervisor_;       ///< these processes
    std::map<std::string, bool> ordered_down_;  ///< seats that are to be down; true: each was seen down
    std::optional<run_outcome> outcome_;
    u64 faults_end_ns_ = 0, seen_commits_ = 0, moved_ns_ = 0, rebuilds_ = 0;
    bool reported_ = false;
    u64 seen_block_ = 0;  ///< when the last block was created
};

}  // namespace carousel::test
