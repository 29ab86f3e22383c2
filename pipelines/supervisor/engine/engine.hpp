#pragma once
// The supervisor's single thread while a pipeline runs: an epoll loop over the control socket, its
// connections, the stages' pidfds and log pipes, the signals and a tick of 20 ms (deadlines, delays, the end
// of the run, the progress line). Nothing in it blocks.
//
//   running -> draining            Ctrl-C, TERM, `carousel down`: END is fixed, frames already begun are
//                                  delivered. (If a source ends its stream, END is lowered to that frame, in
//                                  either phase.)
//   running, draining -> leaving   every frame is delivered: the stages leave by themselves
//   any -> ending                  a required stage has failed, a second Ctrl-C, or a stage that does not
//                                  leave: TERM, then KILL
//   running -> rebuilding          the owner of `ipc` memory has died, or the control block is damaged, or
//                                  nothing moves and no stage reports a reason (damage.cpp): all stages end,
//                                  memory and words are rebuilt, the run continues at the sinks' lowest
//                                  undelivered frame

#include <map>
#include <memory>
#include <string>

#include "control/ps_message.hpp"
#include "control/stage_message.hpp"
#include "control/tap_message.hpp"
#include "control/trace_message.hpp"
#include "os/descriptors.hpp"
#include "os/event_loop.hpp"
#include "runs/spaces.hpp"
#include "shm/segment.hpp"
#include "shm/trace_segment.hpp"
#include "supervisor/engine/commands.hpp"
#include "supervisor/engine/control_socket.hpp"
#include "supervisor/engine/counter_backup.hpp"
#include "supervisor/engine/dashboard.hpp"
#include "supervisor/engine/other_hosts.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/engine/problems.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/shortage_watch.hpp"
#include "supervisor/engine/stage_times.hpp"
#include "supervisor/engine/stall_watch.hpp"
#include "supervisor/engine/trace_files.hpp"
#include "supervisor/engine/word_audit.hpp"
#include "supervisor/engine/word_repairs.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/stores/memory_store.hpp"
#include "telemetry/run_end.hpp"

