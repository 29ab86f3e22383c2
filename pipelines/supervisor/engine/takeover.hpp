#pragma once
// Takeover of a run by a second supervisor. The first supervisor was killed; its stages continue to stream,
// hold the memory of all rings, and reconnect to the control socket as soon as a process listens there. No
// process is started until the memory has been returned; dead processes are retired at once. The counters and
// intentions of the dead supervisor come from its state file.

#include <functional>
#include <string>

#include "control/stage_message.hpp"
#include "supervisor/engine/control_socket.hpp"
#include "supervisor/processes/adoption.hpp"

namespace carousel::supervisor {

class block_custodian;
class live_parameters;
class memory_store;
class run_extensions;
class run_phase;
class run_rebuild;
class saved_run;
class stream_end;
struct run_facts;

class takeover {
public:
    takeover(const run_setup& setup, std::string run_id, process_table& seats, memory_store& memory,
             block_custodian& block, live_parameters& parameters, run_phase& phase, stream_end& stream,
             run_rebuild& rebuild, run_facts& facts)
        : setup_(&setup),
          run_id_(std::move(run_id)),
          seats_(&seats),
          memory_(&memory),
          block_(&block),
          parameters_(&parameters),
          phase_(&phase),
          stream_(&stream),
          rebuild_(&rebuild),
          facts_(&facts) {}

    /// Continues the run from `state`, the data that the dead supervisor has saved; null: the data is lost.
    /// `saved`: the part of that data that contains the facts about the run.
    void begin(const nlohmann::json& state, saved_run& saved);
    /// Called in each tick: detects that the memory has been returned, or gives up and rebuilds it.
    void watch(u64 now);
    /// True if some processes of the run have not reconnected yet.
    [[nodiscard]] bool is_in_progress() const noexcept { return since_ns_ != 0; }
    /// Accepts a stage that the dead supervisor had started. The descriptors that the stage sends are kept
    /// first, whether or not the stage is accepted. Returns "", or the reason why the stage is not accepted.
    [[nodiscard]] std::string accept_return(connection& c, const run::return_message& message,
                                            shm::message& m);
    /// Accepts the process that owns ipc memory; like the stages, it has waited for a supervisor. From now on
    /// that process runs as long as its connection exists.
    void accept_owner(connection& c, const run::owner_message& message, control_socket& socket);

private:
    const run_setup* setup_;
    std::string run_id_;
    process_table* seats_;
    memory_store* memory_;
    block_custodian* block_;
    live_parameters* parameters_;
    run_phase* phase_;
    stream_end* stream_;
    run_rebuild* rebuild_;
    run_facts* facts_;
    found_processes found_;
    u64 since_ns_ = 0;  ///< 0: no takeover is in progress
};

// Writes DIR/state.json, which contains the counters and intentions of this process for its successor. The
// file is written after each event that changes one of these values.

class state_file {
public:
    state_file(const run_setup& setup, process_table& seats, const block_custodian& block,
               const live_parameters& parameters, const run_phase& phase, const run_facts& facts,
               const run_extensions& extensions)
        : setup_(&setup),
          seats_(&seats),
          block_(&block),
          parameters_(&parameters),
          phase_(&phase),
          facts_(&facts),
          extensions_(&extensions) {}

    /// True if something has changed since the last call of save(), or if that call failed a second ago.
    [[nodiscard]] bool is_due() const;
    /// Writes the state into the file. The first of several failures is logged, because without the file a
    /// successor would count from 0.
    void save();
    /// Returns the data that a dead supervisor has saved; null: there is none that can be read.
    [[nodiscard]] nlohmann::json read() const;

private:
    [[nodiscard]] u64 fingerprint() const;

    const run_setup* setup_;
    process_table* seats_;
    const block_custodian* block_;
    const live_parameters* parameters_;
    const run_phase* phase_;
    const run_facts* facts_;
    const run_extensions* extensions_;
    u64 saved_print_ = 0;
    u64 retry_ns_ = 0;  ///< 0: the last write succeeded
};

}  // namespace carousel::supervisor
