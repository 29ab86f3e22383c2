#pragma once
// The report of a run (--report FILE). What was lost and repeated comes from the sinks' ledgers, never from the protocol's own
// words; the rest from the counters in the control block and from what the supervisor saw.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shm/control_block.hpp"
#include "supervisor/memory_plan.hpp"
#include "supervisor/run_setup.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {

struct run_outcome {
    u64 end = 0;            ///< frames 0 .. end-1 had to reach every sink
    bool complete = false;  ///< they were delivered and every stage left by itself
    f64 seconds = 0;
    int exit_code = 0;
    std::string ending;   ///< "complete", "interrupted", "failed: ..."
    u64 begun_again = 0;  ///< times the run began again because memory of kind ipc had lost its owner
    u32 taken_over = 0;   ///< times that a second supervisor took the run over from a killed one
    std::vector<std::string> command_line;
};

/// One sink's account.
struct sink_account {
    std::string stage;
    bool has_ledger = false;
    u64 records = 0, lost = 0, repeated = 0, voids = 0, unmarked = 0, image_hash = 0;
    std::vector<u64> void_sequences;  ///< the first thousand
};
/// Reads the ledgers of the blocking sinks, in the order of the pipeline.
[[nodiscard]] std::vector<sink_account> read_ledgers(const run_setup& s, u64 end);

struct report_input {
    const run_setup* setup = nullptr;
    const shm::control_block* control = nullptr;
    const std::vector<std::unique_ptr<seat>>* seats = nullptr;
    const death_account* deaths = nullptr;
    const std::vector<recovery>* recoveries = nullptr;
    const std::vector<sink_account>* sinks = nullptr;
    run_outcome outcome;
    nlohmann::json problems = nlohmann::json::array();  ///< problems.hpp
};
[[nodiscard]] nlohmann::json make_report(const report_input& in);

/// Sums over the sinks and stages.
struct damage {
    u64 lost = 0, repeated = 0, torn = 0;
    [[nodiscard]] bool any() const noexcept { return lost + repeated + torn != 0; }
};
[[nodiscard]] damage damage_of(const std::vector<sink_account>& sinks, const shm::control_block& c);

/// Throws output_error before anything is started, when the report could not be written later.
void check_report_path(const std::string& path);
/// Writes the file whole (temporary file, rename) and puts the ledgers beside it as FILE-ledger-STAGE.bin. Throws output_error.
void write_report(const std::string& path, const nlohmann::json& report, const run_setup& s,
                  const std::vector<sink_account>& sinks);
/// A text to a file of the user's, whole (temporary file, rename). Throws output_error.
void write_text_whole(const std::string& path, const std::string& text);
/// Name under which a sink's ledger is kept beside a report.
[[nodiscard]] std::string kept_ledger(const std::string& report_path, const std::string& stage);
/// The p-quantile of some samples, 0 without any.
[[nodiscard]] f64 quantile(std::vector<f64> samples, f64 p);

}  // namespace carousel::supervisor
