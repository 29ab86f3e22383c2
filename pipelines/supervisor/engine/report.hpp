#pragma once
// The report of a run (--report FILE). What was lost and repeated comes from the sinks' ledgers, never from
// the protocol's own words; the rest from the counters in the control block and from what the supervisor saw.

#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/output_file.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"
#include "telemetry/bottleneck.hpp"
#include "telemetry/ledger.hpp"

namespace carousel::supervisor {

/// Times that the control block was made anew because nothing moved, or because a word of it was impossible.
struct repair_record {
    u64 at_ns = 0, frame = 0;  ///< frame: where the run went on
    bool stalled = false;
    std::vector<std::string> found;  ///< empty: no word is wrong
    struct frames {
        u64 first = 0, end = 0;
    };
    /// Delivered, perhaps made from damaged words, and not made again: another host has sent them.
    frames uncertain;
};
struct damage_account {
    u64 stalls = 0, damaged = 0;
    u64 words = 0;       ///< that were wrong by one bit and are mended, with nothing made anew
    u64 beyond_end = 0;  ///< frames that a sink had delivered beyond the end, taken out of the account
    std::vector<repair_record> last;  ///< the first hundred
};

/// The receiving end of a link has reported that its sender keeps frames until the sinks here have them.
[[nodiscard]] bool is_sent_durably(const std::string& directory, const std::string& stage,
                                   const std::string& run_id);

struct run_outcome {
    u64 first = 0;          ///< the frames below were delivered by a run before this one
    u64 end = 0;            ///< frames first .. end-1 had to reach every sink
    bool complete = false;  ///< they were delivered and every stage left by itself
    f64 seconds = 0;        ///< from the first frame's claim to the last one's delivery
    int exit_code = 0;
    std::string ending;    ///< "complete", "interrupted", "failed: ..."
    std::string ended_by;  ///< the source that has ended the stream before frame `end`; "": none
    u64 rebuilds = 0;      ///< times the run began again with memory and words made anew
    damage_account repairs;
    u32 taken_over = 0;  ///< times that a second supervisor took the run over from a killed one
    std::vector<std::string> command_line;
    u64 planned_end = ~u64{0};  ///< the first frame that `frames` leaves out; above every number: no `frames`
    std::string end_requested_by;  ///< what asked for the end: "SIGHUP", "--seconds", ...; "": none
    /// `frames` gives more frames than the run has delivered.
    [[nodiscard]] bool ended_early() const noexcept;
    /// "ended early, after 26 of 150 frames: SIGHUP"; "": it did not end early.
    [[nodiscard]] std::string early_text() const;
    /// 0 if no time was measured.
    [[nodiscard]] f64 frames_per_second() const noexcept;
};

/// One sink's account.
struct sink_account {
    std::string stage;
    std::string not_counted = {};  ///< why; "": it is, and the sum is of its ledger
    telemetry::ledger_summary sum = {};
    std::string unreadable = {};        ///< why its ledger can't be read; ""
    std::optional<u64> passed_by = {};  ///< frames that did, of a port that skips or a sink that is left out
    [[nodiscard]] bool counted() const noexcept { return not_counted.empty(); }
    /// One over all frames: each has a hash, and all are of one name.
    [[nodiscard]] bool has_hash() const noexcept {
        return counted() && sum.without_hash == 0 && sum.passed == 0 && sum.hash_names.size() <= 1;
    }
};
/// Reads the ledgers of all sinks, in the order of the pipeline. A sink whose ledger can't be read is not
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
    nlohmann::json problems = nlohmann::json::array();  ///< problems.hpp
    /// as the stages, of outcome.seconds; empty: not measured
    std::vector<telemetry::stage_shares> shares = {};
    nlohmann::json parameters = nullptr;  ///< live_parameters::report
    u64 recoveries_dropped = 0;           ///< deaths that are too old for the list
};
[[nodiscard]] nlohmann::json make_report(const report_input& in);

/// Sums over the sinks and stages.
struct damage {
    bool counted = false;  ///< some sink is
    u64 lost = 0, repeated = 0, torn = 0;
    [[nodiscard]] bool any() const noexcept { return lost + repeated + torn != 0; }
};
/// A frame that reached a sink, or went nowhere, without a picture.
struct dead_letter {
    u64 ring_sequence = 0;
    std::string stage, reason;  ///< "": not known
};
struct dead_letter_list {
    u64 count = 0;                    ///< of the sink that got most
    std::vector<dead_letter> newest;  ///< by sequence, at most a thousand a sink
};
/// What the sinks' ledgers call void, with what the supervisor saw of it; where nothing is counted, what the
/// supervisor saw.
[[nodiscard]] dead_letter_list dead_letters_of(const std::vector<sink_account>& sinks,
                                               const death_account& deaths);
/// "2 given up (frame 7: fragment, signal 11; frame 9: fragment, signal 11)"; "" for none.
[[nodiscard]] std::string dead_letters_text(const dead_letter_list& d);
/// The run's own code, unless that is 0 and something is wrong with its frames: damage goes before frames
/// that were given up.
[[nodiscard]] int exit_code_of(const run_outcome& o, const damage& d, const dead_letter_list& dead_letters,
                               u64 allowed) noexcept;
/// "demo: the stream ended before frame 1000, says its source camera".
[[nodiscard]] std::string stream_end_text(const std::string& run, const std::string& source, u64 end);
/// "lost 0, repeated 0, torn 0"; where nothing was counted it says so, and which sinks were not.
[[nodiscard]] std::string damage_text(const damage& d, const std::vector<sink_account>& sinks);
[[nodiscard]] damage damage_of(const std::vector<sink_account>& sinks, const shm::control_block& c);

/// Throws output_error before anything is started, when the report could not be written later.
void check_report_path(const std::string& path);
/// Writes the report by the rule of core/output_file.hpp. Copies the ledgers into the folder of the file that
/// is replaced (ledger_copy_path); a report that is written into a device or a FIFO keeps none. Throws
/// output_error.
void write_report(const std::string& path, const nlohmann::json& report, const run_setup& s,
                  const std::vector<sink_account>& sinks);
/// The file of --report FILE, of any command. Throws output_error.
[[nodiscard]] output_file open_report(const std::string& path);
/// Path of the copy of a sink's ledger next to a report, after the report's symbolic links; "": the report is
/// written into a device or a FIFO.
[[nodiscard]] std::string ledger_copy_path(const std::string& report_path, const std::string& stage);
/// The p-quantile of some samples, 0 without any.
[[nodiscard]] f64 quantile(std::vector<f64> samples, f64 p);

}  // namespace carousel::supervisor
