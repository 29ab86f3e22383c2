#pragma once
// The supervisor's access to the sinks' ledgers: adds the marks that dead processes could not make, folds old
// delivered records, and is the only writer of the sinks' claims, which state the frames for which each
// sink's ledger counts (ledger/ledger.hpp). One thread; accesses only files of the run's runtime
// directory.

#include <map>
#include <string>

#include "ledger/ledger.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// True for a sink whose ledger counts: such a sink must not miss a frame unless it has failed. This is the
/// only definition; all other code reads the claims, which are written according to this definition.
[[nodiscard]] bool counts_frames(const stage_setup& st);
/// Returns the reason, as a clause, why the ledger of `stage` does not count; "": it counts. Throws
/// output_error.
[[nodiscard]] std::string not_counted(const run_setup& s, u32 stage);
/// Returns the lowest frame that a sink of the run has claimed and not recorded. `without_ledger`: the frame
/// to use for a sink that has no ledger. Throws output_error.
[[nodiscard]] telemetry::undelivered_frame find_undelivered_here(const run_setup& s, u64 without_ledger);
/// Suspends the claims of the sinks that may miss frames. To be called before any stage may read claims;
/// idempotent. Throws output_error.
void begin_claims(const run_setup& s);
/// Resets the claim of `stage` for frames that are produced again, from `first` on. Throws output_error.
void reset_claims(const run_setup& s, u32 stage, u64 first);

class ledger_store {
public:
    explicit ledger_store(const run_setup& s) : setup_(&s) {}
    /// Marks a frame in the ledger of `stage`: according to a job word, the dead process with `epoch` has
    /// committed the frame. Never throws; returns a message for the user, or "".
    std::string found_committed(u32 stage, u32 seat, u32 epoch, u64 ring_sequence) noexcept;
    /// True if the claim of the stage is suspended, or if the stage never has a claim.
    [[nodiscard]] bool claim_suspended(u32 stage);
    /// Ends the claim on frames from `first` on. Returns a message for the user, once, if the claim cannot be
    /// written; in this case the claim is unchanged, and calls within the next second do nothing.
    [[nodiscard]] std::string suspend_claim(u32 stage, u64 first);
    /// Starts a claim on frames from `first` on; errors as in suspend_claim.
    [[nodiscard]] std::string resume_claim(u32 stage, u64 first);
    /// Once per second: folds the records that every counted sink has committed, except the newest
    /// run_setup::kept_records. Frames from `repeats_from` on may be delivered again, so their records are
    /// kept, too, up to most_for_repeats. Returns a message for the user, or "".
    std::string tick(u64 now, u64 repeats_from = ~u64{0});

    static constexpr u64 most_for_repeats = 1'000'000;  ///< records of 64 bytes

private:
    template <typename F>
    std::string change_claim(u32 stage, F&& change);

    const run_setup* setup_;
    u64 checked_ns_ = 0, claim_tried_ns_ = 0;
    bool failed_ = false, claim_failed_ = false;
    std::map<u32, bool> suspended_;  ///< for each stage: the claim is suspended in the file; this process is
                                     ///< the only writer of the file
};

}  // namespace carousel::supervisor