namespace carousel::supervisor {

class engine : private host_orders, private connection_handler, private run_control {
public:
    enum class beginning { fresh, adopt };
    /// Creates the run's memory and control block and listens on the control socket. Throws carousel::error,
    /// leaving nothing allocated. `run_id`: names the control block. `helpers`: folder of carousel-alloc.
    /// `seconds`: ends the run as Ctrl-C does after this time (0: never). `adopt`: takes the running run
    /// `run_id` over from a dead supervisor (takeover.cpp); throws before it changes anything of that run.
    /// `first`: frames below it were delivered by an earlier run.
    engine(const run_setup& setup, std::string run_id, std::string helpers, f64 seconds, console& out,
           beginning how = beginning::fresh, u64 first = 0);
    ~engine() override;
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    /// Runs until the end of the run. All processes have ended when it returns.
    [[nodiscard]] run_outcome run();
    /// Runs one round of the loop without starting any process: for tests of messages on the socket.
    void turn(int timeout_ms) { loop_.run_once(timeout_ms); }
    [[nodiscard]] const shm::control_block& control() const noexcept { return segment_->block(); }
    /// The shared-memory space that this run offers to other programs; null: none.
    void hold(std::unique_ptr<run_space> space);
    /// The other hosts of the pipeline, which must outlive the engine; null: it runs on this host only.
    void work_with(other_hosts* hosts);
    /// Records the end of the run for observers that keep the control block mapped.
    void note_end(int exit_code) noexcept { telemetry::note_end(segment_->block(), exit_code); }
    [[nodiscard]] process_table& seats() noexcept { return *seats_; }
    /// Call after the end of the run: writing the report may use the file descriptors held in reserve.
    void release_reserve() noexcept { reserve_.release(); }
    [[nodiscard]] nlohmann::json parameters_of_the_run() const { return parameters_.report(); }
    /// The problems that degraded or delayed the run.
    [[nodiscard]] nlohmann::json problems_of_the_run() const { return problems_.all(started_ns_); }
    [[nodiscard]] std::vector<telemetry::stage_shares> shares_of_the_run() const { return times_.whole(); }

private:
    enum class phase { running, draining, leaving, ending, rebuilding };
    // engine.cpp
    void write_plan(shm::control_block& c, u64 first_ring_sequence, u64 end) const;
    void make_block(u64 first_ring_sequence, u64 end);
    void tick();
    void check_end(u64 now);
    void interrupt(int signal) override;
    void end_on_request(const std::string& by, int signal, const std::string& why) override;
    void begin_drain(const std::string& why);
    void end_now(const std::string& why);
    void watch_full_disk(u64 now);
    // stream_end.cpp
    void watch_stream_end();
    void end_stream_of(u32 stage, u64 at);
    void adopt_stream_end(u32 ended_by);
    [[nodiscard]] u64 surplus() const noexcept;
    // hosts.cpp
    void request_end(const std::string& why);
    void log_line(const std::string& text) override;
    void end_the_run(const std::string& why) override;
    void end_at_once(const std::string& why) override;
    void end_the_stream(const std::string& stage, u64 at, const std::string& why) override;
    void host_has_failed(const std::string& host, const std::string& what, int code) override;
    [[nodiscard]] nlohmann::json carry_out_for(const nlohmann::json& request) override;
    void serve_requests(int timeout_ms) override;
    [[nodiscard]] bool other_hosts_done(u64 now);
    [[nodiscard]] bool forward_to_host(connection& c, const nlohmann::json& request, nlohmann::json& refusal);
    void answered(u64 id, const nlohmann::json& reply) override;
    void line_of(const std::string& host, const std::string& stage, i32 pid,
                 const std::string& line) override;
    // engine.cpp
    [[nodiscard]] std::string unwritten();
    void flush_outputs(u64 now);
    void watch_owner();
    // rebuild.cpp
    void rebuild(const std::string& why) override;
    void abandon_rings(const std::string& why, const stage_setup& port);
    void finish_rebuild();
    [[nodiscard]] u64 first_to_deliver() const;
    [[nodiscard]] u64 first_trusted() const;
    [[nodiscard]] u64 first_uncertain() const;
    void record_uncertain_frames(u64 first);
    void begin_ledgers() const;
    void truncate_ledgers(u64 first);
    // damage.cpp
    void save_published_block(const shm::control_block& c);
    void update_published_block(const shm::control_block& c);
    void set_end(u64 end);
    [[nodiscard]] bool accept_end(u64 found);
    [[nodiscard]] bool all_delivered() const noexcept;
    [[nodiscard]] ring::known_run what_is_known() const;
    [[nodiscard]] std::vector<ring::finding> check_block(bool words) const;
    [[nodiscard]] std::vector<ring::finding> check_without_parity(bool words) const;
    void watch_damage(u64 now);
    // word_repairs.cpp
    [[nodiscard]] bool repair_words();
    void repair_static_parts();
    [[nodiscard]] bool audit_words(u64 now);
    void watch_stall(u64 now);
    [[nodiscard]] std::string undeliverable() const;
    [[nodiscard]] bool failed_by_damage();
    void repair(const std::string& what, const std::vector<ring::finding>& found);
    [[nodiscard]] run_outcome outcome();
    // takeover.cpp
    void takeover();
    void watch_takeover(u64 now);
    [[nodiscard]] std::string handle_return(connection& c, const run::return_message& message,
                                            shm::message& m);
    void adopt_owner(connection& c, const run::owner_message& message);
    void save_state();
    // message_dispatch.cpp
    void on_message(connection& c, shm::message& m) override;
    void on_close(const connection& c) override;
    [[nodiscard]] std::string accept_process(connection& c, const nlohmann::json& request, shm::message& m,
                                             bool& again);
    // run_control, for commands.hpp
    [[nodiscard]] bool is_open() const noexcept override {
        return phase_ == phase::running || phase_ == phase::draining;
    }
    [[nodiscard]] bool is_over() const noexcept override { return over_; }
    [[nodiscard]] shm::control_block& block() override { return segment_->block(); }
    [[nodiscard]] shm::control_block& published() override { return *made_; }
    // ps.cpp
    [[nodiscard]] run::ps_answer carry_out(const run::ps_request& r) const override;
    [[nodiscard]] run::ps_stage row_of(const seat& s, const std::vector<telemetry::stage_shares>& shares,
                                       u64 now) const;
    [[nodiscard]] std::string state_name() const override;
    [[nodiscard]] std::string state_text() const;
    // taps.cpp
    void lease_tap(connection& c, const run::tap_request& request);
    // trace.cpp
    [[nodiscard]] run::trace_answer carry_out(const run::trace_request& r) override;
    [[nodiscard]] run::trace_file_answer carry_out(const run::trace_file_request& r) override;

