#pragma once
// The supervisor's single thread while a pipeline runs: an epoll loop over the control socket, its
// connections, the stages' pidfds and log pipes, the signals and a tick of 20 ms. Nothing in it blocks.
//
// The engine constructs the objects of a run, connects them, and calls them in a fixed order; each has its
// own file: run_phase         running, draining, leaving, ending, rebuilding; requests to end; the outcome
//   block_custodian   the control block: published, checked, repaired
//   stall_guard       nothing moves
//   run_rebuild       memory and words are made again
//   device_switch     stages move to the CPU and back
//   stream_end        a source ends its stream
//   takeover          a second supervisor continues the run
//   state_file        what it restores
//   control_socket    connections
//   message_dispatch  what their messages mean
//   commands          requests of clients
//   ps_rows, tap_leases, trace_control  their subjects
//   shortage_watch    descriptors, processes or memory are short
//   run_extension     parts plugged in from outside: other hosts, the web UI, the shared-memory space, a
//                     service manager
// The processes of the stages are in processes/.

#include <memory>
#include <string>

#include "os/descriptors.hpp"
#include "os/event_loop.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/control_socket.hpp"
#include "supervisor/engine/device_switch.hpp"
#include "supervisor/engine/message_dispatch.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/engine/problems.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/report.hpp"
#include "supervisor/engine/report_figures.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/engine/run_rebuild.hpp"
#include "supervisor/engine/takeover.hpp"
#include "supervisor/engine/trace_control.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/stores/checkpoint_store.hpp"
#include "supervisor/stores/memory_store.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::supervisor {

class engine : private run_access {
public:
    enum class beginning { fresh, adopt };
    /// Creates the run's memory and control block and listens on the control socket. Throws carousel::error,
    /// leaving nothing allocated. `run_id`: names the control block. `helpers`: folder of carousel-alloc.
    /// `seconds`: ends the run after this time, as Ctrl-C does (0: never). `adopt`: takes the running run
    /// `run_id` over from a dead supervisor; throws before it changes anything of that run. `first`: frames
    /// below it were delivered by an earlier run.
    engine(const run_setup& setup, std::string run_id, std::string helpers, f64 seconds, console& out,
           run_extensions& extensions, beginning how = beginning::fresh, u64 first = 0);
    ~engine() override;
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    /// From now on the extensions may act on the run. To be called once, before run().
    void attach_extensions();
    /// From now on stages can move to other devices. To be called before run().
    void set_devices(device_target target) { devices_.set_target(std::move(target), facts_.taken_over == 0); }
    [[nodiscard]] const fallback_state& devices_of_the_run() const noexcept { return facts_.fallback; }
    [[nodiscard]] u64 started_ns() const noexcept { return facts_.started_ns; }
    /// Runs until the end of the run. All processes have ended when it returns.
    [[nodiscard]] run_outcome run();
    /// Runs one round of the loop without starting any process: for tests of messages on the socket.
    void turn(int timeout_ms) { loop_.run_once(timeout_ms); }
    [[nodiscard]] const shm::control_block& control() const noexcept { return block_.block(); }
    /// To be called after a run that is complete.
    void remove_checkpoints() { checkpoints_.remove(); }
    /// To be called after a run that has ended before its last frame.
    void keep_checkpoints();
    /// Records the end of the run for observers that keep the control block mapped.
    void note_end(int exit_code) noexcept { telemetry::note_end(block_.block(), exit_code); }
    [[nodiscard]] process_table& seats() noexcept { return seats_; }
    /// To be called after the end of the run: the reserved file descriptors become available for the report.
    void release_reserve() noexcept { reserve_.release(); }
    [[nodiscard]] nlohmann::json parameters_of_the_run() const { return parameters_.report(); }
    /// The problems that degraded or delayed the run.
    [[nodiscard]] nlohmann::json problems_of_the_run() const { return problems_.all(facts_.started_ns); }
    [[nodiscard]] std::vector<telemetry::stage_shares> shares_of_the_run() const { return times_.whole(); }

private:
    void tick();
    void note_first_frame(u64 now);
    void watch_damage(u64 now);
    void sweep_rings() noexcept;
    void check_end(u64 now);
    void watch_events();

    // run_access, for the extensions
    [[nodiscard]] const run_setup& setup() const override { return *setup_; }
    [[nodiscard]] const std::string& run_id() const override { return run_id_; }
    [[nodiscard]] event_loop& loop() override { return loop_; }
    [[nodiscard]] console& out() override { return *console_; }
    [[nodiscard]] std::size_t label_width() const override { return seats_.label_width; }
    [[nodiscard]] bool was_taken_over() const override { return facts_.taken_over > 0; }
    [[nodiscard]] bool end_was_requested() const override { return facts_.end_requested; }
    [[nodiscard]] run_summary summary() const override;
    void log_line(const std::string& text) override { seats_.log_line(text); }
    void request_end(const std::string& why) override { phase_.request_end(why); }
    void drain(const std::string& why) override;
    void end_at_once(const std::string& why) override;
    void end_the_stream(const std::string& stage, u64 at, const std::string& why) override;
    void fail(const std::string& label, const std::string& what, int code) override;
    nlohmann::json carry_out(const nlohmann::json& request) override { return commands_.answer(request); }
    void answer(u64 id, const nlohmann::json& reply) override { socket_.answer_request(id, reply); }
    void serve_requests(int timeout_ms) override;
    void plan_changed() override { block_.publish_timeouts(); }
    void save_state() override;

    const run_setup* setup_;
    console* console_;
    std::string run_id_;
    run_extensions* extensions_;
    /// declared before the members that open descriptors, so that the reserved numbers are low and stay
    /// usable if the limit is lowered later
    descriptor_reserve reserve_;
    event_loop loop_;
    std::unique_ptr<mps_domain> domain_;  ///< null: no stage uses the domain
    memory_store memory_;
    process_table seats_;
    run_facts facts_;
    checkpoint_store checkpoints_;
    live_parameters parameters_;
    progress progress_;
    stage_times times_;
    problems problems_;
    block_custodian block_;
    run_phase phase_;
    state_file state_;
    stream_end stream_;
    stall_guard stall_;
    run_rebuild rebuild_;
    device_switch devices_;
    takeover takeover_;
    tap_leases taps_;
    trace_control trace_;
    commands commands_;
    message_dispatch dispatch_;
    shortage_watch shortage_;
    control_socket socket_;
    shm::unique_fd signals_, timer_;
};

}  // namespace carousel::supervisor
