#pragma once
// The report of a run (--report FILE). Lost and repeated frames are counted from the sinks' ledgers, never
// from the protocol's own words. All other data come from the counters in the control block and from the
// supervisor.

#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/output_file.hpp"
#include "ledger/ledger.hpp"
#include "shm/control_block.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/processes/process_table.hpp"
#include "telemetry/bottleneck.hpp"

namespace carousel::supervisor {

/// True if `stage` is the receiving end of a link, and has reported that the link's sender keeps frames until
/// the sinks on this host have delivered them.
[[nodiscard]] bool is_sent_durably(const std::string& directory, const std::string& stage,
                                   const std::string& run_id);

struct run_outcome {
    u64 first = 0;  ///< the frames below `first` were delivered by an earlier run
    u64 end = 0;    ///< frames first .. end-1 had to be delivered to every sink
    /// all frames first .. end-1 were delivered, and every stage has exited by itself
    bool complete = false;
    f64 seconds = 0;  ///< time from the claim of the first frame to the delivery of the last frame
    int exit_code = 0;
    std::string ending;    ///< "complete", "interrupted", "failed: ..."
    std::string ended_by;  ///< the source that ended its stream before frame `end`; "": no source did
    u64 rebuilds = 0;      ///< number of times that memory and words were rebuilt
    damage_account repairs;
    u32 taken_over = 0;  ///< number of times that a supervisor took the run over from a killed one
    std::vector<std::string> command_line;
    /// the END that follows from `frames`: the first frame that is not made; if `frames` is not set, a value
    /// above every frame number
    u64 planned_end = ~u64{0};
    /// the first cause for which the end was requested: "SIGHUP", "--seconds", ...; "": the end was not
    /// requested
    std::string end_requested_by;
    /// True if the run has delivered fewer frames than `frames` requests.
    [[nodiscard]] bool ended_early() const noexcept;
    /// "ended early, after 26 of 150 frames: SIGHUP"; "": the run did not end early.
    [[nodiscard]] std::string early_text() const;
    /// 0 if no time was measured.
    [[nodiscard]] f64 frames_per_second() const noexcept;
};

/// The delivery account of one sink.
struct sink_account {
    std::string stage;
    /// the reason why the sink is not counted; "": the sink is counted, and `sum` is from its ledger
    std::string not_counted = {};
    telemetry::ledger_summary sum = {};
    std::string unreadable = {};        ///< the reason why its ledger cannot be read; "": it can be read
    std::optional<u64> passed_by = {};  ///< frames that were not delivered to the sink, because the sink is a
                                        ///< port that skips frames, or is excluded
    u32 every = 1;                      ///< the sink takes each N-th frame only
    [[nodiscard]] bool counted() const noexcept { return not_counted.empty(); }
    /// True if every frame has a hash and all hashes are of the same kind.
    [[nodiscard]] bool has_hash() const noexcept {
        return counted() && sum.without_hash == 0 && sum.passed == 0 && sum.hash_names.size() <= 1;
    }
};
/// Reads the ledgers of all sinks, in the order of the pipeline. A sink whose ledger cannot be read is not
/// counted.
[[nodiscard]] std::vector<sink_account> read_ledgers(const run_setup& s, const shm::control_block& c,
                                                     u64 end);

struct report_input {
    const run_setup* setup = nullptr;
    const shm::control_block* control = nullptr;
    const seat_list* seats = nullptr;
    const death_account* deaths = nullptr;
    const std::vector<recovery>* recoveries = nullptr;
    const std::vector<sink_account>* sinks = nullptr;
    run_outcome outcome;
    nlohmann::json problems = nlohmann::json::array();  ///< see problems.hpp
    /// the stages' shares of time over outcome.seconds, indexed by stage; empty: the shares were not measured
    std::vector<telemetry::stage_shares> shares = {};
    nlohmann::json parameters = nullptr;  ///< see live_parameters::report
    u64 recoveries_dropped = 0;           ///< number of deaths that are too old for the list
};
[[nodiscard]] nlohmann::json make_report(const report_input& in);

/// Sums over the sinks and stages.
struct damage {
    bool counted = false;  ///< true if at least one sink is counted
    u64 lost = 0, repeated = 0, torn = 0;
    [[nodiscard]] bool any() const noexcept { return lost + repeated + torn != 0; }
};
/// A tombstone frame, which reached a sink or was dropped without having a picture.
struct dead_letter {
    u64 ring_sequence = 0;
    std::string stage, reason;  ///< "": unknown
};
struct dead_letter_list {
    u64 count = 0;                    ///< the greatest number of tombstones that one sink received
    std::vector<dead_letter> newest;  ///< ordered by ring sequence, at most a thousand per sink
};
/// Returns the frames that the sinks' ledgers record as tombstones, each with its cause if the supervisor has
/// observed it. If no sink is counted, returns the frames that the supervisor has recorded as abandoned.
[[nodiscard]] dead_letter_list dead_letters_of(const std::vector<sink_account>& sinks,
                                               const death_account& deaths);
/// Returns "2 given up (frame 7: fragment, signal 11; frame 9: fragment, signal 11)"; "": there are none.
[[nodiscard]] std::string dead_letters_text(const dead_letter_list& d);
/// Returns the run's own exit code if that code is not 0. If the run's own code is 0, returns the code for
/// damage if there is any damage, or the code for abandoned frames if there are more than `allowed`.
[[nodiscard]] int exit_code_of(const run_outcome& o, const damage& d, const dead_letter_list& dead_letters,
                               u64 allowed) noexcept;
/// A message that names the run, the frame before which the run's stream ended, and the source that ended the
/// stream.
[[nodiscard]] std::string stream_end_text(const std::string& run, const std::string& source, u64 end);
/// "lost 0, repeated 0, torn 0"; names the sinks that were not counted.
[[nodiscard]] std::string damage_text(const damage& d, const std::vector<sink_account>& sinks);
[[nodiscard]] damage damage_of(const std::vector<sink_account>& sinks, const shm::control_block& c);

/// Throws output_error if it is certain that the report cannot be written at the end. To be called before the
/// run starts.
void check_report_path(const std::string& path);
/// Writes the report as core/output_file.hpp describes. Copies the ledgers into the folder of the file that
/// is replaced (ledger_copy_path); for a report that is written to a device or a FIFO, no copies are kept.
/// Throws output_error.
void write_report(const std::string& path, const nlohmann::json& report, const run_setup& s,
                  const std::vector<sink_account>& sinks);
/// Opens FILE for any command that has the option --report FILE. Throws output_error.
[[nodiscard]] output_file open_report(const std::string& path);
/// Returns the path at which the copy of a sink's ledger is kept next to a report, with the report's symbolic
/// links resolved; "": the report is written to a device or a FIFO.
[[nodiscard]] std::string ledger_copy_path(const std::string& report_path, const std::string& stage);
/// Returns the p-quantile of `samples`, p in 0 .. 1; 0 if there are none.
[[nodiscard]] f64 quantile(std::vector<f64> samples, f64 p);

}  // namespace carousel::supervisor
