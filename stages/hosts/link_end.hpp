#pragma once
// The parts that both ends of a link have in common: the settings, the token, the format of the frames, and
// the figures for the run's report.

#include <carousel/stage.hpp>

#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "hosts/clock_filter.hpp"
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

// Settings that both ends of a link have.
//   address     numeric address of the receiving host, e.g. "10.0.0.2"; no default; only private addresses
//   port        the receiver listens on it; the next 64 ports carry the frames (UCX_TCP_PORT_RANGE) [47100]
//   token       file that both hosts have, mode 0600 (link/message.hpp); path relative to the pipeline
//               file's folder
//   insecure    true: the address may be public [false]
//   transports  UCX_TLS [tcp]

/// Longest sleep of an idle link thread.
inline constexpr u64 longest_sleep_ns = 100 * ns_per_ms;

struct link_settings {
    std::string address, token, transports;
    u16 port = 0;

    /// Throws settings_error.
    [[nodiscard]] static link_settings read(const configuration& with);
};

/// True for 10/8, 172.16/12, 192.168/16, 100.64/10, 169.254/16 and 127/8.
[[nodiscard]] bool is_private(const std::string& address);
/// Source address of packets from this host to `address`. Throws config_error: no route.
[[nodiscard]] std::string local_address_towards(const std::string& address);

/// "none", "lz4", "zstd": names of the compressions.
[[nodiscard]] const char* name_of(packing how) noexcept;
/// The names of the compressions that this build has, except "none".
[[nodiscard]] std::vector<packing> built_in_packings();
/// Reads the key `compress`. Throws settings_error if the name is unknown, or if this build does not have the
/// compression.
[[nodiscard]] packing packing_from(const configuration& with);
/// Reads the key `memory` of a sending stage: true if UCX is to read a GPU's frames in place. Throws
/// settings_error if the value is neither "staged" nor "direct", or if it is "direct" with compressed frames.
[[nodiscard]] bool sends_directly(const configuration& with, packing how);

/// Bytes that a link transfers per frame of this format: a slot without its leading status word.
[[nodiscard]] u64 payload_bytes(const frame_format& format);
inline constexpr u64 before_payload = ring::plane_alignment;
/// Returns a hello with values for the fields that both sides compare.
[[nodiscard]] hello hello_of(const frame_format& format, const parameter_schema& parameters);

// Common part of both ends of a link: settings, token and format of the frames.

struct link_end {
    link_settings where;
    std::string stage;
    frame_format format;
    u64 bytes = 0;  ///< per frame
    environment* env = nullptr;
    token_file token;

    /// For configure(). Throws settings_error.
    void read(const configuration& with, const frame_format& of_frames);
    /// For prepare(). Throws config_error if the stage has several instances, or if there is no token.
    void prepare(environment& with);
    /// Returns the path of a file of this stage in its run's runtime directory.
    [[nodiscard]] std::string file(const std::string& name) const;
    /// True if this run has further stages that receive from other hosts, according to the supervisor's plan
    /// and the stages' own descriptions (pipeline.json). Also true if the plan or the descriptions cannot be
    /// read.
    [[nodiscard]] bool is_one_of_several_receivers() const;
    /// The frames per checkpoint of the states of this run, by the supervisor's plan; 0: it makes none.
    [[nodiscard]] u64 checkpoint_every() const;
    /// True if frame `first`, with which this run's rings begin, is that of a checkpoint, so that every sink
    /// has the frames before. False if that cannot be read.
    [[nodiscard]] bool begins_at_checkpoint(u64 first) const;
};

// Figures of one end of a link for the run's report: a file in the run's runtime directory, figures-STAGE,
// written atomically by the link's thread every second and at its end. A reader finds the old or the new
// text, never a part.

class link_figures {
public:
    /// What a predecessor has written of the sender holds until a sender is connected.
    link_figures(std::string path, std::string run);

    /// To be called after each change. Writes the file at most once per second, or immediately if `force` is
    /// set. A failed write is ignored.
    void update(bool up, const std::optional<clock_relation>& clock, u64 now, bool force = false);
    /// Called by a receiving end: `how` is true if the sender keeps its frames until the sinks on this host
    /// have them. The next update() writes a change at once, because a rebuild depends on it.
    void sent_durably(bool how) noexcept {
        if (how != durable_) written_ns_ = 0;
        durable_ = how;
    }
    void crossed(u64 bytes, u64 packed_bytes) noexcept {
        ++frames_, bytes_ += bytes, packed_ += packed_bytes;
    }

private:
    std::string path_, run_;
    u64 frames_ = 0, bytes_ = 0, packed_ = 0, written_ns_ = 0, connections_ = 0;
    bool was_up_ = false, durable_ = false;
    std::optional<clock_relation> clock_;  ///< the last known one
};

}  // namespace carousel::hosts
