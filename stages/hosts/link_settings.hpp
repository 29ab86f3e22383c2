#pragma once
// The settings that both ends of a link have.
//   address     of the receiving host, numeric, e.g. "10.0.0.2". There is no default. Only private addresses
//   port        where it listens; the 64 ports behind it carry the frames (UCX_TCP_PORT_RANGE) [47100]
//   token       a file that both hosts have, mode 0600 (link/token_file.hpp), relative to the pipeline file's
//   folder
//   insecure    true: the address may be one that everybody reaches [false]
//   transports  UCX_TLS [tcp]

#include <string>
#include <vector>

#include <carousel/stage.hpp>
#include "core/clock.hpp"
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

/// Of an end of a link that nobody wakes.
inline constexpr u64 longest_sleep_ns = 100 * ns_per_ms;

struct link_settings {
    std::string address, token, transports;
    u16 port = 0;

    /// Throws settings_error.
    [[nodiscard]] static link_settings read(const configuration& with);
};

/// 10/8, 172.16/12, 192.168/16, 100.64/10, 169.254/16 and 127/8.
[[nodiscard]] bool is_private(const std::string& address);
/// The address of this host that packets to `address` leave from. Throws config_error: no way there.
[[nodiscard]] std::string local_address_towards(const std::string& address);

/// "none", "lz4", "zstd", as compressions are called.
[[nodiscard]] const char* name_of(packing how) noexcept;
/// Those that this was built with, beside none.
[[nodiscard]] std::vector<packing> built_in_packings();
/// Throws settings_error: it is none of them, or was not built in.
[[nodiscard]] packing packing_from(const configuration& with);
/// `memory` of a sending stage: UCX itself is to read a GPU's frames where they lie. Throws settings_error:
/// it is neither "staged" nor "direct", or "direct" and the frames are compressed.
[[nodiscard]] bool sends_directly(const configuration& with, packing how);

/// What a frame of this format is to a link: a slot without the status word in front.
[[nodiscard]] u64 payload_bytes(const frame_format& format);
inline constexpr u64 before_payload = ring::plane_alignment;
/// What both sides compare.
[[nodiscard]] hello hello_of(const frame_format& format, const parameter_schema& parameters);

}  // namespace carousel::hosts
