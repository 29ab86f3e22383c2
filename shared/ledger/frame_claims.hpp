#pragma once
// The frames for which a sink counts; this is the only record of "which readers count". A sink has a claim on
// every frame, except on ranges of frames that bypass it according to its own rule:
//   - a sink that may miss frames (group = "latest", or a port with vacant = "skip"): it never has a claim;
//   - an optional sink that has failed: it has no claim until it is started again.
// A frame without a claim is neither awaited nor lost. The supervisor (stores/ledger_store.hpp) sets the
// claims and is the only writer. The supervisor, its successor, the report, and the stage that acknowledges
// frames to another host (runner/delivered.hpp) read the same file, so that they cannot disagree. Damage or a
// rebuild of the control block has no effect on the claims.
//
// `<ledger>.unclaimed` is text: a range of frames per line, "FIRST END", in ascending order. "FIRST -" is the
// last line while the claim is suspended. The file is replaced as a whole (temporary file, rename), so a
// crash leaves the previous or the next text. A claim is suspended before frames may bypass the sink, and
// resumed after they no longer can: a crash in between leaves a suspended claim, which the next supervisor
// resumes.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::telemetry {

/// Used instead of a frame number: the sink has no claim on any frame.
inline constexpr u64 no_frame = ~u64{0};

class frame_claims {
public:
    /// Loads the claims of the sink with this ledger. Without a file the sink has a claim on every frame.
    /// Throws output_error if the file cannot be read or is not valid.
    [[nodiscard]] static frame_claims load(const std::string& ledger);
    /// Throws output_error; the previous claims then remain valid.
    void save(const std::string& ledger) const;

    [[nodiscard]] bool includes(u64 frame) const noexcept { return first_from(frame) == frame; }
    /// The lowest claimed frame that is not below `frame`; no_frame if there is none.
    [[nodiscard]] u64 first_from(u64 frame) const noexcept;
    [[nodiscard]] bool suspended() const noexcept;
    /// The number of frames below `end` without a claim.
    [[nodiscard]] u64 unclaimed_below(u64 end) const noexcept;

    /// Ends the claim on frames from `first` on. Does nothing while the claim is suspended.
    void suspend(u64 first);
    /// Starts a claim on frames from `first` on. Does nothing unless the claim is suspended.
    void resume(u64 first);
    /// Called if the frames from `first` on are produced again: the sink receives them, unless its claim is
    /// suspended.
    void produced_again_from(u64 first);

private:
    struct range {
        u64 first, end;  ///< end: no_frame while the claim is suspended
    };
    std::vector<range> unclaimed_;
};

/// Path of a ledger's claims.
[[nodiscard]] std::string claims_path(const std::string& ledger);

/// A sink of a run.
struct counted_sink {
    std::string name;
    u64 without_ledger;  ///< the first frame that it has yet to deliver while it has no ledger
};
/// A frame that a sink has a claim on and has not delivered.
struct undelivered_frame {
    u64 frame = no_frame;  ///< no_frame: no sink has an open claim
    std::string sink;
};
/// The lowest frame, not below `from`, that any of the sinks has a claim on and has not delivered: every
/// lower frame is in the files of all sinks that count. Correct even if claims are resumed concurrently.
/// Reads only files. Throws output_error.
[[nodiscard]] undelivered_frame find_undelivered(const std::string& runtime_directory,
                                                 const std::vector<counted_sink>& sinks, u64 from);

}  // namespace carousel::telemetry
