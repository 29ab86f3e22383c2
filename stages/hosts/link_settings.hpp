#pragma once
// Settings that both ends of a link have.
//   address     numeric address of the receiving host, e.g. "10.0.0.2"; no default; only private addresses
//   port        on which it listens; the next 64 ports carry the frames (UCX_TCP_PORT_RANGE) [47100]
//   token       file that both hosts have, mode 0600 (link/token_file.hpp); path relative to the pipeline
//               file's folder
//   insecure    true: the address may be public [false]
//   transports  UCX_TLS [tcp]

#include <string>
#include <vector>

#include <carousel/stage.hpp>
#include "core/clock.hpp"
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

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
/// The compressions of this build, without none.
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
/// The fields of the hello that both sides compare.
[[nodiscard]] hello hello_of(const frame_format& format, const parameter_schema& parameters);

}  // namespace carousel::hosts
