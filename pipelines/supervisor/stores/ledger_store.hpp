#pragma once
// The supervisor's part in the sinks' ledgers: it makes the marks that the dead could not make, folds what is
// delivered and old, and is the only writer of the sinks' claims: which of them counts for which frames
// (telemetry/frame_claims.hpp). One thread; files of the run's runtime directory alone.

#include <map>
#include <string>

#include "supervisor/plan/run_setup.hpp"
#include "telemetry/frame_claims.hpp"

namespace carousel::supervisor {

/// A sink that may not miss a frame as long as it has not failed: its ledger counts. The only rule for that;
/// every other answer comes from the claims that are written according to it.
[[nodiscard]] bool counts_frames(const stage_setup& st);
/// Why no frame of a stage is counted now, or "": it has an output; it may miss frames; it was left out.
/// Throws output_error.
[[nodiscard]] std::string not_counted(const run_setup& s, u32 stage);
/// The lowest frame that a sink of the run has a claim on and has not written. `without_ledger`: the first
/// one of a sink that has no ledger. Throws output_error.
[[nodiscard]] telemetry::undelivered_frame find_undelivered_here(const run_setup& s, u64 without_ledger);
/// Suspends the claims of the sinks that may miss frames. Call before any stage may read claims; may be
/// repeated. Throws output_error.
void begin_claims(const run_setup& s);
/// The frames from `first` on are produced again. Throws output_error.
void reset_claims(const run_setup& s, u32 stage, u64 first);

class ledger_store {
public:
    explicit ledger_store(const run_setup& s) : setup_(&s) {}
    /// The dead `epoch` of a seat of `stage` has committed the frame: its job word says so. Never throws;
    /// returns what the user is to be told, or "".
    std::string found_committed(u32 stage, u32 seat, u32 epoch, u64 ring_sequence) noexcept;
    /// The stage has no claim now, or never has one.
    [[nodiscard]] bool claim_suspended(u32 stage);
    /// No claim on frames from `first` on. Returns a message for the user, once, if it cannot be
    /// written; the claim is as it was then, and calls within a second do nothing.
    [[nodiscard]] std::string suspend_claim(u32 stage, u64 first);
    /// A claim on frames from `first` on; errors as above.
    [[nodiscard]] std::string resume_claim(u32 stage, u64 first);
    /// Once a second: folds what every counted sink has committed, but for the newest
    /// run_setup::kept_records. Returns what the user is to be told, or "".
    std::string tick(u64 now);

private:
    template <typename F>
    std::string change_claim(u32 stage, F&& change);

    const run_setup* setup_;
    u64 checked_ns_ = 0, claim_tried_ns_ = 0;
    bool failed_ = false, claim_failed_ = false;
    std::map<u32, bool> suspended_;  ///< by stage, as it is in the file: this process is its only writer
};

}  // namespace carousel::supervisor
