#pragma once
// Which frames a sink counts for: the only record of "which readers count". A sink has a claim on every
// frame, except on ranges in which frames pass it by according to its own rule:
//   - a sink that may miss frames (group = "latest", or a port with vacant = "skip"): never a claim;
//   - an optional sink that has failed: no claim until it is started again.
// A frame without a claim is neither awaited nor lost. The supervisor (stores/ledger_store.hpp) sets the
// claims and is the only writer. The supervisor, its successor, the report, and the stage that acknowledges
// frames to another host (runner/delivered.hpp) read the same file, so that they cannot disagree. A control
// block that is damaged or rebuilt changes nothing here.
//
// `<ledger>.unclaimed` is text: a range of frames per line, "FIRST END", in ascending order. "FIRST -" is the
// last line while the claim is suspended. The file is replaced as a whole (temporary file, rename), so a
// crash leaves the previous or the next text. Suspend before the frames may pass, and resume after they no
// longer can: a crash in between leaves a claim that is suspended, and the next supervisor resumes it.

#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::telemetry {

/// Instead of a frame: the sink has no claim on any frame.
inline constexpr u64 no_frame = ~u64{0};

class frame_claims {
public:
    /// Claims of the sink with this ledger. Without a file the sink has a claim on every frame. Throws
    /// output_error if the file cannot be read or is not valid.
    [[nodiscard]] static frame_claims load(const std::string& ledger);
    /// Throws output_error; the previous claims then stay valid.
    void save(const std::string& ledger) const;

    [[nodiscard]] bool includes(u64 frame) const noexcept { return first_from(frame) == frame; }
    /// The lowest claimed frame that is not below `frame`; no_frame if there is none.
    [[nodiscard]] u64 first_from(u64 frame) const noexcept;
    [[nodiscard]] bool suspended() const noexcept;
    /// The number of frames below `end` without a claim.
    [[nodiscard]] u64 unclaimed_below(u64 end) const noexcept;

    /// No claim on frames from `first` on. Does nothing while the claim is suspended.
    void suspend(u64 first);
    /// A claim on frames from `first` on. Does nothing unless the claim is suspended.
    void resume(u64 first);
    /// The frames from `first` on are produced again: the sink gets them, unless its claim is suspended.
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
    u64 frame = no_frame;  ///< no_frame: no sink has a claim that is open
    std::string sink;
};
/// The lowest frame, not below `from`, that any of the sinks has a claim on and has not delivered: every
/// frame below it is in the files of all sinks that count. Correct even if claims are resumed concurrently.
/// Reads only files. Throws output_error.
[[nodiscard]] undelivered_frame find_undelivered(const std::string& runtime_directory,
                                                 const std::vector<counted_sink>& sinks, u64 from);

}  // namespace carousel::telemetry