    const run_setup* setup_;
    console* console_;
    std::string run_id_, helpers_;
    descriptor_reserve reserve_;  ///< before the members that open descriptors: a lower limit set later
                                  ///< leaves its numbers usable
    event_loop loop_;
    std::unique_ptr<mps_domain> domain_;  ///< null: no stage asks for it
    memory_store memory_;
    std::unique_ptr<shm::segment> segment_;
    /// the block as it was published, against which its static parts are checked
    shm::private_block made_;
    u64 end_ = ring::end_unknown;  ///< END as this process has set it; the word in the block is only checked
                                   ///< against it
    bool stop_requested_ = false;  ///< begin_stop() was called on this block
    u32 stream_ended_by_ = shm::none;  ///< the source stage that set END by ending its stream
    std::vector<u64> seen_tails_;      ///< by link; they only grow
    live_parameters parameters_;
    counter_backup saved_counters_;
    stall_watch stall_;
    word_audit audit_;
    std::vector<pending_repair> pending_repairs_;  ///< words with one flipped bit, as of the last check
    u64 audited_deaths_ = 0;                       ///< seats_->account.deaths at the last check of the words
    damage_account repairs_;
    u64 deaths_then_ = 0;  ///< number of deaths when this block was made
    u64 figures_at_ns_ = 0, repaired_at_frame_ = 0;
    u32 repairs_in_row_ = 0;
    bool untrusted_ = false;                     ///< the present rebuild repairs damage
    bool repair_recorded_ = false;               ///< and is the last entry of repairs_.last
    std::string stall_reason_;                   ///< the last logged reason for a stall
    std::unique_ptr<shm::trace_segment> trace_;  ///< set after the first request for a trace
    trace_files trace_files_;                    ///< for clients that trace this run from another host
    std::unique_ptr<run_space> space_;           ///< null: none
    shm::unique_fd signals_, timer_;
    std::unique_ptr<process_table> seats_;
    std::unique_ptr<shortage_watch> shortage_;
    std::unique_ptr<control_socket> socket_;
    std::unique_ptr<commands> commands_;
    std::unique_ptr<dashboard> dashboard_;
    other_hosts* hosts_ = nullptr;
    std::map<std::string, std::unique_ptr<log_sink>> remote_lines_;  ///< by label, as "b/sink"
    progress progress_;
    stage_times times_;
    u64 first_ = 0;
    problems problems_;
    phase phase_ = phase::running;
    bool over_ = false, killed_ = false, end_requested_ = false;
    bool other_hosts_end_run_ = false;  ///< this host was asked to end the run, and has notified the other
                                        ///< hosts
    int interrupts_ = 0, ended_by_ = 0;
    std::string end_requested_by_;  ///< the first cause of the end: "SIGHUP", "--seconds", ...; "": none
    int end_request_signal_ = 0;    ///< the signal, if the first cause was a signal
    std::string unwritten_;  ///< not empty: the run ended while a disk was full or another host unreachable
    const char* unwritten_why_ = "";
    u32 taps_ = 0, taken_over_ = 0;
    found_processes found_;
    u64 taking_over_since_ns_ = 0;  ///< 0: no takeover is in progress
    u64 saved_print_ = 0;
    bool state_failed_ = false;
    u64 started_ns_ = 0, begun_ns_ = 0, finished_ns_ = 0, phase_since_ns_ = 0, moved_ns_ = 0, tails_ = 0,
        stop_at_ns_ = 0, rebuilds_ = 0;
    u64 lost_until_ = 0;  ///< frames below it were written by a port and are not made again
};

}  // namespace carousel::supervisor
